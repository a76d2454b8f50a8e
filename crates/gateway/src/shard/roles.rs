//! Whose each stream is.

use exchange::{PoolId, WorkerId};

use crate::exchanges::SessionId;
use crate::programs::Pipe;
use crate::servers::LinkId;
use crate::table::Place;
use crate::workers::Purpose;

/// Whose a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Nobody,
    Session(SessionId),
    /// Of a client over the limit, until it has read that.
    Refused,
    /// To a worker of this pool.
    Worker {
        pool: PoolId,
        purpose: Purpose,
    },
    /// Of a check of the worker at the place `target`.
    Check {
        pool: PoolId,
        target: usize,
    },
}

/// The same in four words: there is one for every connection.
///
/// ```text
///   0   kind, and the index of the pool: 8 and 24 bits
///   1   the generation of the pool
///   2   the index of the session, link or worker
///   3   its generation
/// ```
#[derive(Clone, Copy, Debug, Default)]
struct Kept([u32; 4]);

const NOBODY: u8 = 0;
const SESSION: u8 = 1;
const REFUSED: u8 = 2;
const LINK: u8 = 3;
const INPUT: u8 = 4;
const OUTPUT: u8 = 5;
const ERROR: u8 = 6;
const TRIAL: u8 = 7;
const CHECK: u8 = 8;

/// Pools that can be told apart.
const POOLS_MAX: usize = 1 << 24;

impl Kept {
    fn of_pool(kind: u8, pool: PoolId, Place { index, generation }: Place) -> Self {
        assert!(pool.index() < POOLS_MAX, "24 bits are for the pool");
        let first = u32::try_from(pool.index()).unwrap_or_default() << 8 | u32::from(kind);
        Self([first, pool.generation(), index, generation])
    }

    fn of_worker(kind: u8, pool: PoolId, worker: WorkerId) -> Self {
        Self::of_pool(kind, pool, Place::new(narrow(worker.index()), worker.generation()))
    }

    fn new(role: Role) -> Self {
        match role {
            Role::Nobody => Self::default(),
            Role::Refused => Self([u32::from(REFUSED), 0, 0, 0]),
            Role::Session(SessionId { shard: _, place: Place { index, generation } }) => {
                Self([u32::from(SESSION), 0, index, generation])
            }
            Role::Worker { pool, purpose: Purpose::Link(LinkId(place)) } => {
                Self::of_pool(LINK, pool, place)
            }
            Role::Worker { pool, purpose: Purpose::Pipe(worker, pipe) } => {
                let kind = match pipe {
                    Pipe::Input => INPUT,
                    Pipe::Output => OUTPUT,
                    Pipe::Error => ERROR,
                };
                Self::of_worker(kind, pool, worker)
            }
            Role::Worker { pool, purpose: Purpose::Trial(worker) } => {
                Self::of_worker(TRIAL, pool, worker)
            }
            Role::Check { pool, target } => {
                Self::of_pool(CHECK, pool, Place::new(narrow(target), 0))
            }
        }
    }

    /// What it was made of; the shard is that of its session.
    fn role(self, shard: u32) -> Role {
        let Self([first, of_pool, index, generation]) = self;
        let kind = first.to_le_bytes()[0];
        let pool = PoolId::new(first >> 8, of_pool);
        let place = Place::new(index, generation);
        let pipe = |pipe| Purpose::Pipe(WorkerId::new(index, generation), pipe);
        let purpose = match kind {
            NOBODY => return Role::Nobody,
            SESSION => return Role::Session(SessionId::new(shard, place)),
            REFUSED => return Role::Refused,
            LINK => Purpose::Link(LinkId(place)),
            INPUT => pipe(Pipe::Input),
            OUTPUT => pipe(Pipe::Output),
            ERROR => pipe(Pipe::Error),
            TRIAL => Purpose::Trial(WorkerId::new(index, generation)),
            _ => return Role::Check { pool, target: index as usize },
        };
        Role::Worker { pool, purpose }
    }
}

/// The roles of all streams of a shard, by the places of their ids.
#[derive(Debug)]
pub(super) struct Roles {
    kept: Vec<Kept>,
    shard: u32,
}

impl Roles {
    pub(super) const fn of_shard(shard: u32) -> Self {
        Self { kept: Vec::new(), shard }
    }

    pub(super) fn set(&mut self, stream: usize, role: Role) {
        if self.kept.len() <= stream {
            self.kept.resize(stream + 1, Kept::default());
        }
        self.kept[stream] = Kept::new(role);
    }

    pub(super) fn get(&self, stream: usize) -> Role {
        self.kept.get(stream).map_or(Role::Nobody, |kept| kept.role(self.shard))
    }
}

fn narrow(place: usize) -> u32 {
    u32::try_from(place).expect("a configuration has fewer than 2^32 places")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_what_it_was_set_to_and_takes_sixteen_bytes() {
        let mut roles = Roles::of_shard(3);
        let session = SessionId::new(3, Place::new(70_000, 9));
        let worker = WorkerId::new(5, 6);
        let pool = PoolId::new(70_001, u32::MAX);
        let all = [
            Role::Session(session),
            Role::Refused,
            Role::Worker { pool, purpose: Purpose::Pipe(worker, Pipe::Input) },
            Role::Worker { pool, purpose: Purpose::Pipe(worker, Pipe::Output) },
            Role::Worker { pool, purpose: Purpose::Pipe(worker, Pipe::Error) },
            Role::Worker { pool, purpose: Purpose::Trial(worker) },
            Role::Worker { pool, purpose: Purpose::Link(LinkId(Place::new(u32::MAX, 7))) },
            Role::Check { pool, target: 3 },
            Role::Nobody,
        ];
        for (stream, role) in all.into_iter().enumerate() {
            roles.set(stream * 2, role);
            assert_eq!(roles.get(stream * 2), role);
            assert_eq!(roles.get(stream * 2 + 1), Role::Nobody);
        }
        assert_eq!(size_of::<Kept>(), 16);
    }
}
