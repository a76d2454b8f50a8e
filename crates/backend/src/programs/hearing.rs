//! What programs are told of their streams and their processes.

use event::Calls;
use exchange::WorkerId;
use spawn::Report;

use super::link::{Link, Said, Suspects};
use super::{Fault, Pipe, Programs};
use crate::system::System;
use flow::backend_event::BackendEvent;
use flow::stream_event::StreamEvent;

impl Programs {
    pub(crate) fn hear(
        &mut self,
        calls: &mut Calls<'_>,
        (worker, pipe): (WorkerId, Pipe),
        heard: StreamEvent<'_, '_>,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        match heard {
            StreamEvent::Data(data) => self.handle_data(calls, worker, pipe, data, system, up),
            StreamEvent::Deadline(name) => {
                self.handle_deadline(calls, worker, pipe, name, system, up);
            }
            StreamEvent::Closed(_) => self.handle_closed(calls, worker, pipe, system, up),
            StreamEvent::Drained => {
                let deadline = self.plan.deadline;
                if let Some(link) = self.find(worker).and_then(|program| program.link.as_mut()) {
                    link.handle_drained(calls, worker, deadline, up);
                }
            }
            // The end of a pipe is its closing.
            StreamEvent::Connected | StreamEvent::Eof | StreamEvent::Relayed(..) => {}
        }
    }

    /// Whether the connection whose own it is hears what it says unasked.
    pub(crate) fn set_heard(&mut self, worker: WorkerId, heard: bool) {
        if let Some(link) = self.find(worker).and_then(|program| program.link.as_mut()) {
            link.set_heard(heard);
        }
    }

    /// That connection asks nothing more, or has `gone`; `replaced`: it is to serve no other. Where the
    /// connection has gone its end is nobody's loss unless it fails, until it is told to forget.
    pub(crate) fn leave(&mut self, worker: WorkerId, gone: bool, replaced: bool) {
        let Some(program) = self.find(worker) else { return };
        program.is_left |= gone;
        if let Some(link) = program.link.as_mut() {
            link.leave(replaced);
        }
    }

    /// It said what cannot be: it is killed.
    pub(super) fn condemn(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        said: &Said,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(program) = self.find(worker) else { return };
        let name = program.name.clone();
        let fault = match said {
            Said::Fine | Said::Ready => return,
            Said::Unasked(frame) => {
                let hint = match program.served {
                    0 => "; if it is a greeting, set `ready = \"line\"`",
                    _ => "",
                };
                tracing::warn!(worker = name, "spoke though nothing was asked: {frame}{hint}");
                up.push(BackendEvent::Discarded);
                Fault::Ended
            }
            Said::Broken(text) => {
                tracing::warn!(worker = name, "does not keep to its framing: {text}");
                // Where replies come in any order, it may be about any of the requests.
                match program.link.as_ref().is_some_and(Link::is_tagged) {
                    true => Fault::BrokenForSomebody(text),
                    false => Fault::Broken(text),
                }
            }
            Said::TooLongForSomebody => {
                tracing::warn!(
                    worker = name,
                    "a reply without an id that could be read is longer than reply_max"
                );
                Fault::TooLongForSomebody
            }
            Said::TooLong => {
                tracing::warn!(worker = name, "its reply is longer than reply_max");
                Fault::TooLong
            }
        };
        let is_reset = program.link.as_ref().is_some_and(Link::is_reset);
        let is_unasked = matches!(said, Said::Unasked(_));
        let link = program.link.as_mut().filter(|_| is_unasked);
        let suspects = link.and_then(Link::found_out);
        program.kill(calls, system, fault, up);
        if is_reset {
            up.push(BackendEvent::SpokeAfterReset);
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
            up.push(BackendEvent::Suspect { count, requests });
            self.known.is_strict = true;
            self.tell_alignment();
        }
    }

    /// What the keeper says of the process of a worker.
    pub(crate) fn handle_report(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        report: Report,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        match report {
            Report::Started { pid, pipes, .. } => {
                self.handle_started(calls, worker, pid, pipes, up);
            }
            Report::StartFailed { token, error } => {
                system.tokens.remove(&token);
                self.handle_start_failed(worker, &error, up);
            }
            Report::Exited { exit, .. } => self.handle_exited(calls, worker, exit, system, up),
            // Neither is of one process.
            Report::KeeperLost | Report::KeeperBack => {}
        }
    }
}
