//! A command of an operator that waits until it is stored.

use std::fmt;

use super::entry::{Author, Entry, EntryChange};
use super::key::OperatorKey;
use crate::message::OperationId;

/// Names a command of an operator at this daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandId(pub u64);

/// A command of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRequest {
    /// What it is for.
    pub key: OperatorKey,
    /// What it changes.
    pub change: EntryChange,
    /// Who gave it, and when.
    pub author: Author,
}

/// Why a command was not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The NATS servers could not be reached in time. Nothing was changed.
    Unreachable,
    /// Other daemons changed the same key each time. Nothing was changed.
    Conflict,
    /// The NATS servers did not store it, for this reason. Nothing was changed.
    Rejected(String),
    /// The key has a value that this version cannot read. Nothing was changed.
    Unreadable,
    /// Too many other commands wait. Nothing was changed.
    Busy,
    /// It was sent, and the NATS servers have not answered in time.
    Unknown,
    /// It is stored, but this daemon has not received it from the NATS servers in time.
    Late,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("the NATS servers cannot be reached"),
            Self::Conflict => {
                f.write_str("other machines change the same setting at the same time")
            }
            Self::Rejected(reason) => write!(f, "the NATS servers did not store it: {reason}"),
            Self::Unreadable => {
                f.write_str("the stored value was written by another version, and cannot be read")
            }
            Self::Busy => f.write_str("too many other commands wait"),
            Self::Unknown => f.write_str("the NATS servers have not answered"),
            Self::Late => f.write_str("it is stored, but was not delivered to this machine yet"),
        }
    }
}

/// The progress of a command.
///
/// ```text
///   Waiting ──written──▶ Writing ──accepted──▶ Accepted ──delivered──▶ end
///      ▲  ▲                 │ lost race
///      │  └──── read ─── Reading
///      └── disconnected, no answer (all but Waiting)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for a connection, or for another write of its key.
    Waiting,
    Writing(OperationId),
    /// Another daemon was faster: the key is read again.
    Reading(OperationId),
    /// It is stored at this revision, which the watch has not delivered yet.
    Accepted(u64),
}

/// A command that waits.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) request: CommandRequest,
    pub(super) deadline_ms: u64,
    pub(super) stage: Stage,
    pub(super) lost_races: u32,
    /// What was sent at least once and may be stored.
    pub(super) sent: Option<Entry>,
    /// A write had no answer.
    pub(super) is_unknown: bool,
}

impl Pending {
    /// The operation whose answer it waits for.
    pub(super) const fn operation(&self) -> Option<OperationId> {
        match self.stage {
            Stage::Writing(operation) | Stage::Reading(operation) => Some(operation),
            Stage::Waiting | Stage::Accepted(_) => None,
        }
    }
}
