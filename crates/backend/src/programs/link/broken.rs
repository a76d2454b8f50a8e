//! Messages that are not valid, of a program that clients share and that replies in order: `NaN` in a reply, for
//! example, which many libraries write and JSON does not have. Such a message is one whole frame, so the next one can be
//! read. The request that it names fails, and no other.

use event::Calls;
use exchange::{Cause, Outcome, Phase, WorkerId};
use flow::backend_event::BackendEvent;
use wire::jsonrpc::{Skimmed, skim};

use super::tags::write_refusal;
use super::{Link, OTHER, Said};

impl Link {
    pub(super) fn handle_broken_in_order(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        frame: &[u8],
        why: &'static str,
        up: &mut Vec<BackendEvent>,
    ) -> Said {
        // A connection's own program harms nobody else, and what is one of many frames of a reply is not known.
        if self.is_own || self.stream.is_some() {
            return Said::Broken(why);
        }
        let id = match skim(frame) {
            Skimmed::Reply(id) if id == b"null" => None,
            Skimmed::Reply(id) => Some(id),
            Skimmed::Notification => None,
            Skimmed::Request(id) => {
                let mut refusal = Vec::new();
                write_refusal(&id, &mut refusal);
                return self.answer(calls, &refusal);
            }
            Skimmed::Unknown => return Said::Broken(why),
        };
        let Some(id) = id else {
            up.push(BackendEvent::Discarded);
            return Said::Fine;
        };
        let accepted = self.accepted(calls);
        let Some(flight) = self.in_flight.oldest().filter(|it| it.end <= accepted) else {
            return self.handle_unasked(worker, frame, up);
        };
        if flight.body.get(flight.named.clone()) != Some(&id[..]) {
            return OTHER;
        }
        self.unreadable.handle_reply_to_one(why);
        let text = format!("its reply is not valid: {why}");
        let outcome = Outcome::ended(Cause::Garbled, Phase::Work, &text);
        self.end_oldest(calls, worker, Err(outcome), up);
        Said::Fine
    }
}
