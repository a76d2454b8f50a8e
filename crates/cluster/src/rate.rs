//! A limit of events per second (token bucket).

/// The largest number of events at once.
const BURST: u64 = 256;

#[derive(Clone, Debug)]
pub(crate) struct Rate {
    per_second: u64,
    /// The events that are possible now, in thousandths.
    level: u64,
    at_ms: u64,
}

impl Rate {
    pub(crate) const fn new(per_second: u64) -> Self {
        let per_second = if per_second == 0 { 1 } else { per_second };
        Self { per_second, level: BURST * 1000, at_ms: 0 }
    }

    /// Whether an event is possible now.
    pub(crate) fn is_free(&mut self, now_ms: u64) -> bool {
        let passed = now_ms.saturating_sub(self.at_ms);
        self.at_ms = self.at_ms.max(now_ms);
        self.level = passed.saturating_mul(self.per_second).saturating_add(self.level);
        self.level = self.level.min(BURST * 1000);
        self.level >= 1000
    }

    /// Counts an event, if it is possible now.
    pub(crate) fn take(&mut self, now_ms: u64) -> bool {
        let is_free = self.is_free(now_ms);
        self.level -= if is_free { 1000 } else { 0 };
        is_free
    }

    /// When the next event is possible, if none was possible now.
    pub(crate) const fn next_ms(&self) -> u64 {
        self.at_ms + 1000_u64.saturating_sub(self.level).div_ceil(self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_and_unused_events_are_not_saved_up() {
        let mut rate = Rate::new(5000);
        let at_once = |rate: &mut Rate, now| (0..10_000).take_while(|_| rate.take(now)).count();
        assert_eq!(at_once(&mut rate, 0), 256);
        assert_eq!(rate.next_ms(), 1);
        assert_eq!(at_once(&mut rate, 20), 100);
        assert_eq!(at_once(&mut rate, 9000), 256);
        assert_eq!(at_once(&mut rate, 8000), 0, "time never runs backwards");
    }
}
