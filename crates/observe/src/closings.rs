//! Why a listener closes connections of its clients, counted, and logged at most once a second.

use std::time::{Duration, Instant};

use exchange::Cause;

/// Why the gateway closes a connection that its client has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Nothing happened for `idle`, and nothing was owed to it: its stream is finished in good order.
    Idle,
    /// Nothing happened in a tunnel for `tunnel_idle`.
    TunnelIdle,
    /// It did not begin its first request within `first_request_timeout`.
    Silent,
    /// It was idle, and the listener had as many connections as it may.
    Displaced,
    /// It took none of its output for `write_stall`, or more waited for it than `send_max`.
    Stalled,
    /// It took its output more slowly than `send_rate_min`.
    SlowReader,
    /// It held more memory than others when the daemon held more than `memory_max`.
    Memory,
}

impl Closing {
    const ALL: [Self; 7] = [
        Self::Idle,
        Self::TunnelIdle,
        Self::Silent,
        Self::Displaced,
        Self::Stalled,
        Self::SlowReader,
        Self::Memory,
    ];

    /// The word in the metrics.
    const fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::TunnelIdle => "tunnel_idle",
            Self::Silent => "silent",
            Self::Displaced => "displaced",
            Self::Stalled => "stalled",
            Self::SlowReader => "slowreader",
            Self::Memory => "memory",
        }
    }

    /// What ends the requests of the connection, if it has any.
    pub const fn cause(self) -> Cause {
        match self {
            Self::TunnelIdle => Cause::Idle,
            Self::Idle | Self::Silent | Self::Displaced => Cause::Left,
            Self::Stalled => Cause::Stalled,
            Self::SlowReader => Cause::SlowReader,
            Self::Memory => Cause::Shed,
        }
    }
}

/// The shortest time between two lines of the log about one listener.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// The closed connections of one listener.
#[derive(Debug, Default)]
pub struct Closings {
    counts: [u64; Self::WORDS.len()],
    /// When the last line was logged, and how many connections were displaced since.
    logged: Option<Instant>,
    displaced: u64,
    /// When it was last logged that no connection could be accepted.
    failure_logged: Option<Instant>,
}

impl Closings {
    /// The words in the metrics.
    pub const WORDS: [&'static str; Closing::ALL.len()] = {
        let mut words = [""; Closing::ALL.len()];
        let mut place = 0;
        while place < words.len() {
            words[place] = Closing::ALL[place].word();
            place += 1;
        }
        words
    };

    pub fn count(&mut self, closing: Closing) {
        self.counts[closing as usize] += 1;
    }

    pub const fn counts(&self) -> &[u64; Self::WORDS.len()] {
        &self.counts
    }

    /// Whether it is logged that no connection could be accepted.
    pub fn logs_failure(&mut self, now: Instant) -> bool {
        let last = self.failure_logged;
        let is_due = last.is_none_or(|last| now.duration_since(last) >= LOG_INTERVAL);
        self.failure_logged = if is_due { Some(now) } else { last };
        is_due
    }

    /// Counts an idle connection that has made place for another. Gives how many have since the last
    /// line of the log, when the next is due.
    pub fn count_displaced(&mut self, now: Instant) -> Option<u64> {
        self.count(Closing::Displaced);
        self.displaced += 1;
        if self.logged.is_some_and(|logged| now.duration_since(logged) < LOG_INTERVAL) {
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.displaced))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_at_its_own_place() {
        let mut closings = Closings::default();
        for closing in Closing::ALL {
            closings.count(closing);
            assert_eq!(Closings::WORDS[closing as usize], closing.word());
        }
        assert_eq!(closings.counts(), &[1; Closings::WORDS.len()]);
    }

    #[test]
    fn displaced_connections_are_logged_once_a_second_with_their_number() {
        let (mut closings, start) = (Closings::default(), Instant::now());
        assert_eq!(closings.count_displaced(start), Some(1));
        for _ in 0..7 {
            assert_eq!(closings.count_displaced(start + LOG_INTERVAL / 2), None);
        }
        assert_eq!(closings.count_displaced(start + LOG_INTERVAL), Some(8));
        assert_eq!(closings.counts()[Closing::Displaced as usize], 9);
    }
}
