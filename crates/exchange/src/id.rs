//! Ids with a generation: a late answer names what has gone and not what took its place.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $place_bits:expr) => {
        $(#[$doc])*
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
                (self.index & (u32::MAX >> (32 - $place_bits))) as usize
            }

            /// How many ids had this place before.
            #[must_use]
            pub const fn generation(self) -> u32 {
                self.generation
            }

            /// Both in one number, unique as long as the daemon lives.
            #[must_use]
            pub const fn as_u64(self) -> u64 {
                (self.generation as u64) << 32 | self.index as u64
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.as_u64())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({}.{})"), self.index, self.generation)
            }
        }
    };
}

id! {
    /// One request from its receipt to its end. It says which shard it is of.
    RequestId, SHARD_SHIFT
}
id! {
    /// One worker of one pool, from its start to its end. A restarted program is another worker.
    WorkerId, 32
}

/// Shards that ids can tell apart.
pub const SHARDS_MAX: u32 = 64;

/// Where the number of the shard stands in an index; 2^26 requests of a shard may be on their way.
const SHARD_SHIFT: u32 = 26;

impl RequestId {
    /// The id of the `generation`-th user of place `index` of a shard.
    ///
    /// # Panics
    /// When the place or the shard is beyond what an id can hold.
    #[must_use]
    pub const fn on_shard(shard: u32, index: u32, generation: u32) -> Self {
        assert!(shard < SHARDS_MAX && index >> SHARD_SHIFT == 0, "an id has 26 bits for the place");
        Self { index: shard << SHARD_SHIFT | index, generation }
    }

    /// The shard that took it from its client or, of a request of another shard, serves it.
    #[must_use]
    pub const fn shard(self) -> u32 {
        self.index >> SHARD_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_of_two_shards_is_two_ids() {
        let (first, second) = (RequestId::on_shard(0, 5, 7), RequestId::on_shard(63, 5, 7));
        assert_eq!(first, RequestId::new(5, 7));
        assert_eq!((second.shard(), second.index(), second.generation()), (63, 5, 7));
        assert_ne!(first.as_u64(), second.as_u64());
        assert_eq!(WorkerId::new(u32::MAX, 0).index(), u32::MAX as usize);
    }
}
