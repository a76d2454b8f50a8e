//! What shards tell each other, and what each keeps of it.
//!
//! ```text
//!   client's shard                               home of the pool
//!   exchange, Away ──Request, Word, Cancel,──▶   exchange of the client `Elsewhere`
//!                    Abandon, Taken
//!                  ◀──Delivery, Taken─────────
//! ```
//!
//! What it knows: ids, counts of bytes, mailboxes. What it must never know: a pool, a session.

use std::sync::Arc;
use std::time::Duration;

use exchange::{Cause, ListenerId, Peer, PoolId, RequestId, Slice, Stamps, WorkerId};
use pool::Failed;

use crate::backlog::Backlog;
use crate::core::Word;
use crate::exchanges::{Delivery, SessionId};
use crate::fleet::Fleet;
use crate::form::Form;
use crate::logbook::Trail;
use crate::mail::Mail;
use crate::receipts::Receipt;
use crate::servers::Room;
use crate::table::Table;

/// Requests of one shard that may be away at once.
pub(crate) const AWAY_MAX: u32 = 65_536;

/// A request on its way to the home of its pool.
#[derive(Debug)]
pub(crate) struct Passed {
    /// Its id at the shard of its client.
    pub(crate) from: RequestId,
    pub(crate) pool: PoolId,
    pub(crate) peer: Peer,
    pub(crate) at_us: i64,
    pub(crate) stamps: Stamps,
    pub(crate) listener: Option<ListenerId>,
    pub(crate) session: Option<SessionId>,
    /// Its line is written where it is counted.
    pub(crate) trail: Option<Box<Trail>>,
    pub(crate) body: Slice,
    pub(crate) form: Form,
    /// What a branch has read of it already, and who has failed it there.
    pub(crate) named: Option<u64>,
    pub(crate) knows: Option<u64>,
    pub(crate) failed: Failed,
}

/// What a client of HTTP was told of its request while that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rejected {
    pub(crate) status: u16,
    /// The rule that it broke; empty: another cause.
    pub(crate) reason: &'static str,
}

/// One thing that a shard tells another.
#[derive(Debug)]
pub(crate) enum Crossing {
    Request(Box<Passed>),
    /// What a client says of a request, by its id at the client's shard.
    Word(RequestId, Word),
    /// Its client takes it back.
    Cancel(RequestId),
    /// Nobody wants its reply any more. What its client was told instead, if anything.
    Abandon(RequestId, Cause, Option<Rejected>),
    /// What comes of it, for its client.
    Delivery(RequestId, Delivery),
    /// What a connection's own program of this pool says unasked.
    Said(SessionId, PoolId, Slice),
    /// A connection's own program has exited well.
    Finished(SessionId),
    /// So many bytes of that were taken.
    Heard(SessionId, PoolId, usize),
    /// What a program of this pool says to all its clients.
    Announced(PoolId, Slice),
    /// A connection takes nothing of what its own program of this pool says, or takes it again.
    Hush(SessionId, PoolId, bool),
    /// So many bytes of its parts were taken; named by its id at the client's shard, in both
    /// directions.
    Taken(RequestId, usize),
    /// A connection is gone, which may have a program of its own in this pool.
    Left(SessionId, PoolId),
    /// No client of that shard may ask any more.
    Serving,
    /// A token of a worker goes to the home of its pool: with the place of the worker.
    Token(PoolId, u32),
    /// The home of a pool tells its branches who serves.
    News(PoolId, Arc<pool::News>),
    /// A branch could not bring a request to a worker, by its id at home.
    Unreached(PoolId, WorkerId),
    /// A link that rests is to go for one of another shard: a pool and the place of its worker.
    Spare(PoolId, usize),
    /// How a request ended that a worker was given at a branch.
    Judged {
        pool: PoolId,
        worker: WorkerId,
        good: bool,
        took: Duration,
    },
    /// Whoever gave an order is answered when all shards have let go of this; what follows from the
    /// order was told before.
    Receipt(Receipt),
    /// Pools at home there have room again.
    Room,
    /// A branch of this pool serves nobody any more, and asks nothing of its home.
    Ended(PoolId),
}

