//! The schedule of the lines.
//!
//! The `n`th line of connection `c` of `C` is due at `(n + c/C) / rate` after the start: each connection has an even
//! pace, and so have all connections together. In the order in which they are due, the lines of all connections are the
//! slots `n·C + c`.

use std::time::{Duration, Instant, SystemTime};

/// An absolute schedule, which is never delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Nanoseconds between two lines of one connection, at least 1.
    interval_ns: u128,
    connections: u64,
}

impl Pace {
    /// Returns a schedule with this number of lines per second on each connection: above 0, at most 1e9.
    pub(super) fn new(rate: f64, connections: u64) -> Self {
        // With a rate too low for a duration, only one line is ever sent.
        let interval = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX);
        Self { interval_ns: interval.as_nanos().max(1), connections }
    }

    /// Returns when a slot is due, in nanoseconds after the start.
    pub(super) fn due_ns(self, slot: u64) -> u64 {
        let due = u128::from(slot).saturating_mul(self.interval_ns) / u128::from(self.connections);
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// Returns the slot of a connection's line with this number, from 0.
    pub(super) fn slot(self, connection: usize, number: u64) -> u64 {
        number * self.connections + connection as u64
    }

    /// Returns the connection that a slot belongs to.
    pub(super) fn connection(self, slot: u64) -> usize {
        usize::try_from(slot % self.connections).expect("connections are counted in memory")
    }

    /// Returns the number of slots that are due before `end_ns`.
    pub(super) fn slots_before(self, end_ns: u64) -> u64 {
        let scaled = u128::from(end_ns) * u128::from(self.connections);
        u64::try_from(scaled.div_ceil(self.interval_ns)).unwrap_or(u64::MAX)
    }
}

/// The time when the first line was due, on both clocks.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) at: Instant,
    pub(super) since_1970_us: u64,
}

impl Start {
    pub(super) fn now() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let since_1970 = since_1970.unwrap_or_default().as_micros();
        Self { at: Instant::now(), since_1970_us: u64::try_from(since_1970).unwrap_or(0) }
    }

    /// Returns the nanoseconds from the start to `now`.
    pub(super) fn ns(self, now: Instant) -> u64 {
        nanoseconds(now.saturating_duration_since(self.at))
    }
}

/// Returns a duration in nanoseconds, at most about five hundred years.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_thousand_connections_at_one_a_second_are_one_line_a_millisecond() {
        let pace = Pace::new(1.0, 1000);
        assert_eq!(pace.due_ns(0), 0);
        assert_eq!(pace.due_ns(1), 1_000_000);
        assert_eq!(pace.due_ns(pace.slot(999, 0)), 999_000_000);
        assert_eq!(pace.due_ns(pace.slot(0, 1)), SECOND);
        assert_eq!(pace.due_ns(pace.slot(7, 3)), 3 * SECOND + 7_000_000);
        assert_eq!(pace.slots_before(10 * SECOND), 10_000);
    }

    #[test]
    fn a_pace_does_not_drift() {
        let pace = Pace::new(3.0, 7);
        let hour = pace.due_ns(3 * 7 * 3600);
        assert!(hour.abs_diff(3600 * SECOND) < 20_000, "{hour}");
    }

    #[test]
    fn the_slowest_pace_sends_one_line_of_the_first_connection() {
        let pace = Pace::new(f64::MIN_POSITIVE, 3);
        assert_eq!(pace.slots_before(3600 * SECOND), 1);
        assert_eq!(pace.due_ns(1), u64::MAX);
    }

    proptest! {
        #[test]
        fn slots_are_in_the_order_of_time_and_as_many_as_are_due(
            rate in 0.01..5000.0_f64, connections in 1..2000_u64, end_ns in 1..100 * SECOND,
        ) {
            let pace = Pace::new(rate, connections);
            let count = pace.slots_before(end_ns);
            prop_assert!(count == 0 || pace.due_ns(count - 1) < end_ns);
            prop_assert!(pace.due_ns(count) >= end_ns);
        }

        #[test]
        fn every_slot_is_one_line_of_one_connection(
            connections in 1..2000_usize, place in 0..2000_usize, number in 0..100_000_u64,
        ) {
            let pace = Pace::new(2.5, connections as u64);
            let connection = place % connections;
            let slot = pace.slot(connection, number);
            prop_assert_eq!(pace.connection(slot), connection);
            prop_assert_eq!(slot / connections as u64, number);
        }
    }
}
