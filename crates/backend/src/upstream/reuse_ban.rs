//! Servers whose connections are not reused, because they sent bytes without a request.
//!
//! A server that answers one request twice shifts the replies of a connection: the second reply would be taken for the
//! reply to the next request, which may belong to another client. Bytes that arrive while a connection is idle, or
//! after a complete reply, prove such a fault. From then on each connection to the server carries only one request.
//! This lasts for one minute, and each further time for twice as long, up to one hour.

use std::time::{Duration, Instant};

/// The first and the maximum time in which connections of a server are not reused.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// Whether the connections of one server may be reused.
///
/// ```text
///   trusted ──unrequested bytes──▶ distrusted ──time expired──▶ trusted
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReuseBan {
    /// The time before which connections are not reused.
    pub(super) until: Option<Instant>,
    /// How often the server became distrusted.
    pub(super) times: u32,
    /// The number of reports of all shards that were handled.
    pub(super) reports: u32,
}

impl ReuseBan {
    /// Records that the server sent bytes without a request. Returns for how long it is distrusted, if it was trusted
    /// before.
    pub(super) fn ban(&mut self, now: Instant) -> Option<Duration> {
        let was_trusted = self.allows_reuse(now);
        self.times = self.times.saturating_add(u32::from(was_trusted));
        let doublings = self.times.saturating_sub(1).min(16);
        let span = FIRST.saturating_mul(1 << doublings).min(LONGEST);
        self.until = Some(now + span);
        was_trusted.then_some(span)
    }

    /// Whether connections of the server may be reused.
    pub(super) fn allows_reuse(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_distrusted_for_a_minute_and_twice_as_long_each_further_time() {
        let (mut reuse_ban, mut now) = (ReuseBan::default(), Instant::now());
        assert!(reuse_ban.allows_reuse(now));
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            let span = Duration::from_secs(60 * minutes);
            assert_eq!(reuse_ban.ban(now), Some(span));
            assert_eq!(reuse_ban.ban(now), None, "it was distrusted already");
            assert!(!reuse_ban.allows_reuse(now + span - Duration::from_millis(1)));
            now += span;
            assert!(reuse_ban.allows_reuse(now));
        }
    }
}
