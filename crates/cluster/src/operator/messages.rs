//! The messages between the replica and the client of the server.

use super::entry::{Author, Entry, Setting};
use super::key::OperatorKey;
use super::request::{CommandError, CommandId};
use crate::message::OperationId;

/// When the stream of the bucket was created, in nanoseconds since the Unix epoch. Revisions of streams that were
/// created at different times cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History(pub i128);

/// The last value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// An entry.
    Put(Entry),
    /// A value that this version cannot read.
    Unreadable,
    /// It was deleted, not by a daemon.
    Deleted,
}

/// What the client of the server has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorCommand {
    /// Read the last value of each key, then live. Answered by [`OperatorEvent::Changed`] and one
    /// [`OperatorEvent::CaughtUp`].
    Watch {
        /// The operation.
        operation: OperationId,
    },
    /// Read one key from the leader. Answered by [`OperatorEvent::Got`].
    Get {
        /// The operation.
        operation: OperationId,
        /// The key.
        key: OperatorKey,
    },
    /// Write one key. Answered by [`OperatorEvent::Written`], [`OperatorEvent::LostRace`] or
    /// [`OperatorEvent::Rejected`].
    Write {
        /// The operation.
        operation: OperationId,
        /// The key.
        key: OperatorKey,
        /// The value.
        entry: Entry,
        /// The revision that the key must have; 0 if it must not exist.
        expect: u64,
    },
}

/// What the client of the server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorEvent {
    /// A connection was opened, and the state of the stream was read.
    Connected {
        /// When the stream was created.
        history: History,
        /// Its last sequence.
        last: u64,
    },
    /// The connection or the watch ended.
    Disconnected,
    /// The watch delivered a change, in the order of the revisions.
    Changed {
        /// The watch.
        operation: OperationId,
        /// The key.
        key: OperatorKey,
        /// Its revision.
        revision: u64,
        /// Its value.
        stored: Stored,
    },
    /// The watch has delivered everything up to the end of the stream at its start.
    CaughtUp {
        /// The watch.
        operation: OperationId,
        /// The last sequence of the stream when the watch started.
        revision: u64,
    },
    /// The last value of a key, with its revision; `None`: there is neither a value nor a marker.
    Got {
        /// The operation.
        operation: OperationId,
        /// The value.
        found: Option<(u64, Stored)>,
    },
    /// A write was accepted.
    Written {
        /// The write.
        operation: OperationId,
        /// Its revision.
        revision: u64,
    },
    /// A write was rejected: the key has another revision than expected.
    LostRace {
        /// The write.
        operation: OperationId,
    },
    /// A write was rejected for another reason.
    Rejected {
        /// The write.
        operation: OperationId,
        /// The reason, for people.
        reason: String,
    },
    /// There was no answer to a read or a write within the time of a request.
    Unanswered {
        /// The operation.
        operation: OperationId,
    },
}

/// What the daemon has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorUpdate {
    /// A setting takes effect.
    Apply {
        /// What it is for.
        key: OperatorKey,
        /// The setting.
        setting: Setting,
        /// Who set it; `None`: the key was deleted.
        author: Option<Author>,
        /// The commands of this daemon that are stored with it.
        commands: Vec<CommandId>,
    },
    /// A command was not stored, or it is unknown whether it was.
    Failed {
        /// The command.
        command: CommandId,
        /// The reason.
        error: CommandError,
    },
}
