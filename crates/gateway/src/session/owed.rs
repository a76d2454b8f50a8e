//! The replies that a client is owed.
//!
//! ```text
//!   replies   [ ready ][ waiting, parts ][ ready ][ waiting ]   in the order of the requests
//!   number      first    first+1           …
//!                 └ written as soon as the client's output has room
//! ```
//!
//! In order, a reply behind one that waits is held. Out of order, each is written when it comes; it
//! keeps its place, empty, until all before it are written, so that numbers stay places.

use std::collections::VecDeque;

use exchange::{Cause, Outcome, Phase, RequestId, Slice};
use wire::Asked;

use crate::exchanges::Delivery;

/// What an error object must name, kept until the reply is written.
#[derive(Clone, Debug)]
pub(super) enum Name {
    /// This id.
    Id(Slice),
    /// The framing has no ids, or this one could not be read.
    Unknown,
    /// It was a notification: nothing may be answered.
    Nothing,
}

impl Name {
    pub(super) fn asked(&self) -> Asked<'_> {
        match self {
            Self::Id(id) => Asked::Id(id),
            Self::Unknown => Asked::Unknown,
            Self::Nothing => Asked::Nothing,
        }
    }
}

#[derive(Debug)]
struct Reply {
    /// Whose it is, while an outcome is waited for.
    request: Option<RequestId>,
    name: Name,
    /// What came of it and is not written.
    parts: VecDeque<Slice>,
    /// Some part of it came before.
    is_parted: bool,
    outcome: Option<Outcome>,
    written: bool,
}

/// What is to be written next.
pub(super) enum Ready {
    Part(Slice),
    End(Name, Outcome),
}

/// Replies by number.
#[derive(Debug)]
pub(super) struct Owed {
    replies: VecDeque<Reply>,
    /// The number of the first.
    first: u64,
    /// Bytes that are ready and not written.
    held: usize,
    in_order: bool,
    /// Out of order: numbers of those with something to write.
    changed: VecDeque<u64>,
}

/// Bytes that may be held for one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// For replies that wait for their turn.
    pub(super) held_max: usize,
    /// For all of its output.
    pub(super) send_max: usize,
}

impl Owed {
    pub(super) const fn new(in_order: bool) -> Self {
        Self { replies: VecDeque::new(), first: 0, held: 0, in_order, changed: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.replies.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// The number of the next one.
    pub(super) fn next_number(&self) -> u64 {
        self.first + self.replies.len() as u64
    }

    /// One that is waited for.
    pub(super) fn push(&mut self, request: RequestId, name: Name) {
        self.add(Some(request), name, None);
    }

    /// One that is ready.
    pub(super) fn push_ready(&mut self, outcome: Outcome, name: Name) {
        self.held += size(&outcome);
        let number = self.next_number();
        self.add(None, name, Some(outcome));
        self.note(number);
    }

    fn add(&mut self, request: Option<RequestId>, name: Name, outcome: Option<Outcome>) {
        self.replies.push_back(Reply {
            request,
            name,
            parts: VecDeque::new(),
            is_parted: false,
            outcome,
            written: false,
        });
    }

    fn note(&mut self, number: u64) {
        if !self.in_order {
            self.changed.push_back(number);
        }
    }

    /// Something came of request `number`. Where it is over a limit, an outcome that says so takes
    /// its place and is returned, with the request if more would come of that.
    pub(super) fn deliver(
        &mut self,
        number: u64,
        delivery: Delivery,
        limits: Limits,
    ) -> Option<(Option<RequestId>, Outcome)> {
        let place = usize::try_from(number.wrapping_sub(self.first)).ok()?;
        let waits_for_turn = self.in_order && place > 0;
        let reply = self.replies.get_mut(place).filter(|reply| reply.request.is_some())?;
        let (bytes, length) = match &delivery {
            Delivery::Part(part) => (part.held(), part.len()),
            Delivery::End(outcome) => (size(outcome), length(outcome)),
        };
        let over = if waits_for_turn && self.held + bytes > limits.held_max {
            Some(format!("replies that wait for their turn hold at most {} bytes", limits.held_max))
        } else if length > limits.send_max || reply.is_parted && self.held + bytes > limits.send_max
        {
            Some(format!("a client's output holds at most {} bytes", limits.send_max))
        } else {
            None
        };
        let mut told = None;
        match (over, delivery) {
            (Some(text), delivery) => {
                let outcome = Outcome::ended(Cause::Reply, Phase::Reply, &text);
                self.held += size(&outcome);
                let more = matches!(delivery, Delivery::Part(_));
                told = Some((reply.request.take().filter(|_| more), outcome.clone()));
                reply.outcome = Some(outcome);
            }
            (None, Delivery::Part(part)) => {
                self.held += bytes;
                reply.is_parted = true;
                reply.parts.push_back(part);
            }
            (None, Delivery::End(outcome)) => {
                self.held += bytes;
                reply.request = None;
                reply.outcome = Some(outcome);
            }
        }
        self.note(number);
        told
    }

    /// What can be written next. It is written by whoever takes it.
    pub(super) fn pop_ready(&mut self) -> Option<Ready> {
        loop {
            let place = if self.in_order { 0 } else { self.changed_place()? };
            let reply = self.replies.get_mut(place)?;
            if let Some(part) = reply.parts.pop_front() {
                self.held -= part.held();
                return Some(Ready::Part(part));
            }
            let Some(outcome) = reply.outcome.take() else {
                if self.in_order {
                    return None;
                }
                self.changed.pop_front();
                continue;
            };
            self.held -= size(&outcome);
            reply.written = true;
            let name = std::mem::replace(&mut reply.name, Name::Unknown);
            // What ends a reply of parts without saying more, or answers a notification.
            let adds_nothing =
                reply.is_parted && matches!(&outcome, Outcome::Reply(rest) if rest.is_empty());
            let says_nothing = adds_nothing || matches!(name, Name::Nothing);
            if !self.in_order {
                self.changed.pop_front();
            }
            while self.replies.front().is_some_and(|reply| reply.written) {
                self.replies.pop_front();
                self.first += 1;
            }
            if !says_nothing {
                return Some(Ready::End(name, outcome));
            }
        }
    }

    /// The place of the first that has something to write, out of order.
    fn changed_place(&mut self) -> Option<usize> {
        loop {
            let number = *self.changed.front()?;
            match usize::try_from(number.wrapping_sub(self.first)) {
                Ok(place) if place < self.replies.len() => return Some(place),
                // Written already, with an earlier note of it.
                _ => self.changed.pop_front(),
            };
        }
    }

    /// The request whose parts are being written: the only one that a worker should wait for.
    pub(super) fn streaming(&self) -> Option<RequestId> {
        self.replies.front().filter(|reply| reply.is_parted)?.request
    }

    /// The request with this id of the client's own.
    pub(super) fn find(&self, id: &[u8]) -> Option<RequestId> {
        let mut replies = self.replies.iter();
        let found = replies.find(|reply| matches!(&reply.name, Name::Id(name) if name[..] == *id));
        found.and_then(|reply| reply.request)
    }

    /// The requests that are waited for.
    pub(super) fn requests(&self) -> impl Iterator<Item = RequestId> {
        self.replies.iter().filter_map(|reply| reply.request)
    }
}

/// Bytes that an outcome puts into the client's output, a few of marks excepted.
fn length(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Reply(body) | Outcome::Ended(_, body) => body.len(),
    }
}

/// Bytes that an outcome keeps in memory.
fn size(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Reply(body) | Outcome::Ended(_, body) => body.held(),
    }
}
