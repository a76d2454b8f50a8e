//! Whose each stream is.

use crate::exchanges::SessionId;
use crate::table::Place;
use crate::workers::Purpose;

/// Whose a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Nobody,
    Session(SessionId),
    /// Of a client over the limit, until it has read that.
    Refused,
    /// To a worker of the pool at this place.
    Worker {
        place: usize,
        purpose: Purpose,
    },
    /// Of a check of the worker at the place `target`.
    Check {
        place: usize,
        target: usize,
    },
}

/// The same in half the space: there is one for every connection.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Nobody,
    Session { index: u32, generation: u32 },
    Refused,
    Worker { place: u32, purpose: Purpose },
    Check { place: u32, target: u32 },
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
            self.kept.resize(stream + 1, Kept::Nobody);
        }
        self.kept[stream] = match role {
            Role::Nobody => Kept::Nobody,
            Role::Session(SessionId { shard: _, place: Place { index, generation } }) => {
                Kept::Session { index, generation }
            }
            Role::Refused => Kept::Refused,
            Role::Worker { place, purpose } => Kept::Worker { place: narrow(place), purpose },
            Role::Check { place, target } => {
                Kept::Check { place: narrow(place), target: narrow(target) }
            }
        };
    }

    pub(super) fn get(&self, stream: usize) -> Role {
        let shard = self.shard;
        match self.kept.get(stream).copied().unwrap_or(Kept::Nobody) {
            Kept::Nobody => Role::Nobody,
            Kept::Session { index, generation } => {
                Role::Session(SessionId::new(shard, Place::new(index, generation)))
            }
            Kept::Refused => Role::Refused,
            Kept::Worker { place, purpose } => Role::Worker { place: place as usize, purpose },
            Kept::Check { place, target } => {
                Role::Check { place: place as usize, target: target as usize }
            }
        }
    }
}

fn narrow(place: usize) -> u32 {
    u32::try_from(place).expect("a configuration has fewer than 2^32 places")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Pipe;
    use exchange::WorkerId;

    #[test]
    fn a_role_is_what_it_was_set_to_and_takes_sixteen_bytes() {
        let mut roles = Roles::of_shard(3);
        let session = SessionId::new(3, Place::new(70_000, 9));
        let worker = WorkerId::new(5, 6);
        let all = [
            Role::Session(session),
            Role::Refused,
            Role::Worker { place: 1, purpose: Purpose::Pipe(worker, Pipe::Error) },
            Role::Worker { place: 4, purpose: Purpose::Trial(worker) },
            Role::Check { place: 2, target: 3 },
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
