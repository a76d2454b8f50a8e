//! Ids of what a shard has in tables of its own.

use exchange::{Place, TableId};

/// One session from accept to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId {
    pub shard: u32,
    /// In the table of this shard.
    pub place: Place,
}

impl SessionId {
    pub const fn new(shard: u32, place: Place) -> Self {
        Self { shard, place }
    }
}

impl TableId for SessionId {
    fn place(self) -> Place {
        self.place
    }
}

/// One link to a server from its connection to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkId(pub Place);

impl TableId for LinkId {
    fn place(self) -> Place {
        self.0
    }
}
