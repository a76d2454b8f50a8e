//! Events of the streams and processes of programs.

use exchange::WorkerId;

use super::pipes::{ProgramOutput, ProgramPipes, Suspects};
use super::{Fault, Pipe, Programs};
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;
use flow::stream_event::StreamEvent;

impl Programs {
    pub(crate) fn handle_stream_event(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        (worker, pipe): (WorkerId, Pipe),
        heard: StreamEvent<'_, '_>,
    ) {
        match heard {
            StreamEvent::Data(data) => self.handle_data(cx, worker, pipe, data),
            StreamEvent::Deadline(name) => {
                self.handle_deadline(cx, worker, pipe, name);
            }
            StreamEvent::Closed(_) => self.handle_closed(cx, worker, pipe),
            StreamEvent::Drained => {
                let deadline = self.config.deadline;
                if let Some(pipes) = self.find(worker).and_then(|program| program.pipes.as_mut()) {
                    pipes.handle_drained(cx, worker, deadline);
                }
            }
            // The end of a pipe is reported as its closing.
            StreamEvent::Connected | StreamEvent::Eof | StreamEvent::Relayed(..) => {}
        }
    }

    /// Kills a program whose output is not valid.
    pub(super) fn kill_for_output(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        said: &ProgramOutput,
    ) {
        let Some(program) = self.find(worker) else { return };
        let name = program.name.clone();
        let fault = match said {
            ProgramOutput::Fine | ProgramOutput::Ready => return,
            ProgramOutput::Unsolicited(frame) => {
                let hint = match program.served {
                    0 => "; if it is a greeting, set `ready = \"line\"`",
                    _ => "",
                };
                tracing::warn!(worker = name, "spoke though nothing was asked: {frame}{hint}");
                cx.events.push(BackendEvent::Discarded);
                Fault::Ended
            }
            ProgramOutput::Broken(text) => {
                tracing::warn!(worker = name, "does not keep to its framing: {text}");
                // If replies arrive in any order, the invalid output may belong to any of the requests.
                match program.pipes.as_ref().is_some_and(ProgramPipes::is_tagged) {
                    true => Fault::BrokenUnattributed(text),
                    false => Fault::Broken(text),
                }
            }
            ProgramOutput::TooLongUnattributed => {
                tracing::warn!(
                    worker = name,
                    "a reply without an id that could be read is longer than reply_max"
                );
                Fault::TooLongUnattributed
            }
            ProgramOutput::TooLong => {
                tracing::warn!(worker = name, "its reply is longer than reply_max");
                Fault::TooLong
            }
        };
        let is_reset = program.pipes.as_ref().is_some_and(ProgramPipes::is_reset);
        let is_unasked = matches!(said, ProgramOutput::Unsolicited(_));
        let pipes = program.pipes.as_mut().filter(|_| is_unasked);
        let suspects = pipes.and_then(ProgramPipes::take_suspects);
        program.kill(cx, fault);
        if is_reset {
            cx.events.push(BackendEvent::SpokeAfterReset);
            if !std::mem::replace(&mut self.known.is_strict, true) {
                tracing::warn!(
                    worker = name,
                    "printed something after its reply to `reset`: programs of this pool are \
                     replaced instead of reset until the next reload; remove `reset`, or have the \
                     program print its reply to `reset` last"
                );
            }
        }
        if let Some(suspects) = suspects {
            suspects.report(&name, !self.known.is_strict);
            let Suspects { count, requests } = suspects;
            cx.events.push(BackendEvent::Suspect { count, requests });
            self.known.is_strict = true;
            self.apply_alignment();
        }
    }
}
