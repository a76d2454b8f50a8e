#![doc = include_str!("../README.md")]
//!
//! # Scope
//!
//! What it is: requests and their ids; the causes and phases in which requests end; [`Handler`], the interface of
//! workers that run in this process; the format of a line of the access log; and what several crates share: which
//! characters can be displayed, conversion between dates and days, and pseudo-random numbers. What it depends on: `block`. What
//! it must never depend on: a protocol, a kind of worker, a socket, a clock.

mod admin_state;
mod by_worker;
mod calendar;
mod end;
mod handler;
mod head;
mod health_notice;
mod id;
mod log_format;
pub mod mutant;
mod outcome;
mod printable;
mod proof;
mod random;
mod request;
mod shared_binding;
mod table;

pub use admin_state::AdminState;
pub use by_worker::ByWorker;
pub use calendar::{civil_from_days, days_from_civil};
pub use end::{Cause, End, Phase, Verdict};
pub use handler::{Batch, Factory, Handler, HandlerError, Outbox, Stop};
pub use head::{Head, Response};
pub use health_notice::HealthNotice;
pub use id::{AddressId, ListenerId, PoolId, RequestId, SHARDS_MAX, WorkerId, WorkerIndex};
pub use log_format::{LogFormat, LogPiece, LogValue};
pub use outcome::Outcome;
pub use printable::{is_hidden, json_escape, visible};
pub use proof::Proof;
pub use random::{Random, mix};
pub use request::{Peer, Request, Stamps};
pub use shared_binding::{AddressUse, BindingChange, BindingUse, SharedKey};
pub use table::{Place, Table, TableId};

pub use block::{Block, Slice};
