#![doc = include_str!("../README.md")]
//!
//! # Scope
//!
//! What it is: the queue, the balancing, the session affinity, the health, the fallback, the number of workers and the
//! back-off of one pool, as one state machine. `handle_*` processes an event; [`Pool::poll_effect`] returns the effects
//! of it, one at a time. What it depends on: requests with a size in bytes, and workers with a number of slots. What it
//! must never depend on: the content of a request, the kind of a worker, the protocol of a worker, a clock, a source of
//! randomness. The time and a seed are arguments.

mod address_limiter;
mod affinity;
mod backoff;
mod cookie;
mod effect;
mod failed;
mod fallback;
mod health;
mod list;
mod pool;
mod queue;
mod queueable;
mod random;
mod recycle;
mod request_traits;
mod schedule;
mod settings;
mod status;
mod tokens;
mod update;
mod why;
mod worker_table;
mod workers;

pub use crate::pool::Pool;
pub use address_limiter::{AddressLimiter, AddressLimiterSettings, Over, Rate};
pub use affinity::{AffinityLimits, shared_key};
pub use cookie::{CookieCodec, CookieFault, CookieMode, CookieValue, prefixed, split_prefixed};
pub use effect::{Effect, Refused};
pub use exchange::AdminState;
pub use failed::{Failed, Retry};
pub use fallback::{FallbackReason, FallbackSettings};
pub use health::{FailRate, HealthCause, HealthChange, HealthRecord, HealthSettings, HealthState};
pub use queue::{QueueEntry, Ticket};
pub use queueable::Queueable;
pub use request_traits::{PRIORITIES, PRIORITY_DEFAULT, RequestTraits};
pub use schedule::Choice;
pub use settings::{
    BackoffSettings, Batching, Gone, Member, QueueLimits, RecycleSettings, Schedule, Settings,
    Sticky, WEIGHT_MAX,
};
pub use status::{Counts, Gauges, Room, Status, WorkerView};
pub use tokens::{Released, Tokens};
pub use update::{PoolUpdate, WorkerUpdate};
pub use why::{Decided, Decision, Out, PLACES_SEEN};
pub use worker_table::Control;

/// Returns the position of a hash key on the hash ring. It is the same in every daemon.
#[must_use]
pub fn hash(key: &[u8]) -> u64 {
    affinity::Key::new(key).hash()
}