impl Crossing {
    /// The pool that it is about, where that may have gone by the time it is told.
    pub(crate) fn pool(&self) -> Option<PoolId> {
        match self {
            Self::Request(passed) => Some(passed.pool),
            Self::Hush(_, pool, _)
            | Self::Heard(_, pool, _)
            | Self::Left(_, pool)
            | Self::Token(pool, _)
            | Self::News(pool, _)
            | Self::Unreached(pool, _)
            | Self::Spare(pool, _)
            | Self::Judged { pool, .. }
            | Self::Ended(pool) => Some(*pool),
            // Of those it is compared only, or the request says which.
            Self::Said(..)
            | Self::Announced(..)
            | Self::Word(..)
            | Self::Cancel(_)
            | Self::Abandon(..)
            | Self::Delivery(..)
            | Self::Finished(_)
            | Self::Taken(..)
            | Self::Serving
            | Self::Receipt(_)
            | Self::Room => None,
        }
    }
}

/// What one shard tells another in one turn, in its order.
#[derive(Debug)]
pub struct Crossings(pub(crate) Vec<Crossing>);

/// The parts of one exchange on their way between two shards.
///
/// ```text
///   sent and not taken  ≤ window, but for the one part that reaches it
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// Bytes that were sent and not taken.
    sent: usize,
    /// Bytes that were taken and not told.
    taken: usize,
    /// The receiver wants none.
    unwanted: bool,
}

impl Window {
    /// So many bytes go. True when that fills it: whoever brings them is to stop.
    pub(crate) fn send(&mut self, bytes: usize, window: usize) -> bool {
        let open = self.sent < window;
        self.sent += bytes;
        open && self.sent >= window && !self.unwanted
    }

    /// The other side took so many. True when whoever brings them is to go on.
    pub(crate) fn credit(&mut self, bytes: usize, window: usize) -> bool {
        let full = self.sent >= window;
        self.sent = self.sent.saturating_sub(bytes);
        full && self.sent < window && !self.unwanted
    }

    /// The receiver wants more, or none. True when whoever brings it is to be told.
    pub(crate) fn want(&mut self, wanted: bool, window: usize) -> bool {
        self.unwanted = !wanted;
        self.sent < window
    }

    /// So many were taken here. Gives what the other side is to be told, now and then.
    pub(crate) fn take(&mut self, bytes: usize, window: usize) -> Option<usize> {
        self.taken += bytes;
        (self.taken >= window / 4).then(|| std::mem::take(&mut self.taken))
    }
}

/// What a shard has to do with others.
pub(crate) struct Others {
    fleet: Arc<Fleet>,
    me: u32,
    /// What is told each at the end of the turn.
    out: Vec<Vec<Crossing>>,
    /// Ids here of requests of other shards, by shard and by their place there.
    guests: Vec<Vec<(RequestId, RequestId)>>,
    /// Requests that are away.
    pub(crate) away: u32,
    /// Which shards have said that their clients may ask no more; our own as well.
    serving: Vec<bool>,
    /// The home of each pool.
    homes: Table<PoolId, u32>,
}

impl Others {
    pub(crate) fn new(fleet: Arc<Fleet>, me: u32) -> Self {
        let count = fleet.length();
        Self {
            me,
            out: (0..count).map(|_| Vec::new()).collect(),
            guests: vec![Vec::new(); count],
            away: 0,
            serving: vec![false; count],
            homes: fleet.homes(),
            fleet,
        }
    }

    pub(crate) const fn me(&self) -> u32 {
        self.me
    }

    /// Whether new requests are to be rejected for want of memory. What was found out in an earlier turn
    /// may hold no longer.
    pub(crate) fn lacks_memory(&self) -> bool {
        let memory = self.fleet.memory();
        memory.is_over() && self.fleet.held() > memory.low()
    }

    /// Counts a request of so many bytes on its way to another shard. False when there is no room.
    pub(crate) fn post_bytes(&self, shard: u32, bytes: usize) -> bool {
        self.fleet.post_bytes(shard, bytes)
    }

    /// A request of so many bytes has come from another shard.
    pub(crate) fn take_bytes(&self, bytes: usize) {
        self.fleet.take_bytes(self.me, bytes);
    }

