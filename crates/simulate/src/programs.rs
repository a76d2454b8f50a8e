//! Programs on pipes. The HTTP of programs that serve HTTP is in [`crate::http`]; this module has only their processes.
//!
//! A program reads lines and answers each with a line, in order. Its *nature* determines its misbehaviour. The lines
//! that it received and printed are stored for the check: the reply to the n-th request of a program is the n-th line
//! that it printed, whatever that line contains.

use std::collections::VecDeque;

use spawn::{Pipes, Status};
use wire::{Decoder, Framing, OversizePolicy};

use crate::ids::FlowId;
use crate::scheduled_event::Moment;

/// How a program behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// It answers each line.
    Good,
    /// It sometimes takes longer than it may.
    Slow,
    /// It prints some replies twice.
    Twice,
    /// It prints a surplus line before each reply, from the first on.
    Strays,
    /// It exits with a request in flight, sometimes in the middle of the reply.
    Quits,
    /// It stops answering, sometimes in the middle of a reply.
    StopsAnswering,
    /// It prints lines without a request.
    Chatty,
    /// It closes its output and continues to run.
    ClosesOutput,
    /// It closes its input and continues to run.
    Refuses,
    /// It prints more than the maximum size of a reply.
    Floods,
    /// It ignores the end of its input and every SIGTERM.
    Stubborn,
    /// It exits immediately after its start.
    ExitsAtStart,
    /// It exits, and a child of it holds its pipes open.
    LeavesChild,
}

/// Splits bytes into complete frames and the rest after the last frame.
pub(crate) fn frames(framing: Framing, bytes: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut decoder = Decoder::new(framing, usize::MAX, OversizePolicy::End);
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(wire::Piece::Frame(range)) = decoder.next(bytes, &mut from) {
        found.push(&bytes[range]);
    }
    (found, &bytes[from..])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Starting,
    Running,
    Exited,
    Reported,
}

/// A future action of a program.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Say(Vec<u8>),
    Exit,
    CloseOutput,
    CloseInput,
    /// It listens on the socket that it received.
    Listen,
}

#[derive(Debug)]
pub(crate) struct Program {
    /// The shard that started it, and its token there.
    pub(crate) shard: usize,
    pub(crate) token: u64,
    pub(crate) nature: Nature,
    pub(crate) life: Life,
    pub(crate) status: Status,
    pub(crate) killed_early: bool,
    pub(crate) stdin: FlowId,
    pub(crate) stdout: FlowId,
    pub(crate) stderr: FlowId,
    /// Bytes that were read and are not a complete line yet.
    pub(crate) begun: Vec<u8>,
    /// Complete lines that it has read.
    pub(crate) heard: Vec<Vec<u8>>,
    /// All bytes that it has written.
    pub(crate) said: Vec<u8>,
    /// All bytes that the kernel accepted for it, read or not.
    pub(crate) given: Vec<u8>,
    pub(crate) acts: VecDeque<(Moment, Act)>,
    pub(crate) unwritten: VecDeque<u8>,
    /// Bytes that it still has to write to standard error.
    pub(crate) complaint: usize,
    pub(crate) input_over: bool,
    /// The time of its scheduled step.
    pub(crate) called: Option<Moment>,
    /// The number of requests until it misbehaves.
    pub(crate) patience: usize,
    /// The number of the HTTP server that this program is.
    pub(crate) serves: Option<usize>,
    pub(crate) pipes: Option<Pipes>,
}

impl Program {
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.life, Life::Starting | Life::Running)
    }
}

impl Program {
    /// Whether it prints surplus lines from the first request on.
    pub(crate) fn strays(&self) -> bool {
        self.nature == Nature::Strays
    }
}
