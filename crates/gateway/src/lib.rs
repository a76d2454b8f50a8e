//! The data plane of one daemon: shards, one loop each.
//!
//! What it is: the assembly. A [`Shard`] owns the clients (`frontend`) and workers (`backend`) of a loop and the
//! `engine` between them. It carries out the effects of the engine and passes messages between shards. It is built from
//! settings, or [assembled](Shard::assemble) from built configurations. It applies reloads while it serves, and it
//! drains. What it depends on: everything in the data plane. What it must never depend on: a database, an async
//! runtime, where a configuration comes from.
//!
//! The path of a request:
//!
//! ```text
//!   session ──submit──▶ engine ──▶ pool ──Dispatch──▶ program │ server │ handler
//!      ▲                                                     │
//!      └── flush, in order ◀── finished ◀── complete ◀── reply
//!                                             └── then ──▶ the next pool
//! ```

#![forbid(unsafe_code)]

pub use observe::metrics;

mod access;
mod assembly;
mod build;
mod client_limits;
mod descriptors;
mod drain;
mod error;
mod fleet;
mod holders;
mod memory;
mod reload;
mod resolver;
mod shard;
mod shard_mail;
mod shared_bindings;
mod shared_limits;
mod shared_upstreams;

pub use access::{Access, Answer, PoolAccess};
pub use assembly::{Admission, Assembly};
pub use backend::system::{ThreadSpawner, Threads};
pub use build::{
    FactoryError, HandlerRegistry, metrics_for, read_secret_file, read_secret_text, unread,
};
pub use drain::{DrainLimits, DrainResult};
pub use engine::exchanges::moves_made;
pub use engine::shard_message::ShardMessages;
pub use error::BuildError;
pub use exchange::{
    AddressUse, AdminState, BindingChange, BindingUse, HealthNotice, Outcome, PoolId, Verdict,
};
pub use fleet::Fleet;
pub use flow::order::Order;
pub use flow::worker_report::{HandlerReport, WorkerReport};
pub use frontend::session::{session_moves, session_moves_made};
pub use observe::access_log::{LogBatch, LogSink, LogSource};
pub use observe::http_status::status_of;
pub use observe::status::{
    Explanation, ListenerStatus, MemoryStatus, OrderResult, PlaceStatus, PoolStatus,
    RecentDecisions, Status, WorkerStatus, WorkerTally,
};
pub use reload::Reload;
pub use resolver::Lookup;
pub use shard::{Parts, Shard};
pub use shard_mail::{AddressUseReply, ShardMail};
pub use shared_bindings::SharedBindings;
