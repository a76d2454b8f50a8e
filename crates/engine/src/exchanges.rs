//! The exchanges: every request from its receipt to its end.
//!
//! ```text
//!              admit            dispatch
//!   Received ────────▶ Waiting ──────────▶ Working ──┐
//!      ▲ │ └───────────── dispatch ────────────▲  │    │ next (`then`)
//!      │ │                │  └── give back ───┘  │    │
//!      │ └── end          └── end               └ end │
//!      └──────────────────────────────────────────────┘
//!
//!   Received, Waiting ──pass on──▶ Received: its pool is sorry, another answers
//!   Received, Working ──cross──▶ Away: another shard has it, and tells its end
//! ```
//!
//! *Received* belongs to the engine for a moment only, *Waiting* is in its pool's queue and can be
//! taken out with its ticket, *Working* is in the hands of one worker. An end removes the exchange;
//! the worker that still has it in its hands answers to a stale id, and that answer is discarded.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use exchange::{ListenerId, Peer, Place, PoolId, RequestId, Stamps, Table, WorkerId};
use pool::{Failed, Ticket};

use flow::client::Client;
use flow::json_reply::JsonReply;
use flow::window::Window;
use observe::access_log::AccessEntry;

/// How far an exchange has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Received,
    Waiting(Ticket),
    Working(WorkerId),
    /// Another shard has it.
    Away(u32),
}

/// What can happen to it, short of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A pool took it into its queue.
    Admit(Ticket),
    /// A worker got it.
    Dispatch(WorkerId),
    /// It never reached its worker and waits again.
    GiveBack(Ticket),
    /// Its reply becomes a request of the next pool.
    Next,
    /// Its pool is sorry, and another answers for it.
    PassOn,
    /// It goes to the home of its pool, which is another shard.
    Cross(u32),
}

impl State {
    /// The table of moves; `None` is a move that cannot happen.
    pub const fn after(self, step: Move) -> Option<Self> {
        match (self, step) {
            (Self::Received, Move::Admit(ticket)) | (Self::Working(_), Move::GiveBack(ticket)) => {
                Some(Self::Waiting(ticket))
            }
            // Without waiting: to the program that is its connection's own.
            (Self::Waiting(_) | Self::Received, Move::Dispatch(worker)) => {
                Some(Self::Working(worker))
            }
            (Self::Working(_), Move::Next) => Some(Self::Received),
            (Self::Received | Self::Waiting(_), Move::PassOn) => Some(Self::Received),
            (Self::Received | Self::Working(_), Move::Cross(home)) => Some(Self::Away(home)),
            _ => None,
        }
    }

    /// Its place among the states, and its word.
    const fn number(self) -> usize {
        match self {
            Self::Received => 0,
            Self::Waiting(_) => 1,
            Self::Working(_) => 2,
            Self::Away(_) => 3,
        }
    }

    /// The shard that has it, where that is another.
    pub const fn home(self) -> Option<u32> {
        match self {
            Self::Away(home) => Some(home),
            Self::Received | Self::Waiting(_) | Self::Working(_) => None,
        }
    }
}

impl Move {
    /// Its place among the moves, and its word.
    const fn number(self) -> usize {
        match self {
            Self::Admit(_) => 0,
            Self::Dispatch(_) => 1,
            Self::GiveBack(_) => 2,
            Self::Next => 3,
            Self::PassOn => 4,
            Self::Cross(_) => 5,
        }
    }
}

/// The words of states and moves, in the order of their numbers.
const STATES: [&str; 4] = ["received", "waiting", "working", "away"];
const MOVES: [&str; 6] = ["admit", "dispatch", "give back", "next", "pass on", "cross"];

/// The moves that were made in this process, a bit each.
static MADE: AtomicU32 = AtomicU32::new(0);

/// The moves of exchanges that were made in this process, each by the words of its state and its own.
/// They are only noted where debug assertions are: for tests.
#[must_use]
pub fn moves_made() -> Vec<(&'static str, &'static str)> {
    let made = MADE.load(Ordering::Relaxed);
    let all = (0..STATES.len()).flat_map(|state| (0..MOVES.len()).map(move |step| (state, step)));
    all.filter(|(state, step)| (made >> bit(*state, *step)) & 1 == 1)
        .map(|(state, step)| (STATES[state], MOVES[step]))
        .collect()
}

const fn bit(state: usize, step: usize) -> usize {
    state * MOVES.len() + step
}

/// One request on its way.
#[derive(Debug)]
pub struct Exchange {
    pub client: Client,
    pub peer: Peer,
    /// Microseconds since the Unix epoch at its receipt.
    pub at_us: i64,
    pub stamps: Stamps,
    /// The listener by which it came; none: it came from this process.
    pub listener: Option<ListenerId>,
    /// When the last byte of its body came, if that was after its head.
    pub(crate) body_end: Option<Instant>,
    /// What its line in the access log is made of, if it is to have one.
    pub log_entry: Option<Box<AccessEntry>>,
    /// Parts of its reply that nobody can take one by one.
    pub parts: Vec<u8>,
    /// Its parts on their way between two shards.
    pub window: Window,
    /// The pool that has it now.
    pub pool: PoolId,
    /// The worker of this pool that it names, as [`pool::Pool::berth`] tells it.
    pub named: Option<u64>,
    /// The same, if its client need not be told again when that worker answers.
    pub knows: Option<u64>,
    /// Workers of this pool that have failed it.
    pub failed: Failed,
    /// How what a worker answers becomes a reply, where it does not speak its client's protocol.
    pub json_reply: Option<JsonReply>,
    /// What is being answered speaks against its worker.
    pub(crate) is_bad: bool,
    /// The status of what is being answered; 0: it has none.
    pub status: u16,
    pub state: State,
}

