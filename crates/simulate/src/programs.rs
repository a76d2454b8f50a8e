//! Programs on pipes. Those that serve HTTP do so in [`crate::http`]; here they have their process alone.
//!
//! A program reads lines and answers each with a line, in their order; its *nature* says where it
//! goes wrong. What it was given and what it said is kept, for the checker: the answer to a
//! program's n-th request is the n-th line that it said, whatever that is.

use std::collections::VecDeque;

use spawn::{Pipes, Status};
use wire::{Decoder, Framing, Over};

use crate::happening::Moment;
use crate::ids::FlowId;

/// How a program behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// It answers each line.
    Good,
    /// It takes longer than it may, now and then.
    Slow,
    /// It says some answers twice.
    Twice,
    /// It says a line more before each answer, from the first on.
    Strays,
    /// It exits with a request in its hands, sometimes in the middle of the answer.
    Quits,
    /// It stops answering, sometimes in the middle of an answer.
    Mute,
    /// It speaks though nothing was asked.
    Chatty,
    /// It closes its output and lives on.
    Hides,
    /// It closes its input and lives on.
    Refuses,
    /// It says more than one answer may be long.
    Floods,
    /// It ignores the end of its input and every request to end.
    Stubborn,
    /// It exits as soon as it was started.
    StillBorn,
    /// It exits, and somebody it started holds its pipes open.
    LeavesChild,
}

/// Complete frames, and what follows the last of them.
pub(crate) fn frames(framing: Framing, bytes: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut decoder = Decoder::new(framing, usize::MAX, Over::End);
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

/// Something that a program will say or do.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Say(Vec<u8>),
    Exit,
    CloseOutput,
    CloseInput,
    /// It listens on the socket that it was given.
    Listen,
}

#[derive(Debug)]
pub(crate) struct Program {
    /// The shard that started it, and the name that it has there.
    pub(crate) shard: usize,
    pub(crate) token: u64,
    pub(crate) nature: Nature,
    pub(crate) life: Life,
    pub(crate) status: Status,
    pub(crate) killed_early: bool,
    pub(crate) stdin: FlowId,
    pub(crate) stdout: FlowId,
    pub(crate) stderr: FlowId,
    /// Read and not yet a line.
    pub(crate) begun: Vec<u8>,
    /// Complete lines that it has read.
    pub(crate) heard: Vec<Vec<u8>>,
    /// What it has written, all of it.
    pub(crate) said: Vec<u8>,
    /// What the kernel took for it, whether it has read that or not.
    pub(crate) given: Vec<u8>,
    pub(crate) acts: VecDeque<(Moment, Act)>,
    pub(crate) unwritten: VecDeque<u8>,
    /// Bytes for standard error.
    pub(crate) complaint: usize,
    pub(crate) input_over: bool,
    /// The moment for which it is called.
    pub(crate) called: Option<Moment>,
    /// Requests until it goes wrong.
    pub(crate) patience: usize,
    /// The server of HTTP that it is.
    pub(crate) serves: Option<usize>,
    pub(crate) pipes: Option<Pipes>,
}

impl Program {
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.life, Life::Starting | Life::Running)
    }
}

impl Program {
    /// Whether it says more than it is asked, from the first on.
    pub(crate) fn strays(&self) -> bool {
        self.nature == Nature::Strays
    }
}
