//! How long and how often something is tried again.

use std::hash::{BuildHasher, RandomState};
use std::thread;
use std::time::{Duration, Instant};

use exchange::Stop;

/// The first pause, and the longest: one that is longer would keep a database waiting that is there
/// again.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// While it pauses, it looks this often whether to stop.
const LOOK: Duration = Duration::from_millis(10);

/// Pauses between attempts: each twice as long as the one before, and shortened by chance, so that
/// handlers that failed together do not come back together.
#[derive(Debug)]
pub(crate) struct Patience {
    whole: Duration,
    /// When the first attempt had failed.
    since: Option<Instant>,
    pause: Duration,
}

impl Patience {
    /// Patience for `whole`, counted from the first failure.
    pub(crate) const fn new(whole: Duration) -> Self {
        Self { whole, since: None, pause: PAUSE_FIRST }
    }

    /// Pauses after an attempt that failed. False when there is no more patience, or when nobody
    /// wants another attempt.
    pub(crate) fn wait(&mut self, stop: &Stop) -> bool {
        let now = Instant::now();
        let until = *self.since.get_or_insert(now) + self.whole;
        let pause = shortened(self.pause, RandomState::new().hash_one(0));
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        if now + pause >= until {
            return false;
        }
        while now.elapsed() < pause {
            if stop.requested() {
                return false;
            }
            thread::park_timeout(LOOK.min(pause));
        }
        !stop.requested()
    }
}

/// Between half of `pause` and all of it.
fn shortened(pause: Duration, random: u64) -> Duration {
    let half = pause / 2;
    half + half.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_at_least_half_and_at_most_whole() {
        let pause = Duration::from_millis(20);
        for random in [0, 1, u64::MAX / 2, u64::MAX] {
            let shorter = shortened(pause, random);
            assert!(shorter >= pause / 2 && shorter <= pause, "{shorter:?}");
        }
        assert_ne!(shortened(pause, 0), shortened(pause, u64::MAX));
    }

    #[test]
    fn patience_ends_and_whoever_is_stopped_has_none() {
        let mut none = Patience::new(Duration::ZERO);
        assert!(!none.wait(&Stop::default()));
        let stop = Stop::default();
        stop.request();
        assert!(!Patience::new(Duration::from_secs(3600)).wait(&stop));
        let mut little = Patience::new(Duration::from_millis(100));
        let waits = (0..100).take_while(|_| little.wait(&Stop::default())).count();
        assert!((1..10).contains(&waits), "{waits}");
    }
}
