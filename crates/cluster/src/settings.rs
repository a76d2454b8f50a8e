//! Limits and intervals of a replica.

/// Limits and intervals of a [`Replica`](crate::Replica). All times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A client without a request for this time is no longer bound. The same in all daemons; the `max_age` of the
    /// bucket must be [`Settings::max_age_ms`].
    pub lifetime_ms: u64,
    /// The maximum number of entries. Above it, the one that was idle longest is evicted.
    pub entries_max: u32,
    /// Changes wait at most this long to be coalesced.
    pub flush_ms: u64,
    /// This many waiting keys are flushed at once.
    pub flush_keys: usize,
    /// The maximum number of writes without an acknowledgement.
    pub unacknowledged_max: usize,
    /// The maximum number of writes per second. Bindings go before touches.
    pub writes_per_second: u64,
    /// The maximum number of keys that wait to be written.
    pub pending_max: usize,
    /// A write that is not acknowledged, or not seen on the watch, within this time ends the connection.
    pub acknowledge_timeout_ms: u64,
    /// A fetch of a shard that takes longer ends the connection.
    pub fetch_timeout_ms: u64,
    /// The time between two marks in the stream. Each daemon publishes its digest at each mark.
    pub mark_ms: u64,
}

impl Settings {
    /// Returns the `max_age` of the bucket: an entry outlives its last use although touches are written only when a
    /// quarter of the lifetime has passed.
    #[must_use]
    pub const fn max_age_ms(&self) -> u64 {
        self.lifetime_ms + self.touch_after_ms()
    }

    pub(crate) const fn touch_after_ms(&self) -> u64 {
        self.lifetime_ms / 4
    }

    /// The table of a pool reports the uses of a client at most a sixteenth of the lifetime late. The touch is then
    /// written when a quarter has passed, at the latest.
    pub(crate) const fn touch_reported_after_ms(&self) -> u64 {
        self.touch_after_ms() - self.lifetime_ms / 16
    }
}

impl Default for Settings {
    /// 1,000,000 entries, for one hour.
    fn default() -> Self {
        Self {
            lifetime_ms: 3_600_000,
            entries_max: 1_000_000,
            flush_ms: 20,
            flush_keys: 256,
            unacknowledged_max: 256,
            writes_per_second: 5000,
            pending_max: 100_000,
            acknowledge_timeout_ms: 2000,
            fetch_timeout_ms: 30_000,
            mark_ms: 10_000,
        }
    }
}
