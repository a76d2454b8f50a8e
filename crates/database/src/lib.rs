//! Databases as handlers: many small requests, one commit, then the acknowledgements.
//!
//! What it is: [`sqlite`], an [`exchange::Handler`] that turns each request of a batch into a row
//! (a record becomes parameters, a statement runs once for each), commits once, and answers only
//! then. What it knows: records, SQL, and which errors are the row's, the database's or nobody's
//! to know. What it must never know: who asked, queues, schedules, settings files, sockets.
//!
//! ```text
//!   batch ─ read ──────────► BEGIN ─ a statement a row ─ COMMIT ─► replies
//!             │                │             │             │
//!          refused          failed        refused       failed, or unknown where
//!        record, row       database         row         it cannot be known: commit
//! ```

mod ack;
mod action;
mod error;
mod rows;
mod source;
pub mod sqlite;
mod text;

pub use action::{Action, OnConflict, Record, Sync};
pub use error::DatabaseError;
