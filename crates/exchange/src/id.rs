//! Ids with an index and a generation. A late answer carries a stale id, and never matches a newer value at the same
//! index.

use std::fmt;

/// Declares an id that consists of an index and a generation.
macro_rules! generational {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            index: u32,
            generation: u32,
        }

        impl $name {
            /// The id of the `generation`-th value at `index`.
            #[must_use]
            pub const fn new(index: u32, generation: u32) -> Self {
                Self { index, generation }
            }

            /// The index in the table. Later ids reuse it.
            #[must_use]
            pub const fn index(self) -> usize {
                self.index as usize
            }

            /// The generation. It grows by one each time the index is reused.
            #[must_use]
            pub const fn generation(self) -> u32 {
                self.generation
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({}.{})"), self.index, self.generation)
            }
        }
    };
}

generational! {
    /// The id of one worker of one pool, from its start to its end. A restarted program gets a new id.
    WorkerId
}

impl WorkerId {
    /// Index and generation as one number, which is unique until the daemon exits.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_u64())
    }
}

/// The index of a worker in its pool. A server keeps its index until the daemon exits. A program may get the index of
/// an earlier program that has ended. Therefore data of a single run of a program is keyed by [`WorkerId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerIndex(u32);

impl WorkerIndex {
    /// Creates an index from a number.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The index as a number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl From<WorkerId> for WorkerIndex {
    fn from(worker: WorkerId) -> Self {
        Self(worker.index)
    }
}

impl fmt::Display for WorkerIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

generational! {
    /// The id of one pool, from the configuration that adds it to the configuration that removes it. All shards use the
    /// same id.
    PoolId
}

generational! {
    /// The id of one listener, from the configuration that adds it to the configuration that removes it. All shards use
    /// the same id.
    ListenerId
}

impl PoolId {
    /// An id that no pool has.
    pub const NONE: Self = Self::new(u32::MAX, 0);
}

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

impl fmt::Display for ListenerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// The id of one request, from its receipt to its end.
///
/// Users see only the number: the requests of a daemon with one shard are 1, 2, 3 and so on. The index and the
/// generation find the request in the table of its shard. Two ids are equal only if number, index and generation are
/// equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    number: u64,
    /// The shard number and the index in the table of the shard.
    index: u32,
    generation: u32,
}

/// The maximum number of shards that ids can distinguish.
pub const SHARDS_MAX: u32 = 64;

/// The position of the shard number in `index`. The lower 26 bits allow 2^26 requests in flight per shard.
const SHARD_SHIFT: u32 = 26;

impl RequestId {
    /// The id that means "no request".
    pub const NONE: Self = Self::new(0);

    /// Creates the id of a request that is in no table. For callers that use a [`Handler`](crate::Handler) directly.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self { number, index: 0, generation: 0 }
    }

    /// Creates the id of the `generation`-th request at `index` of a shard. The `number` is unique until the daemon
    /// exits.
    ///
    /// # Panics
    /// If the index or the shard is too large for an id.
    #[must_use]
    pub const fn on_shard(shard: u32, index: u32, generation: u32, number: u64) -> Self {
        assert!(shard < SHARDS_MAX && index >> SHARD_SHIFT == 0, "an id has 26 bits for the place");
        Self { number, index: shard << SHARD_SHIFT | index, generation }
    }

    /// The shard that received the request from its client. If the request came from another shard: the shard that
    /// serves it.
    #[must_use]
    pub const fn shard(self) -> u32 {
        self.index >> SHARD_SHIFT
    }

    /// The index in the table of the shard. Later ids reuse it.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.index & ((1 << SHARD_SHIFT) - 1)) as usize
    }

    /// The generation. It grows by one each time the index is reused.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// The number, which is unique until the daemon exits. 0 is reserved for [`Self::NONE`].
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.number
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, generation, .. } = self;
        write!(f, "RequestId({number} at {}.{}.{generation})", self.shard(), self.index())
    }
}

/// The id of a client address in the table of a listener with limits per address. It is valid while a connection from
/// the address is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressId(u32);

impl AddressId {
    /// Creates the id of the address at `index`.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The index in the table.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_of_two_shards_is_two_ids() {
        let (first, second) = (RequestId::on_shard(0, 5, 7, 1), RequestId::on_shard(63, 5, 7, 2));
        assert_ne!(first, second);
        assert_eq!((second.shard(), second.index(), second.generation()), (63, 5, 7));
        assert_eq!((first.to_string(), second.as_u64()), ("1".to_owned(), 2));
        assert_eq!(WorkerId::new(u32::MAX, 0).index(), u32::MAX as usize);
    }

    #[test]
    fn an_id_is_shown_with_its_generation() {
        let (pool, listener) = (PoolId::new(3, 1), ListenerId::new(0, 2));
        assert_eq!((pool.to_string(), listener.to_string()), ("3.1".to_owned(), "0.2".to_owned()));
        assert_eq!(format!("{pool:?} {listener:?}"), "PoolId(3.1) ListenerId(0.2)");
        assert_ne!(pool, PoolId::new(3, 2), "its place is taken again");
        assert_eq!(format!("{:?}", WorkerId::new(5, 6)), "WorkerId(5.6)");
        assert_eq!((size_of::<PoolId>(), size_of::<ListenerId>()), (8, 8));
    }

    #[test]
    fn requests_that_had_the_same_place_have_different_ids() {
        let earlier = RequestId::on_shard(1, 5, 7, 40);
        assert_ne!(earlier, RequestId::on_shard(1, 5, 8, 42));
        assert_ne!(earlier, RequestId::on_shard(1, 5, 8, 40), "whatever their numbers");
        assert_ne!(earlier, RequestId::on_shard(1, 5, 7, 42), "whatever their generations");
    }
}
