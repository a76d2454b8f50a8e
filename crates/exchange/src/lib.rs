//! What all rooms speak of.
//!
//! What it is: requests and their ids, how they end and with which words, and [`Handler`], the
//! interface of workers that run in our own process; what a line of the access log consists of; and two
//! things that several crates do alike: which characters are shown, and which day a date is. What it depends on: `block`. What it must never depend on: a
//! protocol, a kind of worker, a socket, a clock.

mod by_worker;
mod calendar;
mod end;
mod handler;
mod id;
mod log_format;
mod outcome;
pub mod plant;
mod printable;
mod proof;
mod request;
mod table;

pub use by_worker::ByWorker;
pub use calendar::{civil_from_days, days_from_civil};
pub use end::{Cause, End, Phase, Verdict};
pub use handler::{Batch, Factory, Handler, HandlerError, Outbox, Stop};
pub use id::{AddressId, ListenerId, PoolId, RequestId, SHARDS_MAX, WorkerId, WorkerIndex};
pub use log_format::{LogFormat, LogPiece, LogValue};
pub use outcome::Outcome;
pub use printable::{is_hidden, json_escape, visible};
pub use proof::Proof;
pub use request::{Peer, Request, Stamps};
pub use table::{Place, Table, TableId};

pub use block::{Block, Slice};
