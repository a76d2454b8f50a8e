//! The exchanges: every request of a shard, from its receipt to its end.
//!
//! ```text
//!              admit            dispatch
//!   Received ────────▶ Waiting ──────────▶ Working ──┐
//!      ▲ │ └───────────── dispatch ────────────▲  │    │ next (`then`)
//!      │ │                │  └── give back ───┘  │    │
//!      │ └── end          └── end               └ end │
//!      └──────────────────────────────────────────────┘
//!
//!   Received, Waiting ──pass on──▶ Received: the fallback pool receives it
//!   Received, Working ──cross──▶ Away: another shard has it and reports its end
//! ```
//!
//! A *Received* exchange is about to be queued or dispatched, a *Waiting* one is in the queue of its pool and can be
//! removed with its ticket, a *Working* one was sent to a worker. An end removes the exchange. If a worker still has
//! the request, its reply carries a stale id and is discarded.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use exchange::{ListenerId, Place, PoolId, RequestId, Stamps, Table, WorkerId};
use pool::{Failed, Ticket};

use flow::client::{Client, Source};
use flow::json_reply::JsonReply;
use flow::window::Window;
use observe::access_log::AccessEntry;

/// The state of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Received,
    Waiting(Ticket),
    Working(WorkerId),
    /// On another shard.
    Away(u32),
}

/// A transition of an exchange, other than its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// It is queued in a pool.
    Admit(Ticket),
    /// It is sent to a worker.
    Dispatch(WorkerId),
    /// It was not delivered to its worker, and is queued again.
    GiveBack(Ticket),
    /// Its reply becomes a request to the next pool.
    Next,
    /// It goes to the fallback pool.
    PassOn,
    /// It goes to the owner shard of its pool.
    Cross(u32),
}

impl State {
    /// The transition table. `None`: the transition is impossible.
    pub(crate) const fn after(self, step: Move) -> Option<Self> {
        match (self, step) {
            (Self::Received, Move::Admit(ticket)) | (Self::Working(_), Move::GiveBack(ticket)) => {
                Some(Self::Waiting(ticket))
            }
            // A request to a connection's own program is not queued.
            (Self::Waiting(_) | Self::Received, Move::Dispatch(worker)) => {
                Some(Self::Working(worker))
            }
            (Self::Working(_), Move::Next) => Some(Self::Received),
            (Self::Received | Self::Waiting(_), Move::PassOn) => Some(Self::Received),
            (Self::Received | Self::Working(_), Move::Cross(owner)) => Some(Self::Away(owner)),
            _ => None,
        }
    }

    /// The index in [`STATES`].
    const fn number(self) -> usize {
        match self {
            Self::Received => 0,
            Self::Waiting(_) => 1,
            Self::Working(_) => 2,
            Self::Away(_) => 3,
        }
    }

    /// The other shard that has the exchange.
    pub(crate) const fn owner(self) -> Option<u32> {
        match self {
            Self::Away(owner) => Some(owner),
            Self::Received | Self::Waiting(_) | Self::Working(_) => None,
        }
    }
}

impl Move {
    /// The index in [`MOVES`].
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

/// The names of states and transitions, in the order of their numbers.
const STATES: [&str; 4] = ["received", "waiting", "working", "away"];
const MOVES: [&str; 6] = ["admit", "dispatch", "give back", "next", "pass on", "cross"];

/// The transitions that occurred in this process, one bit each.
static MADE: AtomicU32 = AtomicU32::new(0);

/// The transitions of exchanges that occurred in this process, each as the names of the old state and of the
/// transition. For tests: they are recorded only with debug assertions.
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

/// What is known of a request in its current pool. It is forgotten when the request goes to another pool.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    /// The affinity target that its cookie names, a value of [`pool::Pool::affinity_target`].
    pub(crate) named: Option<u64>,
    /// The same target, if the cookie need not be renewed.
    pub(crate) knows: Option<u64>,
    /// Workers of this pool that failed the request.
    pub(crate) failed: Failed,
    /// The reply in progress counts as a failure of its worker.
    pub(crate) is_bad: bool,
    /// The status of the reply in progress; 0: none.
    pub(crate) status: u16,
}

