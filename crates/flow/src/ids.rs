//! Ids of sessions and connections in the tables of a shard.

use exchange::{Place, TableId};

/// A client session, from accept to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId {
    /// The number of the shard that owns the session.
    pub shard: u32,
    /// The index and generation in the table of that shard.
    pub place: Place,
}

impl SessionId {
    /// The id of the session at `place` in the table of shard `shard`.
    pub const fn new(shard: u32, place: Place) -> Self {
        Self { shard, place }
    }
}

impl TableId for SessionId {
    fn place(self) -> Place {
        self.place
    }
}

/// A connection to a server, from connect to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId(pub Place);

impl TableId for ConnectionId {
    fn place(self) -> Place {
        self.0
    }
}
