//! Counts the connections that a listener closed, by reason. They are logged at most once a second.

use std::time::{Duration, Instant};

use exchange::Cause;

/// Why the daemon closes a client connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// No traffic for `idle_timeout` and no request in flight. The stream is shut down cleanly.
    Idle,
    /// No traffic in a tunnel for `tunnel_timeout`.
    TunnelIdle,
    /// No first request within `first_request_timeout`.
    Silent,
    /// The connection was idle, and the listener needed its place for a new one.
    Displaced,
    /// The client read nothing for `send_timeout`, or its buffered output exceeded `send_max`.
    Stalled,
    /// The client read more slowly than `send_rate_min`.
    SlowReader,
    /// The daemon exceeded `memory_max`, and the connection was among the largest users of memory.
    Memory,
    /// The client's first bytes were an HTTP request on a listener of another protocol, or its first JSON-RPC
    /// message was not JSON.
    WrongProtocol,
}

impl Closing {
    const ALL: [Self; 8] = [
        Self::Idle,
        Self::TunnelIdle,
        Self::Silent,
        Self::Displaced,
        Self::Stalled,
        Self::SlowReader,
        Self::Memory,
        Self::WrongProtocol,
    ];

    /// Returns the label value in the metrics.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::TunnelIdle => "tunnel_idle",
            Self::Silent => "silent",
            Self::Displaced => "displaced",
            Self::Stalled => "stalled",
            Self::SlowReader => "slowreader",
            Self::Memory => "memory",
            Self::WrongProtocol => "wrong_protocol",
        }
    }

    /// Returns the cause with which requests in flight on the connection end.
    pub const fn cause(self) -> Cause {
        match self {
            Self::TunnelIdle => Cause::Idle,
            Self::Idle | Self::Silent | Self::Displaced | Self::WrongProtocol => Cause::Left,
            Self::Stalled => Cause::Stalled,
            Self::SlowReader => Cause::SlowReader,
            Self::Memory => Cause::Shed,
        }
    }
}

/// The minimum interval between two log lines about one listener.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Events between two log lines.
#[derive(Debug, Default)]
struct Unlogged {
    /// The time of the last log line.
    logged: Option<Instant>,
    count: u64,
}

impl Unlogged {
    /// Counts one event. If a log line is due, returns the number of events since the last one.
    fn add(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged.is_some_and(|logged| now.duration_since(logged) < LOG_INTERVAL) {
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

/// Counts the closed connections of one listener.
#[derive(Debug, Default)]
pub struct Closings {
    counts: [u64; Self::WORDS.len()],
    displaced: Unlogged,
    wrong_protocol: Unlogged,
    /// The time of the last log line about a failure to accept.
    failure_logged: Option<Instant>,
}

impl Closings {
    /// The label values in the metrics.
    pub const WORDS: [&'static str; Closing::ALL.len()] = {
        let mut words = [""; Closing::ALL.len()];
        let mut place = 0;
        while place < words.len() {
            words[place] = Closing::ALL[place].as_str();
            place += 1;
        }
        words
    };

    /// Counts one closed connection.
    pub fn count(&mut self, closing: Closing) {
        self.counts[closing as usize] += 1;
    }

    /// Returns the counts, in the order of [`Self::WORDS`].
    pub const fn counts(&self) -> &[u64; Self::WORDS.len()] {
        &self.counts
    }

    /// Whether a failed accept must be logged now. At most one per second is logged.
    pub fn logs_failure(&mut self, now: Instant) -> bool {
        let last = self.failure_logged;
        let is_due = last.is_none_or(|last| now.duration_since(last) >= LOG_INTERVAL);
        self.failure_logged = if is_due { Some(now) } else { last };
        is_due
    }

    /// Counts an idle connection that was closed for a new one. If a log line is due, returns the number of such
    /// connections since the last line.
    pub fn count_displaced(&mut self, now: Instant) -> Option<u64> {
        self.count(Closing::Displaced);
        self.displaced.add(now)
    }

    /// Counts a client of another protocol. If a log line is due, returns the number of such clients since the last
    /// line.
    pub fn count_wrong_protocol(&mut self, now: Instant) -> Option<u64> {
        self.count(Closing::WrongProtocol);
        self.wrong_protocol.add(now)
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
            assert_eq!(Closings::WORDS[closing as usize], closing.as_str());
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
        assert_eq!(closings.count_wrong_protocol(start), Some(1), "each reason has its own lines");
    }
}
