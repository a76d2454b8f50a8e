//! Ids with a generation: a late answer names what has gone and not what took its place.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
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
                self.index as usize
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
    /// One request from its receipt to its end.
    RequestId
}
id! {
    /// One worker of one pool, from its start to its end. A restarted program is another worker.
    WorkerId
}
