//! What operators have set for the servers of a pool, on all machines of a site.
//!
//! What it is: the state machine of the bucket `SITE_operator` at one daemon ([`OperatorReplica`]). What it depends on: nothing
//! but names. Time (milliseconds of a monotonic clock) is an argument, dates are text. What it must never depend on: a
//! pool, an admin address.
//!
//! ```text
//!   command ──ask──────▶ ┌─────────────────┐ ──OperatorCommand──▶ ┌────────┐
//!   shards ◀──Update──── │ OperatorReplica │                      │ client │ ◀──▶ NATS
//!   reply  ◀──Update──── └─────────────────┘ ◀───OperatorEvent─── └────────┘
//! ```
//!
//! # Writes
//!
//! There is one key for each server of a pool and one for the fallback of each pool. A command changes a part of the
//! value: it is applied to the last value that was read, and written with the revision of this value. If another daemon
//! was faster, the key is read again and the command is applied to the new value, up to three times. A value takes
//! effect at a daemon when the watch delivers it, also at the daemon that wrote it.
//!
//! A command that was not sent within its time has changed nothing. If it was sent and has no answer, its outcome is
//! unknown. It may be written again on the next connection: both writes have the same value and expect the same
//! revision, so at most one of them is stored.
//!
//! # Lost histories
//!
//! Each connection reads all keys. Keys are never deleted by daemons and do not expire. The history was lost if the
//! stream was created at another time, if it ends before the last revision that was read, or if a key is missing or has
//! an older revision than before. Then daemons keep what they have and write it again: with `create`, or over a value
//! whose date is older. A value with a later date is adopted.

mod entry;
mod key;
mod messages;
mod replica;
mod request;

pub use entry::{Author, Entry, EntryChange, Setting};
pub use key::OperatorKey;
pub use messages::{History, OperatorCommand, OperatorEvent, OperatorUpdate, Stored};
pub use replica::{OperatorCounters, OperatorReplica};
pub use request::{CommandError, CommandId, CommandRequest};
