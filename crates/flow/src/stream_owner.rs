//! Owners of streams and timers, packed into the four words that the loop stores for each and passes with every
//! event about it.
//!
//! What it depends on: ids. What it must never depend on: the use of a stream.

use event::OwnerKey;
use exchange::{Place, PoolId, WorkerId, WorkerIndex};

use crate::ids::{ConnectionId, SessionId};

/// The owner of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamOwner {
    /// No owner: received bytes are discarded.
    Nobody,
    /// A client session.
    Session(SessionId),
    /// A client over the connection limit. The stream is open until the client has received the rejection.
    Refused,
    /// A worker.
    Worker {
        /// The pool of the worker.
        pool: PoolId,
        /// The use of the stream.
        purpose: StreamPurpose,
    },
    /// A health check.
    Check {
        /// The pool of the worker that is checked.
        pool: PoolId,
        /// The index of the worker in its pool.
        target: WorkerIndex,
    },
}

/// The use of a stream to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPurpose {
    /// A connection for requests and replies.
    Connection(ConnectionId),
    /// A pipe of a program.
    Pipe(WorkerId, Pipe),
    /// A connection that tests whether a starting program accepts connections.
    ReadinessCheck(WorkerId),
}

/// A pipe of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipe {
    /// Its stdin.
    Input,
    /// Its stdout.
    Output,
    /// Its stderr.
    Error,
}

/// The owner of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerOwner {
    /// No owner: the timer is ignored.
    Nobody,
    /// All pools of the shard: the earliest time at which one of them is due.
    Pools,
    /// The drain of the daemon.
    Drain,
    /// The workers of a pool.
    Workers {
        /// The pool.
        pool: PoolId,
        /// The use of the timer.
        timer: WorkerTimer,
    },
}

/// The use of a timer of the workers of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerTimer {
    /// Start, deadlines and stop of a program.
    Program(WorkerId),
    /// The deadline of the batch of a handler.
    Batch(WorkerId),
    /// The next connection attempt to a starting program.
    ReadinessCheck(WorkerId),
    /// The next connection attempt to programs whose listen backlog was full.
    FullBacklog,
    /// Connections of programs that have exited.
    Exited,
    /// Requests whose reply may have been lost with their program.
    Delayed,
}

// The words of a key:
//
//   0   kind, and the index of the pool: 8 and 24 bits
//   1   the generation of the pool
//   2   the index of the session, link or worker
//   3   its generation

const NOBODY: u8 = 0;
const SESSION: u8 = 1;
const REFUSED: u8 = 2;
const LINK: u8 = 3;
const INPUT: u8 = 4;
const OUTPUT: u8 = 5;
const ERROR: u8 = 6;
const READINESS_CHECK: u8 = 7;
const CHECK: u8 = 8;

const POOLS: u8 = 1;
const DRAIN: u8 = 2;
const PROGRAM: u8 = 3;
const BATCH: u8 = 4;
const NEXT_READINESS_CHECK: u8 = 5;
const FULL_BACKLOG: u8 = 6;
const EXITED: u8 = 7;
const DELAYED: u8 = 8;

/// The number of pools that a key can distinguish.
const POOLS_MAX: usize = 1 << 24;

fn key(kind: u8, pool: PoolId, Place { index, generation }: Place) -> OwnerKey {
    assert!(pool.index() < POOLS_MAX, "a key has 24 bits for the pool");
    let first = u32::try_from(pool.index()).unwrap_or_default() << 8 | u32::from(kind);
    OwnerKey([first, pool.generation(), index, generation])
}

fn key_of(kind: u8, pool: PoolId, worker: WorkerId) -> OwnerKey {
    key(kind, pool, Place::new(WorkerIndex::from(worker).get(), worker.generation()))
}

const fn plain(kind: u8) -> OwnerKey {
    OwnerKey([kind as u32, 0, 0, 0])
}

/// Kind, pool, and what else a key names.
const fn parts(OwnerKey([first, of_pool, index, generation]): OwnerKey) -> (u8, PoolId, Place) {
    let [kind, ..] = first.to_le_bytes();
    (kind, PoolId::new(first >> 8, of_pool), Place::new(index, generation))
}

const fn worker(place: Place) -> WorkerId {
    WorkerId::new(place.index, place.generation)
}

impl StreamOwner {
    /// The key that the loop stores with the stream.
    pub fn key(self) -> OwnerKey {
        match self {
            Self::Nobody => OwnerKey::NONE,
            Self::Refused => plain(REFUSED),
            Self::Session(SessionId { shard: _, place: Place { index, generation } }) => {
                OwnerKey([u32::from(SESSION), 0, index, generation])
            }
            Self::Worker { pool, purpose: StreamPurpose::Connection(ConnectionId(place)) } => {
                key(LINK, pool, place)
            }
            Self::Worker { pool, purpose: StreamPurpose::Pipe(worker, pipe) } => {
                let kind = match pipe {
                    Pipe::Input => INPUT,
                    Pipe::Output => OUTPUT,
                    Pipe::Error => ERROR,
                };
                key_of(kind, pool, worker)
            }
            Self::Worker { pool, purpose: StreamPurpose::ReadinessCheck(worker) } => {
                key_of(READINESS_CHECK, pool, worker)
            }
            Self::Check { pool, target } => key(CHECK, pool, Place::new(target.get(), 0)),
        }
    }

