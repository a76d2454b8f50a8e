//! The end of a link: its pipes close, and what the program had is given back or ends.

use event::Context;

use super::ProgramPipes;
use crate::programs::fault::ExitReport;
use crate::programs::{Fault, Pipe};
use flow::backend_event::BackendEvent;

impl ProgramPipes {
    /// A pipe has ended. Called while the stream can still be asked what it did not send.
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
                    // Without a byte of output there was no last look at it.
                    self.whole.get_or_insert_default();
                }
            }
            Pipe::Error => {}
        }
    }

    /// Closes the input once all is sent: it serves nobody else, whatever it prints.
    pub(in crate::programs) fn finish(&mut self, io: &mut Context<'_>) {
        if let Some(reset) = &mut self.reset {
            reset.handle_end();
        }
        if let Some(input) = self.input {
            io.finish(input, None);
        }
    }

    /// Closes both pipes at once.
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

    /// Gives back what never left our buffer, in its order. The buffer must not be sent any more.
    /// A process that was started for one request has it, whether it reads it or not.
    pub(in crate::programs) fn give_back(
        &mut self,
        io: &Context<'_>,
        events: &mut Vec<BackendEvent>,
    ) {
        if self.is_oneshot() {
            return;
        }
        let accepted = self.accepted(io);
        let mut unsent = Vec::new();
        while let Some(flight) = self.in_flight.pop_unsent(accepted) {
            unsent.push((flight.start, flight.unsent()));
        }
        unsent.extend(self.unsent_notices(accepted));
        unsent.sort_unstable_by_key(|(start, ..)| *start);
        events.extend(unsent.into_iter().map(|(_, back)| back));
    }

    /// Ends what is in the program's hands. What never left our buffer is given back; so the input
    /// must be closed, or be closed next.
    pub(in crate::programs) fn fail(
        &mut self,
        io: &Context<'_>,
        fault: Fault,
        name: &str,
        exit_report: &ExitReport,
        events: &mut Vec<BackendEvent>,
    ) {
        let first = events.len();
        self.give_back(io, events);
        self.in_flight.forget_cancelled();
        events.extend(self.notices.drain(..).map(|it| BackendEvent::Unanswered { id: it.id }));
        // Where replies come in any order, each that is late is told so.
        let (blamed, late) = (fault, fault.limit().filter(|_| self.tags.is_some()));
        let mut fault = fault;
        // Parts of the oldest reply may have gone on.
        let mut is_told = self.is_streaming || self.stream.is_some() && self.is_begun();
        let mut again = Vec::new();
        while let Some(flight) = self.in_flight.pop() {
            let is_late = late.is_some_and(|limit| flight.dispatched + limit <= io.now());
            let own = if is_late { blamed } else { fault };
            if own.is_of_nobody() && !is_told && flight.may_be_tried(self.tries) {
                again.push(flight.retry());
            } else {
                events.push(BackendEvent::Answered {
                    id: flight.id,
                    outcome: own.outcome(name, exit_report),
                });
            }
            // Only the oldest is to blame for what was said or not said; the others go with it.
            fault = if fault.is_of_nobody() { fault } else { Fault::Ended };
            is_told = false;
        }
        // They are older than those that never left our buffer.
        events.splice(first..first, again);
    }
}
