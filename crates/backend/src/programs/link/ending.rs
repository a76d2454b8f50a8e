//! The end of a link: its pipes close, and what the program had is given back or ends.

use event::Calls;

use super::Link;
use crate::programs::fault::ExitReport;
use crate::programs::{Fault, Pipe};
use flow::backend_event::BackendEvent;

impl Link {
    /// A pipe has ended. Called while the stream can still be asked what it did not send.
    pub(in crate::programs) fn handle_closed(&mut self, calls: &Calls<'_>, pipe: Pipe) {
        match pipe {
            Pipe::Input => {
                self.accepted_at_close = self.accepted(calls);
                let unread = self.input.map_or(0, |input| calls.left_unread(input));
                self.read_at_close = self.accepted_at_close.saturating_sub(unread);
                self.input = None;
            }
            Pipe::Output => {
                self.output = None;
                if self.is_oneshot() {
                    // Without a byte of output there was no last look at it.
                    self.whole.get_or_insert_default();
                }
            }
            Pipe::Error => {}
        }
    }

    /// Closes the input once all is sent: it serves nobody else, whatever it prints.
    pub(in crate::programs) fn finish(&mut self, calls: &mut Calls<'_>) {
        if let Some(reset) = &mut self.reset {
            reset.handle_end();
        }
        if let Some(input) = self.input {
            calls.finish(input, None);
        }
    }

    /// Closes both pipes at once.
    pub(in crate::programs) fn close(&mut self, calls: &mut Calls<'_>) {
        self.accepted_at_close = self.accepted(calls);
        if let Some(input) = self.input {
            let unread = calls.left_unread(input);
            self.read_at_close = self.accepted_at_close.saturating_sub(unread);
        }
        for stream in [self.input.take(), self.output.take()].into_iter().flatten() {
            calls.close(stream);
        }
    }

    /// Gives back what never left our buffer, in its order. The buffer must not be sent any more.
    /// A process that was started for one request has it, whether it reads it or not.
    pub(in crate::programs) fn give_back(&mut self, calls: &Calls<'_>, up: &mut Vec<BackendEvent>) {
        if self.is_oneshot() {
            return;
        }
        let accepted = self.accepted(calls);
        let mut unsent = Vec::new();
        while let Some(flight) = self.in_flight.pop_unsent(accepted) {
            unsent.push((flight.start, flight.unsent()));
        }
        unsent.extend(self.unsent_notices(accepted));
        unsent.sort_unstable_by_key(|(start, ..)| *start);
        up.extend(unsent.into_iter().map(|(_, back)| back));
    }

    /// Ends what is in the program's hands. What never left our buffer is given back; so the input
    /// must be closed, or be closed next.
    pub(in crate::programs) fn fail(
        &mut self,
        calls: &Calls<'_>,
        fault: Fault,
        name: &str,
        exit_report: &ExitReport,
        up: &mut Vec<BackendEvent>,
    ) {
        let first = up.len();
        self.give_back(calls, up);
        self.in_flight.forget_cancelled();
        up.extend(self.notices.drain(..).map(|it| BackendEvent::Unanswered { id: it.id }));
        // Where replies come in any order, each that is late is told so.
        let (blamed, late) = (fault, fault.limit().filter(|_| self.tags.is_some()));
        let mut fault = fault;
        // Parts of the oldest reply may have gone on.
        let mut is_told = self.is_streaming || self.stream.is_some() && self.is_begun();
        let mut again = Vec::new();
        while let Some(flight) = self.in_flight.pop() {
            let is_late = late.is_some_and(|limit| flight.dispatched + limit <= calls.now());
            let own = if is_late { blamed } else { fault };
            if own.is_of_nobody() && !is_told && flight.may_be_tried(self.tries) {
                again.push(flight.again());
            } else {
                up.push(BackendEvent::Answered {
                    id: flight.id,
                    outcome: own.outcome(name, exit_report),
                });
            }
            // Only the oldest is to blame for what was said or not said; the others go with it.
            fault = if fault.is_of_nobody() { fault } else { Fault::Ended };
            is_told = false;
        }
        // They are older than those that never left our buffer.
        up.splice(first..first, again);
    }
}
