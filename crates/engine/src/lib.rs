//! Requests between frontends and backends.
//!
//! What it is: every request of a shard, from its submission to its end; the pools with their queues; and the messages
//! between shards about requests. It takes requests from frontends and events from backends, and returns commands for
//! workers, events for sessions, and messages for other shards. What it depends on: pools (`pool`), and keys and
//! cookies in parsed heads. What it must never depend on: a stream, a worker's protocol, a frontend, a backend.

#![forbid(unsafe_code)]

pub mod aggregator;
pub mod backlog;
pub mod balance;
pub mod barrier;
pub mod cookies;
pub mod engine;
pub mod exchanges;
pub mod pool_config;
pub mod request_keys;
mod session_affinity;
pub mod shard_group;
pub mod shard_link;
pub mod shard_message;
