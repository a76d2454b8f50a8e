//! Client bindings that several daemons share through a bucket of NATS JetStream.
//!
//! What it is: the state machine of one shared table at one daemon ([`Replica`]): lookups that never wait, versions,
//! the write policy, conflicts, catch-up after a gap, and the proof by digests that all daemons have the same contents.
//! What it depends on: nothing but keys and 64-bit targets (hashes of server names). Time (milliseconds of a monotonic
//! clock) and randomness are arguments, messages are values. What it must never depend on: a pool, a client of the
//! gateway, the wall clock.
//!
//! ```text
//!   request ──find, bind──▶ ┌─────────┐ ──Command──▶ ┌────────┐
//!           ◀───target───── │ Replica │              │ client │ ◀──▶ NATS
//!                           └─────────┘ ◀───Event─── └────────┘
//! ```
//!
//! ```
//! use cluster::{Command, Event, Key, Origin, Replica, Secret, Settings, Target};
//!
//! let secret = Secret::from_text(b"the same on all machines");
//! let mut replica = Replica::new(Settings::default(), secret, Origin(1), 7);
//! // Without a server, the table works for this daemon alone.
//! let client = Key::new(secret, b"a cookie");
//! replica.bind(0, &client, Target(10));
//! assert_eq!(replica.find(0, &client), Some(Target(10)));
//! // When a server is there, the contents of the bucket are read first.
//! replica.handle(0, Event::Connected { epoch: None, first: 1, last: 0 });
//! assert!(matches!(replica.poll(0), Some(Command::Watch { from: None, .. })));
//! ```
//!
//! # Versions
//!
//! Each write of a key has a revision: its sequence in the stream. A change whose revision is not newer than the one
//! held is ignored, in whatever order changes arrive. Revisions are comparable within one history of the bucket only;
//! the key `_epoch` names the history. When it changes, or when the stream ends before the last revision read, all
//! revisions are forgotten: the bucket was wiped, restarted in memory, or restored from an old copy.
//!
//! # Write policy
//!
//! A daemon writes
//!
//! - when it binds a client, or changes its target;
//! - when a client is used and at least a quarter of the lifetime has passed since the last write by any daemon
//!   (a touch). With a `max_age` of 1.25 lifetimes, the server keeps each entry for a lifetime after its last use.
//!
//! Writes are coalesced per key, and flushed every 20 ms or when 256 keys wait. At most 256 writes are without an
//! acknowledgement, and at most 5000 per second are sent; bindings go before touches. At most 100,000 keys wait. Beyond
//! that, the oldest touches are dropped; if there are none, bindings stay marked in the table, and a walk over the table
//! writes them when there is room. A second write of a key waits until the watch has delivered the first.
//!
//! # Conflicts
//!
//! `create` and `update` with an expected revision decide. A daemon whose write is rejected reads the key, adopts its
//! target for the client's next request, and counts a conflict if the targets differ. The same holds after a partition.
//! A target that this daemon knows to be down is not adopted: at the client's next request here, the daemon writes its
//! own target over it.
//!
//! # Expiry
//!
//! Each daemon expires its entries by its own monotonic clock. An expiry by the server only ends the server's part of
//! an entry that is in use here, which is then written again. A deletion removes the entry at every daemon.
//!
//! # Catch-up and proof
//!
//! After a short gap the watch continues at the next revision. Otherwise a snapshot is read, and entries that were not
//! seen in it are decided on: those last used here are written again; others that the server had are removed. If the
//! bucket was lost, they are kept instead, and written when they are used. [`Digest`] describes how daemons prove that their
//! contents agree; a shard that differs is fetched again.
//!
//! # More than bindings
//!
//! [`OperatorReplica`] is the state machine for what operators have set for servers on all machines. The client also
//! passes hints between daemons that the health of a server has changed.

mod client;
mod counters;
mod digest;
mod digest_format;
mod flights;
mod identity;
mod key;
mod message;
mod operator;
mod pending;
mod proofs;
mod rate;
mod read;
mod repairs;
mod replica;
mod settings;
mod shard_set;
mod shards;
mod state;
mod stream;
mod table;
mod value;

pub use client::{
    AddressUses, ApplySetting, Changes, CheckNow, CheckReport, CheckedKey, Cluster, ClusterConfig,
    ClusterStatus, CommandReply, HealthHints, HintCounters, LimitCounters, LimitSharing,
    MachineStatus, OperatorStatus, Sharing, TableConfig, TableStatus, TlsFiles, Uses, uses,
};
pub use counters::Counters;
pub use digest::{Difference, Digest, Listed, SHARDS, ShardDigest, differences};
pub use key::{Key, Secret};
pub use message::{
    Change, ChangeKind, Command, Epoch, Event, OperationId, Origin, Subject, Target, Value,
};
pub use operator::{
    Author, CommandError, CommandId, CommandRequest, Entry, EntryChange, History, OperatorCommand,
    OperatorCounters, OperatorEvent, OperatorKey, OperatorReplica, OperatorUpdate, Setting, Stored,
};
pub use proofs::Proof;
pub use replica::{Replica, Status, Update};
pub use settings::Settings;
pub use state::State;
