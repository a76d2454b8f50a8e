//! Clients: what they send, how they read, and how they leave.
//!
//! ```text
//!   Away ──connects──▶ There ──its own end, the gateway's, or a reset──▶ Done
//! ```

use std::time::Duration;

use crate::happening::Moment;
use crate::ids::ConnectionId;

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Whole,
    /// Longer than its listener takes.
    TooLong,
    /// The last one, without its end.
    Begun,
}

/// A line that a client sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) id: u64,
    pub(crate) kind: LineKind,
    /// Where it ends in all that the client sends.
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
    /// It ends its direction once all is sent, and reads to the end.
    HalfCloses,
    /// It closes when all is answered.
    WhenAnswered,
    /// It stays until the gateway ends the connection.
    Stays,
    /// It closes after so long, whatever is still to come.
    Closes(Duration),
    /// It resets the connection after so long.
    Resets(Duration),
    /// Its host vanishes after so long, and nobody is told.
    Vanishes(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Away,
    There,
    Done,
}

/// How a client saw its connection end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The gateway ended it in good order.
    Eof,
    /// It was reset.
    Reset,
    /// The client itself left.
    Own,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) lines: Vec<Line>,
    pub(crate) bytes: Vec<u8>,
    /// Bytes of these that were sent.
    pub(crate) sent: usize,
    pub(crate) received: Vec<u8>,
    pub(crate) end: Option<End>,
    /// Why it cannot hold the gateway to all of its replies.
    pub(crate) excused: Option<&'static str>,
    pub(crate) listener: usize,
    pub(crate) reading: Reading,
    pub(crate) leaving: Leaving,
    /// Lines that it sends before it wants an answer.
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
    /// The next line may begin then.
    pub(crate) pause_until: Moment,
    pub(crate) reads_at: Moment,
}

impl Client {
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Lines that were sent whole.
    pub(crate) fn lines_sent(&self) -> usize {
        self.lines
            .iter()
            .filter(|line| line.end <= self.sent && line.kind != LineKind::Begun)
            .count()
    }

    /// Nobody ends a connection to it that it does not end itself.
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
