//! Client sessions.
//!
//! What it is: one session for each client, which decodes requests and encodes replies in the order and the protocol of
//! its client; routes; and the configuration of listeners. What it depends on: protocols (`wire`), routes (`route`),
//! the streams of clients. What it must never depend on: a pool, a worker, the engine behind
//! [`flow::requests::Requests`].

#![forbid(unsafe_code)]

pub mod bodies;
pub mod connection;
mod context;
pub mod listener;
pub mod protocol;
pub mod rate;
pub mod routing;
pub mod session;
pub mod transport;
