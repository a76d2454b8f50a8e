//! Clients: what they send, how they read, and how they leave.
//!
//! ```text
//!   Away ──connects──▶ There ──end by the client, end by the gateway, or reset──▶ Done
//! ```

use std::time::Duration;

use crate::ids::ConnectionId;
use crate::scheduled_event::Moment;

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Whole,
    /// Longer than its listener accepts.
    TooLong,
    /// The last line, without a line end.
    Begun,
}

/// A line that a client sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) id: u64,
    pub(crate) kind: LineKind,
    /// The offset of its end in all bytes of the client.
    pub(crate) end: usize,
}

/// How a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    AtOnce,
    Slowly { bytes: usize, every: Duration },
    Never,
}

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It half-closes when all is sent, and reads until the end.
    HalfCloses,
    /// It closes when all its requests are answered.
    WhenAnswered,
    /// It stays until the gateway ends the connection.
    Stays,
    /// It closes after this time, even if replies are outstanding.
    Closes(Duration),
    /// It resets the connection after this time.
    Resets(Duration),
    /// Its host vanishes after this time, without any notification.
    Vanishes(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Away,
    There,
    Done,
}

/// How the connection ended for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The gateway closed it.
    Eof,
    /// It was reset.
    Reset,
    /// The client left.
    Own,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) lines: Vec<Line>,
    pub(crate) bytes: Vec<u8>,
    /// The number of these bytes that were sent.
    pub(crate) sent: usize,
    pub(crate) received: Vec<u8>,
    pub(crate) end: Option<End>,
    /// Why the client cannot expect all its replies.
    pub(crate) excused: Option<&'static str>,
    pub(crate) listener: usize,
    pub(crate) reading: Reading,
    pub(crate) leaving: Leaving,
    /// The number of lines that it sends before it waits for a reply.
    pub(crate) window: usize,
    pub(crate) pace: Duration,
    pub(crate) chunk: usize,
    pub(crate) state: State,
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) connected_at: Moment,
    pub(crate) replies: usize,
    pub(crate) half_closed: bool,
    pub(crate) progress_at: Moment,
    pub(crate) called: Option<Moment>,
    /// The next line may begin at this time.
    pub(crate) pause_until: Moment,
    pub(crate) reads_at: Moment,
}

impl Client {
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Returns the number of lines that were sent completely.
    pub(crate) fn lines_sent(&self) -> usize {
        self.lines
            .iter()
            .filter(|line| line.end <= self.sent && line.kind != LineKind::Begun)
            .count()
    }

    /// Changes how the client leaves, for a peer that never ends a connection first.
    pub(crate) fn expects_an_echo(&mut self) {
        let begun = self.lines.last().is_some_and(|line| line.kind == LineKind::Begun);
        self.leaving = match self.leaving {
            Leaving::Stays => Leaving::HalfCloses,
            Leaving::WhenAnswered if begun => Leaving::HalfCloses,
            leaving => leaving,
        };
    }

    pub(crate) fn leaves_at(&self) -> Option<Moment> {
        match self.leaving {
            Leaving::Closes(after) | Leaving::Resets(after) | Leaving::Vanishes(after) => {
                Some(self.connected_at + after)
            }
            _ => None,
        }
    }
}
