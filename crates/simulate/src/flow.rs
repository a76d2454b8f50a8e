//! One direction of a connection or a pipe: bytes in transit, and bytes that have arrived.
//!
//! ```text
//!   writer ──put──▶ [ transit: arrives at … ] ──arrive──▶ [ ready ] ──take──▶ reader
//!                   └────────────── together at most `capacity` ────┘
//! ```

use std::collections::VecDeque;

use crate::ids::Party;
use crate::scheduled_event::Moment;

#[derive(Debug)]
enum Item {
    Bytes(Vec<u8>),
    End,
}

#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) reader: Party,
    pub(crate) writer: Party,
    transit: VecDeque<(Moment, Item)>,
    bytes_in_transit: usize,
    ready: VecDeque<u8>,
    capacity: usize,
    /// The writer has ended the flow.
    pub(crate) end_sent: bool,
    /// The end has arrived: no bytes follow those that are ready.
    pub(crate) ended: bool,
    /// The reader has closed its end; arriving bytes are dropped.
    pub(crate) deaf: bool,
    /// The connection was cut, or the host at the other end vanished: nothing arrives any more.
    pub(crate) lost: bool,
    last_arrival: Moment,
}

/// The result of an arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) bytes: usize,
    pub(crate) end: bool,
    /// Bytes for a closed reader were dropped.
    pub(crate) dropped: bool,
}

impl Flow {
    pub(crate) fn new(writer: Party, reader: Party, capacity: usize) -> Self {
        Self {
            reader,
            writer,
            transit: VecDeque::new(),
            bytes_in_transit: 0,
            ready: VecDeque::new(),
            capacity,
            end_sent: false,
            ended: false,
            deaf: false,
            lost: false,
            last_arrival: Moment::ZERO,
        }
    }

    /// Returns the number of bytes that can be put in.
    pub(crate) fn space(&self) -> usize {
        self.capacity.saturating_sub(self.waiting())
    }

    /// Returns the number of bytes that were put in and not taken out.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes_in_transit + self.ready.len()
    }

    /// Whether everything that was put in has arrived.
    pub(crate) fn has_arrived(&self) -> bool {
        self.transit.is_empty()
    }

    /// Returns the number of bytes that can be taken out.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Puts bytes in. They arrive at `at`, but not before earlier bytes. Returns the time of their arrival.
    pub(crate) fn put(&mut self, bytes: Vec<u8>, at: Moment) -> Moment {
        self.bytes_in_transit += bytes.len();
        self.push(Item::Bytes(bytes), at)
    }

    /// Ends the flow after all its bytes.
    pub(crate) fn put_end(&mut self, at: Moment) -> Moment {
        self.end_sent = true;
        self.push(Item::End, at)
    }

    fn push(&mut self, item: Item, at: Moment) -> Moment {
        self.last_arrival = self.last_arrival.max(at);
        self.transit.push_back((self.last_arrival, item));
        self.last_arrival
    }

    /// Returns the time at which everything that was put in has arrived.
    pub(crate) const fn last_arrival(&self) -> Moment {
        self.last_arrival
    }

    /// Delivers everything that is due at `now`.
    pub(crate) fn arrive(&mut self, now: Moment) -> Arrival {
        let mut arrival = Arrival::default();
        while !self.lost && self.transit.front().is_some_and(|(at, _)| *at <= now) {
            match self.transit.pop_front() {
                Some((_, Item::Bytes(bytes))) => {
                    self.bytes_in_transit -= bytes.len();
                    if self.deaf {
                        arrival.dropped = true;
                    } else {
                        arrival.bytes += bytes.len();
                        self.ready.extend(bytes);
                    }
                }
                Some((_, Item::End)) => {
                    self.ended = true;
                    arrival.end = true;
                }
                None => {}
            }
        }
        arrival
    }

    /// Takes up to `room.len()` bytes out.
    pub(crate) fn take(&mut self, room: &mut [u8]) -> usize {
        let count = room.len().min(self.ready.len());
        for (to, from) in room.iter_mut().zip(self.ready.drain(..count)) {
            *to = from;
        }
        count
    }

    /// Takes up to `most` bytes out.
    pub(crate) fn take_some(&mut self, most: usize) -> Vec<u8> {
        let count = most.min(self.ready.len());
        self.ready.drain(..count).collect()
    }

    /// Drops everything in transit and everything that is sent later, so that no gap occurs in the bytes.
    pub(crate) fn cut(&mut self) {
        self.lost = true;
        self.transit.clear();
        self.bytes_in_transit = 0;
    }

    /// Closes the reading end. Returns true if bytes that had arrived were not read.
    pub(crate) fn leave(&mut self) -> bool {
        self.deaf = true;
        let unread = !self.ready.is_empty();
        self.ready.clear();
        unread
    }
}
