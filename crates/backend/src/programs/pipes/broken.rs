//! Invalid messages of a program that clients share and that replies in order. An example is `NaN` in a reply: many
//! libraries write it, but JSON does not allow it. Such a message is one complete frame, so the next frame can be read.
//! Only the request that it names fails.

use crate::backend::BackendContext;
use exchange::{Cause, Outcome, Phase, WorkerId};
use flow::backend_event::BackendEvent;
use wire::jsonrpc::{Skimmed, skim};

use super::tags::write_refusal;
use super::{OTHER, ProgramOutput, ProgramPipes};

impl ProgramPipes {
    pub(super) fn handle_broken_in_order(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        frame: &[u8],
        why: &'static str,
    ) -> ProgramOutput {
        // A session program affects no other client. An invalid frame of a reply with several frames cannot be
        // interpreted.
        if self.is_own || self.stream.is_some() {
            return ProgramOutput::Broken(why);
        }
        let id = match skim(frame) {
            Skimmed::Reply(id) if id == b"null" => None,
            Skimmed::Reply(id) => Some(id),
            Skimmed::Notification => None,
            Skimmed::Request(id) => {
                let mut refusal = Vec::new();
                write_refusal(&id, &mut refusal);
                return self.answer(cx.io, &refusal);
            }
            Skimmed::Unknown => return ProgramOutput::Broken(why),
        };
        let Some(id) = id else {
            cx.events.push(BackendEvent::Discarded);
            return ProgramOutput::Fine;
        };
        let accepted = self.accepted(cx.io);
        let Some(flight) = self.in_flight.oldest().filter(|it| it.end <= accepted) else {
            return self.handle_unsolicited(worker, frame, cx.events);
        };
        if flight.body.get(flight.named.clone()) != Some(&id[..]) {
            return OTHER;
        }
        self.unreadable.handle_reply_to_one(why);
        let text = format!("its reply is not valid: {why}");
        let outcome = Outcome::ended(Cause::Garbled, Phase::Work, &text);
        self.end_oldest(cx, worker, Err(outcome));
        ProgramOutput::Fine
    }
}
