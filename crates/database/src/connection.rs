//! The connection of a handler: opened when it is needed, given up when it fails.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use exchange::Stop;

use crate::fault::Fault;
use crate::link::{Driver, Link, Setup};
use crate::logins::{self, PAUSE_FIRST, PAUSE_MAX};
use crate::rows::Shape;

/// During a pause, a handler checks this often whether to stop.
const LOOK: Duration = Duration::from_millis(10);

/// How often a handler opens another connection while the table of letters takes none.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The connection of a handler.
#[derive(Debug)]
pub(crate) struct Connection<L> {
    /// None after an error that spoils a connection, until the next attempt.
    link: Option<L>,
    shape: Arc<Shape>,
    /// When the first attempt failed since the last one that succeeded.
    failing: Option<Instant>,
    /// Pauses since then that did not wait for a login.
    pauses: u32,
    /// It was opened after a failure, and nothing has succeeded on it yet.
    unproven: bool,
    /// The server answered with an error that another connection may not meet. The link is used until
    /// the back-off allows a login, because the error may have been about one row.
    doubted: bool,
    /// The table of letters took none: another connection may find it repaired, or makes it.
    is_unfit: bool,
    /// When that was looked for last.
    looked: Option<Instant>,
}

impl<L: Link> Connection<L> {
    pub(crate) fn new(link: L) -> Self {
        let shape = Arc::clone(link.shape());
        let (failing, pauses) = (None, 0);
        let is_unfit = link.unfit().is_some();
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

    /// What its rows are like, also while there is no connection.
    pub(crate) const fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// The link, if it is open.
    pub(crate) const fn link(&mut self) -> Option<&mut L> {
        self.link.as_mut()
    }

    /// The link, opened anew where the last one failed and the back-off of the pool allows a login, or
    /// where its table of letters took none. A link that can be used stays where no other can be opened.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn open<D: Driver<Link = L>>(&mut self, setup: &Setup<D>) -> Result<&mut L, Fault> {
        let looks = self.is_unfit && self.looked.is_none_or(|it| it.elapsed() >= LOOK_AGAIN);
        if looks {
            self.looked = Some(Instant::now());
        }
        if self.link.is_none() || self.doubted || looks {
            match setup.logins.attempt(&setup.driver.name(), || setup.connect()) {
                Ok(link) => {
                    self.shape = Arc::clone(link.shape());
                    self.is_unfit = link.unfit().is_some();
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

    /// The table of letters took none. Now and then another connection looks whether it is as it should be.
    pub(crate) const fn note_unfit(&mut self) {
        self.is_unfit = true;
    }

    /// Gives the link up because its statement no longer fits its table.
    pub(crate) fn discard(&mut self) {
        self.link = None;
        self.doubted = false;
    }

    /// An attempt failed. A link that is spoiled by that is given up, or doubted where the server
    /// answered on it.
    pub(crate) fn failed<D: Driver<Link = L>>(&mut self, setup: &Setup<D>, fault: &Fault) {
        if fault.again || fault.blame.spoils_connection() {
            self.failing.get_or_insert_with(Instant::now);
        }
        // Without a link it was the login that failed, which is noted already.
        if fault.blame.spoils_connection() && self.link.is_some() {
            self.doubted = fault.answered && fault.again;
            if !self.doubted {
                self.link = None;
            }
            setup.logins.failed(&setup.driver.name(), fault);
        }
    }

    /// An attempt succeeded.
    pub(crate) fn worked<D: Driver<Link = L>>(&mut self, setup: &Setup<D>) {
        self.failing = None;
        self.pauses = 0;
        let doubted = std::mem::take(&mut self.doubted);
        if std::mem::take(&mut self.unproven) {
            setup.logins.recovered(&setup.driver.name());
        } else if doubted {
            setup.logins.cleared(&setup.driver.name());
        }
    }

    /// How much longer a request is tried again that was received at `at_us` (microseconds since the
    /// Unix epoch). `retry_timeout` counts from the first failure, and for a request that was received later
    /// from then.
    pub(crate) fn time_left(&self, retry: Duration, at_us: i64) -> Duration {
        let Some(since) = self.failing else { return retry };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        time_left(retry, since.elapsed(), now, at_us)
    }

    /// Waits until another attempt is worthwhile, at most for `limit`. False when there is no time
    /// left, or nobody wants another attempt.
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

    /// Waits shortly before a login that follows one that succeeded. False when nobody wants another attempt.
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

    /// For tests that bring a connection into a state that no request can.
    #[cfg(test)]
    pub(crate) const fn slot(&mut self) -> &mut Option<L> {
        &mut self.link
    }
}

/// Waits until `left` of the time that has passed is nothing. False when nobody wants another attempt.
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
        thread::park_timeout(LOOK.min(left));
    }
}

/// What is left of `retry_timeout` at `now`, `failing` after the first failure, for a request that was received
/// at `at_us`.
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
