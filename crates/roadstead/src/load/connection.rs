//! One connection of a load.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use event::StreamId;

use super::settings::RECONNECT_AFTER;

/// A line that is in flight or about to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) id: u64,
    /// When the line was due, in nanoseconds after the start.
    pub(super) due_ns: u64,
}

/// The state of a connection.
///
/// ```text
///   Waiting ──its time has come──► Opening ──► Open ──lost──► Waiting
///                                     └──failed──► Waiting      └──► Gone, if it is not reopened
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    Waiting,
    Opening(StreamId),
    Open(StreamId),
    Gone,
}

/// One connection of a load.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) link: ConnectionState,
    /// Whether the connection was open before.
    pub(super) was_open: bool,
    /// The number of consecutive times that it was lost or could not be opened.
    failures: u32,
    /// The number of its next line, from 0.
    pub(super) number: u64,
    /// Lines without a reply, oldest first. Replies arrive in the order of the lines.
    pub(super) outstanding: VecDeque<Line>,
    /// Refused lines and the time when they may be sent again, oldest first.
    pub(super) again: VecDeque<(Instant, Line)>,
}

impl Connection {
    pub(super) fn new() -> Self {
        Self {
            link: ConnectionState::Waiting,
            was_open: false,
            failures: 0,
            number: 0,
            outstanding: VecDeque::new(),
            again: VecDeque::new(),
        }
    }

    pub(super) fn stream(&self) -> Option<StreamId> {
        match self.link {
            ConnectionState::Opening(stream) | ConnectionState::Open(stream) => Some(stream),
            ConnectionState::Waiting | ConnectionState::Gone => None,
        }
    }

    /// Resets the failures, because a reply has arrived.
    pub(super) fn reset_failures(&mut self) {
        self.failures = 0;
    }

    /// Returns how long to wait before the connection is reopened. The wait doubles with each consecutive failure.
    pub(super) fn back_off(&mut self) -> Duration {
        let (first, most) = RECONNECT_AFTER;
        let wait = first.saturating_mul(1 << self.failures.min(16)).min(most);
        self.failures += 1;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most_and_begin_anew_after_a_reply() {
        let mut connection = Connection::new();
        let waits: Vec<_> = (0..9).map(|_| connection.back_off().as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        connection.reset_failures();
        assert_eq!(connection.back_off(), RECONNECT_AFTER.0);
    }
}