/// One request and its state.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) client: Client,
    /// The address of the client and the listener that received the request.
    pub(crate) source: Source,
    /// The time of its receipt, in microseconds since the Unix epoch.
    pub(crate) at_us: i64,
    pub(crate) stamps: Stamps,
    /// The time at which the last byte of the body arrived, if that was after the head.
    pub(crate) body_end: Option<Instant>,
    /// Its access log entry, if it is logged.
    pub(crate) log_entry: Option<Box<AccessEntry>>,
    /// Collected parts of the reply, for a client that needs it as a whole.
    pub(crate) parts: Vec<u8>,
    /// Flow control of its parts between two shards.
    pub(crate) window: Window,
    /// The current pool.
    pub(crate) pool: PoolId,
    /// What concerns the workers of the current pool.
    pub(crate) attempt: Attempt,
    /// How to convert the reply of a worker that does not use the client's protocol.
    pub(crate) json_reply: Option<JsonReply>,
    pub(crate) state: State,
}

impl Exchange {
    /// Makes a transition.
    ///
    /// # Panics
    /// When the transition is impossible: an exchange in two places could answer two clients.
    pub(crate) fn step(&mut self, step: Move, now: Instant) {
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
        // These values refer to workers of the old pool.
        if matches!(step, Move::Next | Move::PassOn) {
            self.attempt = Attempt::default();
        }
    }
}

/// All exchanges of a shard.
///
/// Request numbers are unique across shards without coordination: shard 0 of 3 assigns 1, 4, 7 and so on. A number is
/// never reused. Exchanges are found by index and generation, not by number.
#[derive(Debug)]
pub(crate) struct Exchanges {
    table: Table<RequestId, Numbered>,
    shard: u32,
    /// The next number, and the difference between two numbers of this shard.
    next: u64,
    step: u64,
    /// The number of exchanges of other shards' clients.
    from_shards: usize,
}

#[derive(Debug)]
struct Numbered {
    number: u64,
    exchange: Exchange,
}

impl Exchanges {
    /// The empty table of one of `shards` shards.
    pub(crate) fn of_shard(shard: u32, shards: usize) -> Self {
        let (next, step) = (u64::from(shard) + 1, shards.max(1) as u64);
        Self { table: Table::default(), shard, next, step, from_shards: 0 }
    }

    /// The number of a new request. A request of another shard keeps its number.
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

    pub(crate) fn insert(&mut self, exchange: Exchange) -> RequestId {
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

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut Exchange> {
        if id.shard() != self.shard {
            return None;
        }
        self.table.get_mut(id).map(|it| &mut it.exchange)
    }

    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Exchange> {
        if id.shard() != self.shard {
            return None;
        }
        let Numbered { exchange, .. } = self.table.remove(id)?;
        self.from_shards -= usize::from(is_guest(&exchange));
        Some(exchange)
    }

    /// Like [`Self::remove`], but returns only the client.
    pub(crate) fn close(&mut self, id: RequestId) -> Option<Client> {
        let exchange = self.get_mut(id)?;
        let from_shard = usize::from(is_guest(exchange));
        let client = std::mem::replace(&mut exchange.client, Client::Nobody);
        self.from_shards -= from_shard;
        self.table.vacate(id);
        Some(client)
    }

    /// Closes the exchange if it exists and `may` returns true. Returns its client, time of receipt and listener.
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
            closed = Some((client, exchange.stamps.received, exchange.source.listener));
            true
        });
        if let Some((Client::OffShard { .. }, ..)) = &closed {
            self.from_shards -= 1;
        }
        closed
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    #[expect(clippy::wrong_self_convention, reason = "it is no conversion")]
    pub(crate) const fn from_shards(&self) -> usize {
        self.from_shards
    }

    pub(crate) fn ids(&self) -> Vec<RequestId> {
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
