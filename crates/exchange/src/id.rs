//! Ids with a generation: a late answer names what has gone and not what took its place.

use std::fmt;

/// Declares an id of an index and a generation.
macro_rules! generational {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            index: u32,
            generation: u32,
        }

        impl $name {
            /// The id of the `generation`-th user of place `index`.
            #[must_use]
            pub const fn new(index: u32, generation: u32) -> Self {
                Self { index, generation }
            }

            /// The place in its table, reused by later ids.
            #[must_use]
            pub const fn index(self) -> usize {
                self.index as usize
            }

            /// How many ids had this place before.
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
    /// One worker of one pool, from its start to its end. A restarted program is another worker.
    WorkerId
}

impl WorkerId {
    /// Both in one number, unique as long as the daemon lives.
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

/// The index of a worker in its pool. A server keeps it as long as the daemon runs; a program that is started
/// after another has ended may get that one's index, so that what belongs to one program alone goes by its
/// [`WorkerId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerIndex(u32);

impl WorkerIndex {
    /// The index of this number.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Its number.
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
    /// One pool, from the configuration that adds it to the one that removes it. All shards use the same id.
    PoolId
}

generational! {
    /// One listener, from the configuration that adds it to the one that removes it. All shards use the same id.
    ListenerId
}

impl PoolId {
    /// The id that no pool has.
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

/// One request from its receipt to its end.
///
/// Users see its number only: the requests of a daemon with one shard are 1, 2, 3 and so on. The place and its
/// generation find the request in the table of its shard; two ids are equal only if all of them are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    number: u64,
    /// The shard and the place.
    index: u32,
    generation: u32,
}

/// Shards that ids can tell apart.
pub const SHARDS_MAX: u32 = 64;

/// Where the number of the shard stands in an index; 2^26 requests of a shard may be on their way.
const SHARD_SHIFT: u32 = 26;

impl RequestId {
    /// The id that stands for no request.
    pub const NONE: Self = Self::new(0);

    /// The id of a request that is in no table of a shard: for what calls a [`Handler`](crate::Handler) itself.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self { number, index: 0, generation: 0 }
    }

    /// The id of the `generation`-th user of place `index` of a shard. Only this request has the `number`
    /// as long as the daemon lives.
    ///
    /// # Panics
    /// When the place or the shard is beyond what an id can hold.
    #[must_use]
    pub const fn on_shard(shard: u32, index: u32, generation: u32, number: u64) -> Self {
        assert!(shard < SHARDS_MAX && index >> SHARD_SHIFT == 0, "an id has 26 bits for the place");
        Self { number, index: shard << SHARD_SHIFT | index, generation }
    }

    /// The shard that took it from its client or, of a request of another shard, serves it.
    #[must_use]
    pub const fn shard(self) -> u32 {
        self.index >> SHARD_SHIFT
    }

    /// The place in the table of its shard, reused by later ids.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.index & ((1 << SHARD_SHIFT) - 1)) as usize
    }

    /// How many ids had this place before.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// Its number, unique as long as the daemon lives, and never 0.
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

/// A client address in the table of a listener that limits what each address may do. It is valid while a
/// connection of the address is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressId(u32);

impl AddressId {
    /// The address at this index.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Its index in the table.
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
