//! Since when a peer does not accept all available output, and how much it has accepted since then.
//!
//! Room in the kernel's buffer is a poor measure. A full send buffer of some MiB has room only when a third of it is
//! free, long after a slow peer has begun to read. Therefore the bytes that the peer has acknowledged count: the bytes
//! that the kernel has accepted minus those that are unacknowledged.
//!
//! ```text
//!   note ──► accepted bytes count ──measure, after a while──► acknowledged bytes count from here
//!                       └── always, if the kernel gives no answer (pipes)
//! ```
//!
//! The first measurement is delayed, because even a peer that reads nothing acknowledges the bytes that are in transit
//! or still fit into its own kernel's buffer.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// The tick at which counting began.
    since: u64,
    /// Bytes that the kernel had accepted at that tick.
    accepted: u64,
    acknowledged: Option<Acknowledged>,
}

/// Bytes that the peer had acknowledged, modulo 2^64. The difference may be negative, because bytes that were sent
/// before the first counted byte may be unacknowledged, too.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    /// When counting began.
    then: u64,
    /// At the last measurement.
    now: u64,
    /// At the last call of [`Wait::has_progressed`].
    seen: u64,
}

impl Wait {
    /// Begins a wait: the kernel has no more room, and has accepted `accepted` bytes so far.
    pub(crate) const fn new(tick: u64, accepted: u64) -> Self {
        Self { since: tick, accepted, acknowledged: None }
    }

    pub(crate) const fn since(&self) -> u64 {
        self.since
    }

    /// Whether the kernel has reported the acknowledged bytes.
    pub(crate) const fn is_measured(&self) -> bool {
        self.acknowledged.is_some()
    }

    /// Records a measurement: `unacknowledged` of the accepted bytes are not acknowledged. With the first measurement
    /// counting begins again.
    pub(crate) const fn measure(&mut self, tick: u64, accepted: u64, unacknowledged: u64) {
        let now = accepted.wrapping_sub(unacknowledged);
        match &mut self.acknowledged {
            Some(acknowledged) => acknowledged.now = now,
            None => {
                let acknowledged = Acknowledged { then: now, now, seen: now };
                *self = Self { since: tick, accepted, acknowledged: Some(acknowledged) };
            }
        }
    }

    /// Restarts counting now.
    pub(crate) const fn restart(&mut self, tick: u64, accepted: u64) {
        (self.since, self.accepted) = (tick, accepted);
        if let Some(acknowledged) = &mut self.acknowledged {
            acknowledged.then = acknowledged.now;
        }
    }

    /// Bytes that were accepted by the peer since counting began, up to the last measurement. A Unix socket reports the
    /// memory of its messages instead of their bytes. This may hide accepted bytes.
    pub(crate) fn taken(&self, accepted: u64) -> u64 {
        let acknowledged = self.acknowledged.map_or(0, |it| difference(it.now, it.then));
        acknowledged.max(accepted - self.accepted)
    }

    /// Whether the peer has acknowledged anything since the previous call, or since the first measurement.
    pub(crate) fn has_progressed(&mut self) -> bool {
        self.acknowledged.as_mut().is_some_and(|it| {
            let seen = std::mem::replace(&mut it.seen, it.now);
            difference(it.now, seen) > 0
        })
    }
}

/// How far a count has advanced; zero if it has decreased.
fn difference(now: u64, then: u64) -> u64 {
    u64::try_from(now.wrapping_sub(then).cast_signed()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_it_is_measured_accepted_bytes_count() {
        let mut wait = Wait::new(10, 500);
        assert_eq!((wait.since(), wait.taken(500), wait.taken(800)), (10, 0, 300));
        wait.restart(20, 800);
        assert_eq!((wait.since(), wait.taken(800), wait.taken(801)), (20, 0, 1));
        assert!(!wait.has_progressed());
    }

    #[test]
    fn once_it_is_measured_acknowledged_bytes_count_though_none_is_accepted() {
        let mut wait = Wait::new(10, 500);
        // More bytes are unacknowledged than were accepted, because some were sent before.
        wait.measure(15, 600, 4000);
        assert_eq!((wait.since(), wait.taken(600)), (15, 0), "what came before does not count");
        assert!(!wait.has_progressed());
        wait.measure(20, 600, 3900);
        assert_eq!((wait.since(), wait.taken(600)), (15, 100));
        // Bytes that the kernel has accepted since then and that are unacknowledged do not count.
        wait.measure(30, 610, 3910);
        assert_eq!(wait.taken(610), 100);
        assert!(wait.has_progressed());
        assert!(!wait.has_progressed());
        wait.restart(30, 610);
        assert_eq!((wait.since(), wait.taken(610)), (30, 0));
        wait.measure(40, 610, 3905);
        assert_eq!(wait.taken(610), 5);
        assert!(wait.has_progressed(), "whatever was restarted in between");
    }

    #[test]
    fn a_count_that_falls_takes_nothing_away() {
        let mut wait = Wait::new(0, 0);
        wait.measure(1, 0, 100);
        wait.measure(2, 50, 300);
        assert_eq!(wait.taken(50), 50);
        assert!(!wait.has_progressed());
    }
}
