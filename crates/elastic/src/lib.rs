//! How many workers a pool should have.
//!
//! What it is: one policy that grows and shrinks whatever can be started and ended: programs,
//! threads, connections; and beside it a pool of threads that follows it. What it depends on: counts and
//! times, both given to the policy; the pool has a clock and threads. What it must never depend on: what
//! a worker is, who asks for it; the policy, in addition, a clock.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod policy;
mod sizing;
mod threads;

pub use policy::{Advice, Load, Policy};
pub use sizing::{QUEUE_GROWS_ABOVE, Sizing};
pub use threads::{
    Drained, OpenError, Refusal, Refused, Serve, Statistics, Task, ThreadPool, ThreadPoolSettings,
    write_metrics,
};
