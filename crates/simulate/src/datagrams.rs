//! Datagrams between the loop of the gateway and the hosts that send them. Some are lost on their way in, some arrive
//! twice, some are too long. The buffers of the kernel are small, and sometimes the kernel reports that a datagram of
//! the gateway found no receiver.

use std::collections::VecDeque;

use crate::ids::DescriptorId;
use crate::scheduled_event::Moment;

/// A datagram and its history.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) bytes: Vec<u8>,
    /// How often it arrived at the socket.
    pub(crate) arrived: usize,
    pub(crate) answers: Vec<Vec<u8>>,
    /// Whether the kernel dropped it or its reply, which is allowed.
    pub(crate) excused: bool,
}

/// All datagrams of a world, and the one socket to which they are sent.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) all: Vec<Datagram>,
    pub(crate) socket: Option<DescriptorId>,
    /// The datagrams that can be received.
    pub(crate) arrived: VecDeque<usize>,
    /// The number of replies that still occupy the send buffer.
    pub(crate) leaving: usize,
    /// The number of datagrams that each buffer holds.
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
    /// Returns an error for each datagram that was not answered as often as it arrived, with the same bytes.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (number, datagram) in self.all.iter().enumerate() {
            let (came, answers) = (datagram.arrived, datagram.answers.len());
            if datagram.answers.iter().any(|answer| *answer != datagram.bytes) {
                found.push(format!("datagram {number} got the answer to another"));
            }
            if answers > came || (answers < came && !datagram.excused) {
                found.push(format!("datagram {number} came {came} times, answered {answers}"));
            }
        }
        found
    }
}