    /// The owner that a key encodes. `shard`: the shard of its session, which is not in the key.
    #[inline]
    pub const fn of(key: OwnerKey, shard: u32) -> Self {
        let (kind, pool, place) = parts(key);
        let purpose = match kind {
            SESSION => return Self::Session(SessionId::new(shard, place)),
            LINK => StreamPurpose::Connection(ConnectionId(place)),
            INPUT => StreamPurpose::Pipe(worker(place), Pipe::Input),
            OUTPUT => StreamPurpose::Pipe(worker(place), Pipe::Output),
            ERROR => StreamPurpose::Pipe(worker(place), Pipe::Error),
            READINESS_CHECK => StreamPurpose::ReadinessCheck(worker(place)),
            REFUSED => return Self::Refused,
            CHECK => return Self::Check { pool, target: WorkerIndex::new(place.index) },
            NOBODY.. => return Self::Nobody,
        };
        Self::Worker { pool, purpose }
    }
}

impl TimerOwner {
    /// The key that the loop stores with the timer.
    pub fn key(self) -> OwnerKey {
        let none = Place::new(0, 0);
        match self {
            Self::Nobody => OwnerKey::NONE,
            Self::Pools => plain(POOLS),
            Self::Drain => plain(DRAIN),
            Self::Workers { pool, timer } => match timer {
                WorkerTimer::Program(worker) => key_of(PROGRAM, pool, worker),
                WorkerTimer::Batch(worker) => key_of(BATCH, pool, worker),
                WorkerTimer::ReadinessCheck(worker) => key_of(NEXT_READINESS_CHECK, pool, worker),
                WorkerTimer::FullBacklog => key(FULL_BACKLOG, pool, none),
                WorkerTimer::Exited => key(EXITED, pool, none),
                WorkerTimer::Delayed => key(DELAYED, pool, none),
            },
        }
    }

    /// The owner that a key encodes.
    pub const fn of(key: OwnerKey) -> Self {
        let (kind, pool, place) = parts(key);
        let timer = match kind {
            POOLS => return Self::Pools,
            DRAIN => return Self::Drain,
            PROGRAM => WorkerTimer::Program(worker(place)),
            BATCH => WorkerTimer::Batch(worker(place)),
            NEXT_READINESS_CHECK => WorkerTimer::ReadinessCheck(worker(place)),
            FULL_BACKLOG => WorkerTimer::FullBacklog,
            EXITED => WorkerTimer::Exited,
            DELAYED => WorkerTimer::Delayed,
            NOBODY.. => return Self::Nobody,
        };
        Self::Workers { pool, timer }
    }
}

impl WorkerTimer {
    /// The key of a timer of this kind in `pool`.
    pub fn key(self, pool: PoolId) -> OwnerKey {
        TimerOwner::Workers { pool, timer: self }.key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_stream_is_what_its_key_was_made_of() {
        let session = SessionId::new(3, Place::new(70_000, 9));
        let (pool, worker) = (PoolId::new(70_001, u32::MAX), WorkerId::new(5, 6));
        let to = |purpose| StreamOwner::Worker { pool, purpose };
        let all = [
            StreamOwner::Session(session),
            StreamOwner::Refused,
            to(StreamPurpose::Pipe(worker, Pipe::Input)),
            to(StreamPurpose::Pipe(worker, Pipe::Output)),
            to(StreamPurpose::Pipe(worker, Pipe::Error)),
            to(StreamPurpose::ReadinessCheck(worker)),
            to(StreamPurpose::Connection(ConnectionId(Place::new(u32::MAX, 7)))),
            StreamOwner::Check { pool, target: WorkerIndex::new(3) },
            StreamOwner::Nobody,
        ];
        assert!(all.into_iter().all(|owner| StreamOwner::of(owner.key(), 3) == owner));
        assert_eq!(StreamOwner::of(OwnerKey::NONE, 3), StreamOwner::Nobody);
        let later = PoolId::new(70_001, 1);
        let purpose = StreamPurpose::ReadinessCheck(worker);
        let other = StreamOwner::Worker { pool: later, purpose };
        assert_ne!(other.key(), to(purpose).key(), "another pool in its place");
    }

    #[test]
    fn the_owner_of_a_timer_is_what_its_key_was_made_of() {
        let (pool, worker) = (PoolId::new(0, 1), WorkerId::new(5, 6));
        let of = |timer| TimerOwner::Workers { pool, timer };
        let all = [
            TimerOwner::Nobody,
            TimerOwner::Pools,
            TimerOwner::Drain,
            of(WorkerTimer::Program(worker)),
            of(WorkerTimer::Batch(worker)),
            of(WorkerTimer::ReadinessCheck(worker)),
            of(WorkerTimer::FullBacklog),
            of(WorkerTimer::Exited),
            of(WorkerTimer::Delayed),
        ];
        assert!(all.into_iter().all(|owner| TimerOwner::of(owner.key()) == owner));
    }
}
