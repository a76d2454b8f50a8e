//! The connection of a handler. It is opened on demand and dropped when it fails.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use exchange::Stop;

use crate::fault::Fault;
use crate::link::{DatabaseSession, Driver, Setup};
use crate::logins::{self, PAUSE_FIRST, PAUSE_MAX};
use crate::rows::Shape;

/// The interval at which a handler checks during a pause whether to stop.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The interval at which a handler opens another connection while the dead-letter table cannot be used.
const TABLE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The connection of a handler.
#[derive(Debug)]
pub(crate) struct Connection<L> {
    /// `None` after an error that spoils the connection, until the next attempt.
    link: Option<L>,
    shape: Arc<Shape>,
    /// The time of the first failed attempt since the last success.
    failing: Option<Instant>,
    /// The number of pauses since then that did not wait for a login.
    pauses: u32,
    /// The connection was opened after a failure, and nothing has succeeded on it yet.
    unproven: bool,
    /// The server answered with an error that might not occur on another connection. The link is used until the
    /// back-off allows a login, because the error may concern only one row.
    doubted: bool,
    /// The dead-letter table could not be used. Another connection may find it repaired, or creates it.
    is_unfit: bool,
    /// The time of the last connection that checked this.
    looked: Option<Instant>,
}

impl<L: DatabaseSession> Connection<L> {
    pub(crate) fn new(link: L) -> Self {
        let shape = Arc::clone(&link.opened().shape);
        let (failing, pauses) = (None, 0);
        let is_unfit = link.opened().unfit.is_some();
        Self {
            link: Some(link),
            shape,
            failing,
            pauses,
            unproven: false,
            doubted: false,
            is_unfit,
            looked: None,
        }
    }

    /// The shape of the rows. It is available without a connection too.
    pub(crate) const fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Returns the link, if it is open.
    pub(crate) const fn link(&mut self) -> Option<&mut L> {
        self.link.as_mut()
    }

    /// Returns the link. It is opened again if the last one failed and the back-off of the pool allows a login, or if
    /// its dead-letter table could not be used. A usable link is kept if no other one can be opened.
    ///
    /// # Errors
    /// Returns the reason why there is no link.
    pub(crate) fn open<D: Driver<DatabaseSession = L>>(
        &mut self,
        setup: &Setup<D>,
    ) -> Result<&mut L, Fault> {
        let looks =
            self.is_unfit && self.looked.is_none_or(|it| it.elapsed() >= TABLE_CHECK_INTERVAL);
        if looks {
            self.looked = Some(Instant::now());
        }
        if self.link.is_none() || self.doubted || looks {
            match setup.logins.attempt(&setup.driver.name(), || setup.connect()) {
                Ok(link) => {
                    self.shape = Arc::clone(&link.opened().shape);
                    self.is_unfit = link.opened().unfit.is_some();
                    self.link = Some(link);
                    (self.unproven, self.doubted) = (true, false);
                }
                Err(_) if self.link.is_some() => {}
                Err(fault) => {
                    self.failing.get_or_insert_with(Instant::now);
                    return Err(fault);
                }
            }
        }
        Ok(self.link.as_mut().expect("it was opened just now"))
    }

    /// Records that the dead-letter table could not be used. From time to time another connection checks it.
    pub(crate) const fn note_unfit(&mut self) {
        self.is_unfit = true;
    }

    /// Drops the link, because its statement no longer fits its table.
    pub(crate) fn discard(&mut self) {
        self.link = None;
        self.doubted = false;
    }

    /// Records a failed attempt. A link that is spoiled by the error is dropped, or marked as doubted if the server
    /// answered on it.
    pub(crate) fn record_failure<D: Driver<DatabaseSession = L>>(
        &mut self,
        setup: &Setup<D>,
        fault: &Fault,
    ) {
        if fault.again || fault.blame.spoils_connection() {
            self.failing.get_or_insert_with(Instant::now);
        }
        // Without a link, the login failed. It is recorded already.
        if fault.blame.spoils_connection() && self.link.is_some() {
            self.doubted = fault.answered && fault.again;
            if !self.doubted {
                self.link = None;
            }
            setup.logins.record_failure(&setup.driver.name(), fault);
        }
    }