    pub(crate) fn window(&self) -> usize {
        self.fleet.window()
    }

    /// The home of a pool, where that is another shard.
    pub(crate) fn elsewhere(&self, pool: PoolId) -> Option<u32> {
        self.homes.get(pool).copied().filter(|home| *home != self.me)
    }

    /// How many links all shards together have to the servers of a pool that all serve.
    pub(crate) fn room(&self, pool: PoolId) -> Option<Room> {
        self.fleet.shared(pool).map(|shared| shared.room)
    }

    /// How many shards serve a pool at home here besides this one, and its tokens; none for one
    /// that its home alone serves.
    pub(crate) fn shares(&self, pool: PoolId) -> Option<(u32, Vec<Arc<pool::Tokens>>)> {
        let others = u32::try_from(self.out.len() - 1).unwrap_or(u32::MAX);
        self.fleet.shared(pool).map(|shared| (others, shared.tokens))
    }

    /// Whether there is no other shard.
    pub(crate) fn is_alone(&self) -> bool {
        self.out.len() == 1
    }

    /// What all shards know of the queue of a pool.
    pub(crate) fn backlog(&self, pool: PoolId) -> &Backlog {
        self.fleet.backlog(pool)
    }

    pub(crate) fn tell(&mut self, shard: u32, crossing: Crossing) {
        self.out[shard as usize].push(crossing);
    }

    /// Sends what was to be told.
    pub(crate) fn send(&mut self) {
        for (shard, out) in self.out.iter_mut().enumerate() {
            if !out.is_empty() {
                let crossings = Crossings(std::mem::take(out));
                let from = self.me;
                let to = u32::try_from(shard).unwrap_or_default();
                self.fleet.mailbox(to).post(Mail::Shard { from, crossings });
            }
        }
    }

    /// A request of another shard has this id here.
    pub(crate) fn invite(&mut self, from: RequestId, here: RequestId) {
        let guests = &mut self.guests[from.shard() as usize];
        if guests.len() <= from.index() {
            guests.resize(from.index() + 1, (from, here));
        }
        guests[from.index()] = (from, here);
    }

    /// The id here of a request of another shard; it may have ended.
    pub(crate) fn guest(&self, from: RequestId) -> Option<RequestId> {
        let guests = self.guests.get(from.shard() as usize)?;
        guests.get(from.index()).filter(|(id, _)| *id == from).map(|(_, here)| *here)
    }

    /// Our own clients may ask no more.
    pub(crate) fn say_serving(&mut self) {
        self.serving[self.me as usize] = true;
        self.tell_all(|| Crossing::Serving);
    }

    /// Tells every other shard.
    pub(crate) fn tell_all(&mut self, crossing: impl Fn() -> Crossing) {
        for (shard, out) in self.out.iter_mut().enumerate() {
            if shard != self.me as usize {
                out.push(crossing());
            }
        }
    }

    /// Whether our own clients may ask no more.
    pub(crate) fn has_said_serving(&self) -> bool {
        self.serving[self.me as usize]
    }

    pub(crate) fn note_serving(&mut self, shard: u32) {
        if let Some(serving) = self.serving.get_mut(shard as usize) {
            *serving = true;
        }
    }

    /// Whether no client of any shard may ask any more.
    pub(crate) fn all_serve(&self) -> bool {
        self.serving.iter().all(|serving| *serving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_sends_stops_at_the_window_and_goes_on_with_credit() {
        let mut window = Window::default();
        assert!(!window.send(99, 100));
        assert!(window.send(1, 100), "full");
        assert!(!window.send(50, 100), "it was told");
        assert!(!window.credit(50, 100), "still full");
        assert!(window.credit(1, 100));
        assert!(window.want(false, 100), "its receiver wants none");
        assert!(!window.send(1, 100) && !window.credit(90, 100), "and goes before credit");
        assert!(window.want(true, 100));
    }

    #[test]
    fn what_was_taken_is_told_by_quarters_of_the_window() {
        let mut window = Window::default();
        assert_eq!(window.take(24, 100), None);
        assert_eq!(window.take(10, 100), Some(34));
        assert_eq!(window.take(24, 100), None);
    }
}