impl Exchange {
    /// Makes a move.
    ///
    /// # Panics
    /// When the table does not allow it: an exchange in two places could answer two clients.
    pub fn step(&mut self, step: Move, now: Instant) {
        let next = self.state.after(step);
        if cfg!(debug_assertions) && next.is_some() {
            let made = 1 << bit(self.state.number(), step.number());
            MADE.fetch_or(made, Ordering::Relaxed);
        }
        self.state = next.expect("an exchange moves as its table says");
        match step {
            Move::Admit(_) => self.stamps.admitted = Some(now),
            Move::Dispatch(_) => self.stamps.dispatched = Some(now),
            Move::Next => self.stamps.first_byte = Some(now),
            Move::GiveBack(_) | Move::PassOn | Move::Cross(_) => {}
        }
        // Another pool has other workers.
        if matches!(step, Move::Next | Move::PassOn) {
            self.named = None;
            self.knows = None;
            self.failed = Failed::default();
            self.is_bad = false;
            self.status = 0;
        }
    }
}

/// All exchanges of a shard.
///
/// The requests of all shards are numbered together without a word between them: shard 0 of 3 gives the numbers
/// 1, 4, 7 and so on. A number is never given twice. It does not find an exchange: place and generation do.
#[derive(Debug)]
pub struct Exchanges {
    table: Table<RequestId, Numbered>,
    shard: u32,
    /// The number of the next, and how far the numbers of a shard are apart.
    next: u64,
    step: u64,
    /// Those of clients of other shards.
    from_shards: usize,
}

#[derive(Debug)]
struct Numbered {
    number: u64,
    exchange: Exchange,
}

impl Exchanges {
    /// Those of one of so many shards.
    pub fn of_shard(shard: u32, shards: usize) -> Self {
        let (next, step) = (u64::from(shard) + 1, shards.max(1) as u64);
        Self { table: Table::default(), shard, next, step, from_shards: 0 }
    }

    /// The number of a new request. One of another shard keeps its own, so users see one number for it.
    fn number_for(&mut self, client: &Client) -> u64 {
        match client {
            Client::OffShard { request, .. } => request.as_u64(),
            _ => self.take_number(),
        }
    }

    fn take_number(&mut self) -> u64 {
        let number = self.next;
        self.next += self.step;
        number
    }

    pub fn insert(&mut self, exchange: Exchange) -> RequestId {
        self.from_shards += usize::from(is_guest(&exchange));
        let number = self.number_for(&exchange.client);
        let place = self.table.insert(Numbered { number, exchange });
        request_id(self.shard, place, number)
    }

    /// The id of a request that is rejected before it becomes an exchange.
    pub(crate) fn id_of_rejected(&mut self) -> RequestId {
        let place = self.table.skip();
        request_id(self.shard, place, self.take_number())
    }

    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut Exchange> {
        if id.shard() != self.shard {
            return None;
        }
        self.table.get_mut(id).map(|it| &mut it.exchange)
    }

    pub fn remove(&mut self, id: RequestId) -> Option<Exchange> {
        if id.shard() != self.shard {
            return None;
        }
        let Numbered { exchange, .. } = self.table.remove(id)?;
        self.from_shards -= usize::from(is_guest(&exchange));
        Some(exchange)
    }

    /// As [`Self::remove`], of one of which only the client is wanted.
    pub fn close(&mut self, id: RequestId) -> Option<Client> {
        let exchange = self.get_mut(id)?;
        let from_shard = usize::from(is_guest(exchange));
        let client = std::mem::replace(&mut exchange.client, Client::Nobody);
        self.from_shards -= from_shard;
        self.table.vacate(id);
        Some(client)
    }

    /// Closes this one, if it is there and `may` says so. Its client, and when it was received.
    pub(crate) fn close_if(
        &mut self,
        id: RequestId,
        may: impl FnOnce(&Exchange) -> bool,
    ) -> Option<(Client, Instant, Option<ListenerId>)> {
        if id.shard() != self.shard {
            return None;
        }
        let mut closed = None;
        self.table.vacate_if(id, |Numbered { exchange, .. }| {
            if !may(exchange) {
                return false;
            }
            let client = std::mem::replace(&mut exchange.client, Client::Nobody);
            closed = Some((client, exchange.stamps.received, exchange.listener));
            true
        });
        if let Some((Client::OffShard { .. }, ..)) = &closed {
            self.from_shards -= 1;
        }
        closed
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) const fn from_shards(&self) -> usize {
        self.from_shards
    }

    pub fn ids(&self) -> Vec<RequestId> {
        self.table.iter().map(|(place, it)| request_id(self.shard, place, it.number)).collect()
    }
}

const fn request_id(shard: u32, place: Place, number: u64) -> RequestId {
    RequestId::on_shard(shard, place.index, place.generation, number)
}

const fn is_guest(exchange: &Exchange) -> bool {
    matches!(exchange.client, Client::OffShard { .. })
}

#[cfg(test)]
mod tests;
