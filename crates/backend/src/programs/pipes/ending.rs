//! The end of a program's pipes: both are closed, and its requests are given back or ended.

use event::Context;

use super::ProgramPipes;
use crate::backend::BackendContext;
use crate::programs::fault::ExitReport;
use crate::programs::{Fault, Pipe};
use flow::backend_event::BackendEvent;

impl ProgramPipes {
    /// Handles the end of a pipe. Must be called while the number of unsent bytes can still be read from the stream.
    pub(in crate::programs) fn handle_closed(&mut self, io: &Context<'_>, pipe: Pipe) {
        match pipe {
            Pipe::Input => {
                self.accepted_at_close = self.accepted(io);
                let unread = self.input.map_or(0, |input| io.unread_by_peer(input));
                self.read_at_close = self.accepted_at_close.saturating_sub(unread);
                self.input = None;
            }
            Pipe::Output => {
                self.output = None;
                if self.is_oneshot() {
                    // If there was no output, the reply is empty.
                    self.whole.get_or_insert_default();
                }
            }
            Pipe::Error => {}
        }
    }

    /// Closes the input once everything is sent. The program serves no other client, whatever it writes.
    pub(in crate::programs) fn finish(&mut self, io: &mut Context<'_>) {
        if let Some(reset) = &mut self.reset {
            reset.handle_end();
        }
        if let Some(input) = self.input {
            io.finish(input, None);
        }
    }

    /// Closes both pipes immediately.
    pub(in crate::programs) fn close(&mut self, io: &mut Context<'_>) {
        self.accepted_at_close = self.accepted(io);
        if let Some(input) = self.input {
            let unread = io.unread_by_peer(input);
            self.read_at_close = self.accepted_at_close.saturating_sub(unread);
        }
        for stream in [self.input.take(), self.output.take()].into_iter().flatten() {
            io.close(stream);
        }
    }

    /// Gives back the requests that never left our buffer, in their order. The buffer must not be sent any more. A
    /// process that was started for one request counts as having received it, whether it reads the request or not.
    pub(in crate::programs) fn give_back(&mut self, cx: &mut BackendContext<'_, '_>) {
        if self.is_oneshot() {
            return;
        }
        let accepted = self.accepted(cx.io);
        let mut unsent = Vec::new();
        while let Some(flight) = self.in_flight.pop_unsent(accepted) {
            unsent.push((flight.start, flight.unsent()));
        }
        unsent.extend(self.unsent_notifications(accepted));
        unsent.sort_unstable_by_key(|(start, ..)| *start);
        cx.events.extend(unsent.into_iter().map(|(_, back)| back));
    }

    /// Ends the requests in flight. Requests that never left our buffer are given back; therefore the input must be
    /// closed, or must be closed next.
    pub(in crate::programs) fn fail(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        fault: Fault,
        name: &str,
        exit_report: &ExitReport,
    ) {
        let first = cx.events.len();
        self.give_back(cx);
        self.in_flight.forget_cancelled();
        cx.events.extend(
            self.pending_notifications.drain(..).map(|it| BackendEvent::Unanswered { id: it.id }),
        );
        // If replies arrive in any order, each late request gets the deadline as its error.
        let (blamed, late) = (fault, fault.limit().filter(|_| self.tags.is_some()));
        let mut fault = fault;
        // Parts of the oldest reply may have been sent to the client.
        let mut is_told = self.is_streaming || self.stream.is_some() && self.is_begun();
        let mut again = Vec::new();
        while let Some(flight) = self.in_flight.pop() {
            let is_late = late.is_some_and(|limit| flight.dispatched + limit <= cx.io.settled());
            let own = if is_late { blamed } else { fault };
            if own.is_unattributed() && !is_told && flight.may_be_tried(self.tries) {
                again.push(flight.retry());
            } else {
                cx.events.push(BackendEvent::Answered {
                    id: flight.id,
                    outcome: own.outcome(name, exit_report),
                });
            }
            // Only the oldest request can be the cause. The other requests end because the program ends.
            fault = if fault.is_unattributed() { fault } else { Fault::Ended };
            is_told = false;
        }
        // They are older than those that never left our buffer.
        cx.events.splice(first..first, again);
    }
}
