//! What programs are told of their streams and their processes.

use event::Calls;
use exchange::WorkerId;
use spawn::Report;

use super::{Pipe, Programs};
use crate::outside::Outside;
use crate::upward::Upward;
use crate::workers::Heard;

impl Programs {
    pub(crate) fn hear(
        &mut self,
        calls: &mut Calls<'_>,
        (worker, pipe): (WorkerId, Pipe),
        heard: Heard<'_, '_>,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        match heard {
            Heard::Data(data) => self.handle_data(calls, worker, pipe, data, outside, up),
            Heard::Deadline(name) => self.handle_deadline(calls, worker, pipe, name, outside, up),
            Heard::Closed(_) => self.handle_closed(calls, worker, pipe, outside, up),
            Heard::Drained => {
                if let Some(link) = self.find(worker).and_then(|program| program.link.as_mut()) {
                    link.handle_drained(worker, up);
                }
            }
            // The end of a pipe is its closing.
            Heard::Connected | Heard::Eof | Heard::Relayed(..) => {}
        }
    }

    /// What the keeper says of the process of a worker.
    pub(crate) fn handle_report(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        report: Report,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        match report {
            Report::Started { pid, pipes, .. } => {
                self.handle_started(calls, worker, pid, pipes, outside, up);
            }
            Report::StartFailed { token, error } => {
                outside.tokens.remove(&token);
                self.handle_start_failed(worker, &error, up);
            }
            Report::Exited { exit, .. } => self.handle_exited(calls, worker, exit, outside, up),
            // Neither is of one process.
            Report::KeeperLost | Report::KeeperBack => {}
        }
    }
}
