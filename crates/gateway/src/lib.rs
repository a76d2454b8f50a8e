//! The data plane: shards, one loop each.
//!
//! What it is: client sessions, the pools with their workers, and a request's way between them.
//! What it knows: two kinds of worker, a program's link (bytes over streams) and a handler (a call
//! on a thread). What it must never know: a database, an async runtime, where a configuration
//! comes from.
//!
//! Life of a request, one file a step:
//!
//! ```text
//!   session ──line──▶ core.submit ──▶ pool ──Dispatch──▶ program │ handler
//!      ▲                                                     │
//!      └── flush, in order ◀── core.finished ◀── core.complete ◀── reply
//!                                                  └── then ──▶ the next pool
//! ```

#![forbid(unsafe_code)]

mod access;
mod address_limits;
mod backend_effect;
mod backends;
mod backlog;
mod balance;
mod bindings;
mod bodies;
mod build;
mod calendar;
mod checks;
mod client;
mod closings;
mod connection_counts;
mod cookies;
mod core;
mod crossing;
mod delivery;
mod descriptors;
mod door;
mod drain;
mod error;
mod exchanges;
mod fleet;
mod form;
mod forwarding;
mod gather;
mod handlers;
mod hosted;
mod http_request;
mod http_status;
mod ids;
mod journal;
mod listener;
mod logbook;
mod mail;
mod memory;
pub mod metrics;
mod names;
mod order;
mod others;
mod outside;
mod owners;
mod page;
mod payload;
mod permit;
mod plain_reply;
mod pool_config;
mod printable;
mod programs;
mod question;
mod rate;
mod receipts;
mod rejected;
mod reload;
mod reply_head;
mod request_control;
mod request_keys;
mod request_shape;
mod requests;
mod routing;
mod servers;
mod session;
mod shard;
mod shard_group;
mod shares;
mod status;
mod stream_event;
mod translation;
mod transport;
mod turned;
mod upward;
mod window;
mod words;
mod worker_report;
mod worker_traits;
mod workers;

pub use access::{Access, Answer, PoolAccess};
pub use build::{Workshop, metrics_for, unread};
pub use crossing::Crossings;
pub use drain::DrainResult;
pub use error::BuildError;
pub use exchange::{Outcome, Verdict};
pub use exchanges::moves_made;
pub use fleet::Fleet;
pub use http_status::status_of;
pub use logbook::{LogBatch, LogSink, LogSource};
pub use mail::Mail;
pub use names::Lookup;
pub use order::Order;
pub use outside::{Runner, Threads};
pub use reload::Reload;
pub use session::{session_moves, session_moves_made};
pub use shard::{Admission, Parts, Shard};
pub use status::{
    Lately, ListenerStatus, MemoryStatus, PlaceStatus, PoolStatus, Status, Told, Why, WorkerStatus,
    WorkerTally,
};
pub use worker_report::{HandlerReport, WorkerReport};
