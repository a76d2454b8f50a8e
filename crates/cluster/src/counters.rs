//! What a replica counts.

/// Counters of events since the start of the daemon.
///
/// `written` = `acknowledged` + `lost_races` + `rejected` + `unknown` + the writes in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Writes that were sent: bindings, touches, deletions and marks.
    pub written: u64,
    /// Writes that the server accepted.
    pub acknowledged: u64,
    /// Writes that the server rejected because another daemon had written first.
    pub lost_races: u64,
    /// Writes that the server did not store for another reason: it was full, or did not permit them.
    pub rejected: u64,
    /// Writes whose outcome is unknown: the connection ended first.
    pub unknown: u64,
    /// Bindings of this daemon that were replaced by a concurrent binding of another daemon.
    pub conflicts: u64,
    /// Bindings of other daemons that were not adopted because their server is down.
    pub refused: u64,
    /// Changes that were ignored because a newer one was known.
    pub stale: u64,
    /// Values that this version cannot read.
    pub unreadable: u64,
    /// Entries that were removed early to make room.
    pub evicted: u64,
    /// Entries that the server had expired and that were kept because they are in use here.
    pub kept: u64,
    /// Entries that were removed after a catch-up because the server no longer has them.
    pub swept: u64,
    /// Touches that were dropped because too many keys were waiting.
    pub touches_dropped: u64,
    /// Bindings that were left for a walk over the whole table because too many keys were waiting.
    pub overflows: u64,
    /// Connections.
    pub connects: u64,
    /// Catch-ups by snapshot.
    pub snapshots: u64,
    /// Catch-ups by the changes since the last connection.
    pub resumes: u64,
    /// Changes of the epoch: the bucket was wiped, restored or restarted.
    pub epochs: u64,
    /// Digests that were compared with one of another daemon.
    pub compared: u64,
    /// Shards whose digest differed at the same revision.
    pub shard_mismatches: u64,
    /// Shards that were fetched again.
    pub fetches: u64,
}
