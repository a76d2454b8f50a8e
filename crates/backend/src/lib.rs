//! Workers.
//!
//! What it is: programs on pipes, connections to HTTP servers, programs that serve HTTP, handlers on threads, and
//! health checks of all of them. Each kind encodes protocol-neutral requests for its workers and reports events. What
//! it depends on: protocols (`wire`), the spawner (`spawn`), the streams of workers. What it must never depend on: a
//! client, a queue, a pool, the engine.

#![forbid(unsafe_code)]

pub mod backend;
pub mod backends;
pub mod connection_counts;
pub mod handler_threads;
pub mod health_checks;
mod off_shard;
pub mod programs;
pub mod spawned_http;
pub mod system;
pub mod upstream;
pub mod workers;
