//! Since when a peer does not take all that it could have, and what it has taken since then.
//!
//! When the kernel has room again says little: a full send buffer of some MiB has room only once a third
//! of it is free, long after a slow peer has begun to read. So what counts is what the peer has
//! acknowledged, that is, what the kernel has accepted without the rest that is unacknowledged.
//!
//! ```text
//!   note ──► accepted bytes count ──measure, after a while──► acknowledged bytes count from here
//!                       └── for ever, where the kernel has no answer (pipes)
//! ```
//!
//! The first measure comes after a while, because a peer that reads nothing acknowledges what is on
//! its way and what its own kernel still has room for.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// The tick from which on it counts.
    since: u64,
    /// Bytes that the kernel had accepted by then.
    accepted: u64,
    acknowledged: Option<Acknowledged>,
}

/// Bytes that the peer had acknowledged, modulo 2^64: those that were sent before the first that is
/// counted may be unacknowledged, too.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    /// When the wait began to count.
    then: u64,
    /// When the kernel was asked last.
    now: u64,
    /// When [`Wait::goes_on`] was asked last.
    seen: u64,
}

impl Wait {
    /// The kernel has no more room, and has accepted so many bytes by now.
    pub(crate) const fn new(tick: u64, accepted: u64) -> Self {
        Self { since: tick, accepted, acknowledged: None }
    }

    pub(crate) const fn since(&self) -> u64 {
        self.since
    }

    /// Whether the kernel has said what the peer had acknowledged.
    pub(crate) const fn is_measured(&self) -> bool {
        self.acknowledged.is_some()
    }

    /// Of what the kernel has accepted so many bytes are unacknowledged. The first time the wait begins
    /// to count.
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

    /// It counts from now on.
    pub(crate) const fn restart(&mut self, tick: u64, accepted: u64) {
        (self.since, self.accepted) = (tick, accepted);
        if let Some(acknowledged) = &mut self.acknowledged {
            acknowledged.then = acknowledged.now;
        }
    }

    /// Bytes that were taken since it began to count, up to the last measure. A Unix socket counts the
    /// memory of its messages instead of their bytes, which may hide what it has accepted.
    pub(crate) fn taken(&self, accepted: u64) -> u64 {
        let acknowledged = self.acknowledged.map_or(0, |it| difference(it.now, it.then));
        acknowledged.max(accepted - self.accepted)
    }

    /// Whether the peer has acknowledged anything since this was asked last, or since the first measure.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.acknowledged.as_mut().is_some_and(|it| {
            let seen = std::mem::replace(&mut it.seen, it.now);
            difference(it.now, seen) > 0
        })
    }
}

/// How far a count has come, or zero where it has fallen.
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
        assert!(!wait.goes_on());
    }

    #[test]
    fn once_it_is_measured_acknowledged_bytes_count_though_none_is_accepted() {
        let mut wait = Wait::new(10, 500);
        // More is unacknowledged than was accepted: some of it was sent before.
        wait.measure(15, 600, 4000);
        assert_eq!((wait.since(), wait.taken(600)), (15, 0), "what came before does not count");
        assert!(!wait.goes_on());
        wait.measure(20, 600, 3900);
        assert_eq!((wait.since(), wait.taken(600)), (15, 100));
        // Bytes that the kernel has accepted since then and that are unacknowledged do not count.
        wait.measure(30, 610, 3910);
        assert_eq!(wait.taken(610), 100);
        assert!(wait.goes_on());
        assert!(!wait.goes_on());
        wait.restart(30, 610);
        assert_eq!((wait.since(), wait.taken(610)), (30, 0));
        wait.measure(40, 610, 3905);
        assert_eq!(wait.taken(610), 5);
        assert!(wait.goes_on(), "whatever was restarted in between");
    }

    #[test]
    fn a_count_that_falls_takes_nothing_away() {
        let mut wait = Wait::new(0, 0);
        wait.measure(1, 0, 100);
        wait.measure(2, 50, 300);
        assert_eq!(wait.taken(50), 50);
        assert!(!wait.goes_on());
    }
}
