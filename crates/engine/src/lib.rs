//! Requests between frontends and workers.
//!
//! What it is: every request that a shard has, from its submission to its end; the pools with their queues; and
//! what a shard says to the others about requests. It takes requests from frontends and reports from workers, and
//! returns effects, replies and messages. What it knows: pools (`pool`), keys and cookies in neutral heads. What it
//! must never know: a stream, a worker's protocol, a frontend, a backend.

#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations)]

pub mod aggregator;
pub mod backlog;
pub mod balance;
pub mod barrier;
pub mod cookies;
pub mod engine;
pub mod exchanges;
pub mod pool_config;
pub mod request_keys;
pub mod session_affinity;
pub mod shard_group;
pub mod shard_link;
pub mod shard_message;
