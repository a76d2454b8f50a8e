//! Datagrams between the gateway's loop and hosts that send them: some are lost on their way in, some
//! come twice, some are too long; the kernel's buffers are small, and now and then it tells of one of
//! ours that found nobody.

use std::collections::VecDeque;

use crate::happening::Moment;
use crate::ids::DescriptorId;

/// One datagram and what became of it.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) bytes: Vec<u8>,
    /// How often it came to the socket.
    pub(crate) arrived: usize,
    pub(crate) answers: Vec<Vec<u8>>,
    /// The kernel dropped it or its answer, as it may.
    pub(crate) excused: bool,
}

/// All datagrams of a world, and the one socket that they go to.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) letters: Vec<Letter>,
    pub(crate) socket: Option<DescriptorId>,
    /// Those that can be received.
    pub(crate) arrived: VecDeque<usize>,
    /// Answers that still have a place in the buffer for sending.
    pub(crate) leaving: usize,
    /// Datagrams that each buffer holds.
    pub(crate) room: usize,
    pub(crate) last_at: Moment,
}

impl Datagrams {
    pub(crate) fn can_be_received(&self) -> bool {
        !self.arrived.is_empty()
    }

    pub(crate) const fn can_be_sent(&self) -> bool {
        self.leaving < self.room
    }
    /// Where a datagram was not answered as often as it came, with its own bytes.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (number, letter) in self.letters.iter().enumerate() {
            let (came, answers) = (letter.arrived, letter.answers.len());
            if letter.answers.iter().any(|answer| *answer != letter.bytes) {
                found.push(format!("datagram {number} got the answer to another"));
            }
            if answers > came || (answers < came && !letter.excused) {
                found.push(format!("datagram {number} came {came} times, answered {answers}"));
            }
        }
        found
    }
}
