//! Databases as handlers: many small requests, one commit, then the acknowledgements.
//!
//! What it is: [`exchange::Handler`]s that turn each request of a batch into a row (a record becomes parameters),
//! commit once, and answer only then; or that answer each request with the rows of a query. The processing of a batch
//! is implemented once, in `handler`, on top of the interface of a driver in `link`; each database is a directory. What
//! it depends on: records, SQL, and which errors are caused by a row, by the database or leave an unknown outcome. What
//! it must never depend on: clients, queues, schedules, settings files.
//!
//! ```text
//!   batch ─ read ──────────► BEGIN ─ all rows together ─ COMMIT ─► replies
//!             │                │             │             │
//!          rejected         again, or    rejected       failed, or unknown if the
//!        record, row     failed database    row         outcome is lost: commit
//! ```
//!
//! The features `sqlite`, `postgres` and `mysql` select the drivers. All are enabled by default.

#![cfg_attr(
    not(all(feature = "mysql", feature = "postgres", feature = "sqlite")),
    allow(dead_code, reason = "what the drivers share is there for those that were left out too")
)]

mod ack;
mod action;
mod connection;
mod database;
mod details;
mod digits;
mod effects;
mod error;
mod fault;
mod handler;
mod letter;
mod letters;
mod link;
mod logins;
#[cfg(feature = "server")]
mod loopback;
mod name;
mod parts;
mod reading;
mod reply;
mod resend;
mod rows;
#[cfg(feature = "server")]
mod server;
mod source;
mod text;

#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use action::{Action, Affected, Format, Job, OnConflict, Query, Record, Sync, UnknownFields};
pub use database::Database;
pub use error::{About, DatabaseError};
pub use letter::StoredLetter;
pub use letters::{Letters, Retried};
pub use reading::Reader;
#[cfg(feature = "server")]
pub use server::{Host, Secret, Server, Tls};
