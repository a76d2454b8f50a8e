//! The messages between a replica and the client of the server.
//!
//! The client maps them to JetStream as follows.
//!
//! | here | there |
//! |---|---|
//! | [`Command::Watch`] without `from` | a consumer of all keys that delivers the last value of each key, then live changes |
//! | [`Command::Watch`] with `from` | a consumer of all keys that starts at this sequence |
//! | [`Command::Fetch`] | the last value of each key below `<shard>.` |
//! | [`Command::Get`] | the last value of one key, including deletion and expiry markers |
//! | [`Command::Write`] with `expect` 0 | KV `create`: succeeds if there is no key, or a marker |
//! | [`Command::Write`] with another `expect` | KV `update`, or `delete` with an expected revision |
//! | [`Command::PublishDigest`] | a message of core NATS to the other daemons |
//! | [`Event::Connected`] | after the stream's state and the key `_epoch` were read |
//!
//! The client must distinguish a deletion (header `KV-Operation`) from an expiry (header `Nats-Marker-Reason: MaxAge`).
//! A watch and a fetch deliver without gaps: if a message is missing, the end of the read must not be reported. The
//! client must report `Disconnected`, and forget unsent writes, whenever the connection or the watch was interrupted; a
//! write must never be sent again on another connection.

use crate::digest::Digest;
pub use crate::identity::{Epoch, OperationId, Origin, Target};
use crate::key::Key;

/// A key of the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The key `_epoch`: the epoch of the bucket, which is rewritten as a mark in the stream.
    Epoch,
    /// The binding of a client.
    Client(Key),
}

/// The value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The epoch of the bucket.
    Epoch(Epoch),
    /// A client is bound.
    Binding {
        /// The target.
        target: Target,
        /// The daemon that wrote it.
        origin: Origin,
    },
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was written.
    Put(Value),
    /// It was written in a format that this version cannot read.
    Unreadable,
    /// It was deleted on purpose.
    Deleted,
    /// The server removed it because its `max_age` had passed by the server's clock.
    Expired,
}

/// The last change of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub subject: Subject,
    /// The revision: the sequence of the message in the stream.
    pub revision: u64,
    /// What happened.
    pub kind: ChangeKind,
}

/// What the client of the server has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Watch all keys. An earlier watch ends. Answered by [`Event::Changed`] and one [`Event::CaughtUp`].
    Watch {
        /// The operation.
        operation: OperationId,
        /// The first revision. `None`: the last value of each key, then live.
        from: Option<u64>,
    },
    /// Read the last value of each key of a shard. Answered by [`Event::Changed`] and [`Event::Fetched`].
    Fetch {
        /// The operation.
        operation: OperationId,
        /// The shard.
        shard: u8,
    },
    /// Read one key. Answered by [`Event::Got`].
    Get {
        /// The operation.
        operation: OperationId,
        /// The key.
        subject: Subject,
    },
    /// Write one key. Answered by [`Event::Written`], [`Event::LostRace`] or [`Event::Rejected`].
    Write {
        /// The operation.
        operation: OperationId,
        /// The key.
        subject: Subject,
        /// The value. `None`: delete.
        value: Option<Value>,
        /// The revision that the key must have; 0 if it must not exist.
        expect: u64,
    },
    /// Send this digest to the other daemons.
    PublishDigest(Box<Digest>),
    /// Close the connection, report [`Event::Disconnected`] and connect again.
    Reconnect,
}

/// What the client of the server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection was opened, and the state of the bucket was read.
    Connected {
        /// The epoch and its revision, if the key exists.
        epoch: Option<(Epoch, u64)>,
        /// The first sequence of the stream.
        first: u64,
        /// The last sequence of the stream.
        last: u64,
    },
    /// The connection or the watch ended.
    Disconnected,
    /// A watch or a fetch delivered a change. A watch delivers in the order of the revisions.
    Changed {
        /// The watch or the fetch.
        operation: OperationId,
        /// The change.
        change: Change,
    },
    /// A watch has delivered everything up to the end of the stream at its start.
    CaughtUp {
        /// The watch.
        operation: OperationId,
        /// The last sequence of the stream when the watch started.
        revision: u64,
    },
    /// A fetch has delivered everything.
    Fetched {
        /// The fetch.
        operation: OperationId,
        /// The last sequence of the stream when the fetch started, or a later one.
        revision: u64,
    },
    /// The last change of a key. `None`: the bucket has neither a value nor a marker.
    Got {
        /// The operation.
        operation: OperationId,
        /// The change.
        change: Option<Change>,
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
    /// A write was rejected for another reason: the bucket is full, or the user has no permission. The write is repeated
    /// immediately, so the client reports it late.
    Rejected {
        /// The write.
        operation: OperationId,
        /// The reason, for people.
        reason: String,
    },
    /// A digest of another daemon.
    Digest(Box<Digest>),
}
