//! Clients.
//!
//! What it is: one session for each client, which finds requests in received bytes and writes replies in the order
//! and the protocol of its client; routes; and what a listener is configured with. What it depends on: protocols
//! (`wire`), routes (`route`), the streams of clients. What it must never depend on: a pool, a worker, the engine behind
//! [`flow::requests::Requests`].

#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations)]

pub mod bodies;
pub mod listener;
pub mod rate;
pub mod routing;
pub mod session;
pub mod transport;
