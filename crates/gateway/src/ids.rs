//! Ids of what a shard has in tables of its own.

use exchange::{Place, TableId};

/// One session from accept to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionId {
    pub(crate) shard: u32,
    /// In the table of this shard.
    pub(crate) place: Place,
}

impl SessionId {
    pub(crate) const fn new(shard: u32, place: Place) -> Self {
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
pub(crate) struct LinkId(pub(crate) Place);

impl TableId for LinkId {
    fn place(self) -> Place {
        self.0
    }
}
