//! Servers whose connections are not reused, because they sent bytes that no request asked for.
//!
//! A server that answers one request twice shifts the replies of a connection: the second reply is
//! taken for the reply to the next request, which may be another client's. Bytes that arrive while a
//! connection is idle, or behind a complete reply, prove that a server does so. From then on each of
//! its connections carries one request, for a minute at first and for twice as long each further time,
//! up to an hour.

use std::time::{Duration, Instant};

use event::Calls;
use exchange::WorkerId;
use exchange::plant::{Plant, active};

use super::Servers;
use crate::upward::Upward;

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
    until: Option<Instant>,
    /// Times that it became distrusted.
    times: u32,
    /// Reports of all shards that were taken into account.
    reports: u32,
}

impl Trust {
    /// The server sent bytes that no request asked for. How long it is distrusted now, if it was
    /// trusted before.
    fn distrust(&mut self, now: Instant) -> Option<Duration> {
        let was_trusted = self.is_given(now);
        self.times = self.times.saturating_add(u32::from(was_trusted));
        let doublings = self.times.saturating_sub(1).min(16);
        let span = FIRST.saturating_mul(1 << doublings).min(LONGEST);
        self.until = Some(now + span);
        was_trusted.then_some(span)
    }

    /// Whether connections of the server may be reused.
    fn is_given(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now >= until)
    }
}

impl Servers {
    /// What is known of the server at a place.
    fn trust(&mut self, place: usize) -> &mut Trust {
        if self.trust.len() <= place {
            self.trust.resize_with(place + 1, Trust::default);
        }
        &mut self.trust[place]
    }

    /// Another server is at this place: nothing is known of it.
    pub(super) fn forget_trust(&mut self, place: usize) {
        let reports = self.room.as_ref().map_or(0, |room| room.reports(place));
        *self.trust(place) = Trust { reports, ..Trust::default() };
    }

    /// Whether connections of a server may be reused.
    pub(super) fn may_reuse(&mut self, now: Instant, worker: WorkerId) -> bool {
        let place = worker.index();
        let reports = self.room.as_ref().map_or(0, |room| room.reports(place));
        let trust = self.trust(place);
        if trust.reports != reports {
            trust.reports = reports;
            trust.distrust(now);
        }
        trust.is_given(now) || active(Plant::Trusting)
    }

    /// A server sent bytes that no request asked for.
    pub(super) fn distrust_replies(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        up: &mut Vec<Upward>,
    ) {
        let place = worker.index();
        up.push(Upward::Unrequested);
        let reports = self.room.as_ref().map_or(0, |room| room.report(place));
        let trust = self.trust(place);
        trust.reports = reports;
        // While it is distrusted nothing is logged again.
        if let Some(span) = trust.distrust(calls.now()) {
            let (server, pool) = (self.address(worker), &self.pool);
            tracing::warn!(
                server,
                pool,
                "sent bytes that no request asked for; its connections are not reused for {} s",
                span.as_secs()
            );
        }
        self.close_idle(calls, worker);
    }

    /// Closes the connections of a server that carry no request.
    pub(super) fn close_idle(&mut self, calls: &mut Calls<'_>, worker: WorkerId) {
        let idle = self.find(worker).map(|server| std::mem::take(&mut server.idle));
        for id in idle.unwrap_or_default() {
            self.close(calls, id);
        }
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
