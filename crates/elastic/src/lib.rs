#![doc = include_str!("../README.md")]
//!
//! # Scope
//!
//! What it is: a policy that decides when to start and when to end workers (programs, threads or connections), and a
//! thread pool that follows the policy. What it depends on: counts and times, which are arguments of the policy; the
//! thread pool has a clock and threads. What it must never depend on: the kind of the workers and the source of their
//! requests; in addition, the policy must not depend on a clock.

#![forbid(unsafe_code)]

mod policy;
mod sizing;
mod threads;

pub use policy::{Advice, Load, Policy};
pub use sizing::{QUEUE_GROWS_ABOVE, Sizing};
pub use threads::{
    Drained, OpenError, Refusal, Refused, Serve, Statistics, Task, ThreadPool, ThreadPoolSettings,
    write_metrics,
};