    /// Records a successful attempt.
    pub(crate) fn record_success<D: Driver<DatabaseSession = L>>(&mut self, setup: &Setup<D>) {
        self.failing = None;
        self.pauses = 0;
        let doubted = std::mem::take(&mut self.doubted);
        if std::mem::take(&mut self.unproven) {
            setup.logins.recovered(&setup.driver.name());
        } else if doubted {
            setup.logins.cleared(&setup.driver.name());
        }
    }

    /// Returns how much longer a request is retried that was received at `at_us` (microseconds since the Unix epoch).
    /// `retry_timeout` counts from the first failure or, for a request that was received later, from its receipt.
    pub(crate) fn time_left(&self, retry: Duration, at_us: i64) -> Duration {
        let Some(since) = self.failing else { return retry };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        time_left(retry, since.elapsed(), now, at_us)
    }

    /// Waits until another attempt is useful, at most for `limit`. Returns false if there is no time left, or if a stop
    /// is requested.
    pub(crate) fn wait<D>(&mut self, setup: &Setup<D>, limit: Duration, stop: &Stop) -> bool {
        if limit.is_zero() {
            return false;
        }
        let pause = (self.link.is_some() && !self.doubted).then(|| {
            self.pauses = self.pauses.saturating_add(1);
            logins::shortened(logins::pause(self.pauses - 1, PAUSE_MAX), logins::random())
        });
        sleep(stop, |elapsed| {
            let left = match pause {
                Some(pause) => pause.saturating_sub(elapsed),
                None => setup.logins.due_in(),
            };
            left.min(limit.saturating_sub(elapsed))
        })
    }

    /// Waits for a short time before a login that follows a successful one. Returns false if a stop is requested.
    pub(crate) fn pause<D>(&self, setup: &Setup<D>, stop: &Stop) -> bool {
        let pause = logins::shortened(PAUSE_FIRST, logins::random());
        sleep(stop, |elapsed| {
            let due_in = setup.logins.due_in().min(PAUSE_MAX.saturating_sub(elapsed));
            due_in.max(pause.saturating_sub(elapsed))
        })
    }

    #[cfg(test)]
    pub(crate) const fn is_spoiled(&self) -> bool {
        self.link.is_none()
    }

    /// For tests that bring a connection into a state that no request can cause.
    #[cfg(test)]
    pub(crate) const fn slot(&mut self) -> &mut Option<L> {
        &mut self.link
    }
}

/// Waits until `left`, called with the elapsed time, returns zero. Returns false if a stop is requested.
fn sleep(stop: &Stop, left: impl Fn(Duration) -> Duration) -> bool {
    let since = Instant::now();
    loop {
        let left = left(since.elapsed());
        if stop.requested() {
            return false;
        }
        if left.is_zero() {
            return true;
        }
        thread::park_timeout(STOP_CHECK_INTERVAL.min(left));
    }
}

/// Returns the rest of `retry_timeout` at `now`, which is `failing` after the first failure, for a request that was
/// received at `at_us`.
fn time_left(retry: Duration, failing: Duration, now: Duration, at_us: i64) -> Duration {
    let received = Duration::from_micros(at_us.max(0).unsigned_abs());
    retry.saturating_sub(failing.min(now.saturating_sub(received)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_counts_from_the_first_failure_or_from_a_later_receipt() {
        let left = |failing, waited: i64| {
            let (retry, now) = (Duration::from_secs(10), Duration::from_secs(1000));
            let at_us = (1000 - waited) * 1_000_000;
            time_left(retry, Duration::from_secs(failing), now, at_us).as_secs()
        };
        assert_eq!(left(0, 0), 10);
        assert_eq!(left(4, 3), 7, "received during the outage");
        assert_eq!(left(4, 60), 6, "received before it");
        assert_eq!(left(60, 3), 7);
        assert_eq!(left(60, 10), 0);
        assert_eq!(left(60, 2000), 0, "received before the epoch");
        assert_eq!(left(60, -5), 10, "the clock was set back meanwhile");
    }
}
