//! Servers whose connections are not reused, because they sent bytes that no request asked for.
//!
//! A server that answers one request twice shifts the replies of a connection: the second reply is
//! taken for the reply to the next request, which may be another client's. Bytes that arrive while a
//! connection is idle, or behind a complete reply, prove that a server does so. From then on each of
//! its connections carries one request, for a minute at first and for twice as long each further time,
//! up to an hour.

use std::time::{Duration, Instant};

/// How long the connections of a server are not reused, the first time and at most.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// What is known of one server.
///
/// ```text
///   trusted ──unrequested bytes──▶ distrusted ──its time has passed──▶ trusted
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trust {
    /// Its connections are not reused before this.
    pub(super) until: Option<Instant>,
    /// Times that it became distrusted.
    pub(super) times: u32,
    /// Reports of all shards that were taken into account.
    pub(super) reports: u32,
}

impl Trust {
    /// The server sent bytes that no request asked for. How long it is distrusted now, if it was
    /// trusted before.
    pub(super) fn distrust(&mut self, now: Instant) -> Option<Duration> {
        let was_trusted = self.is_given(now);
        self.times = self.times.saturating_add(u32::from(was_trusted));
        let doublings = self.times.saturating_sub(1).min(16);
        let span = FIRST.saturating_mul(1 << doublings).min(LONGEST);
        self.until = Some(now + span);
        was_trusted.then_some(span)
    }

    /// Whether connections of the server may be reused.
    pub(super) fn is_given(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_distrusted_for_a_minute_and_twice_as_long_each_further_time() {
        let (mut trust, mut now) = (Trust::default(), Instant::now());
        assert!(trust.is_given(now));
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            let span = Duration::from_secs(60 * minutes);
            assert_eq!(trust.distrust(now), Some(span));
            assert_eq!(trust.distrust(now), None, "it was distrusted already");
            assert!(!trust.is_given(now + span - Duration::from_millis(1)));
            now += span;
            assert!(trust.is_given(now));
        }
    }
}
