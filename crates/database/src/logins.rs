//! Decides when the handlers of a pool may log in to their database.
//!
//! While a database works, no login is delayed. From the first failure on, until rows are stored (or a query has run)
//! on a connection that was opened since, the handlers of a pool share one back-off: one login at a time, with a pause
//! after each. The pause doubles from [`PAUSE_FIRST`] and is shortened at random by up to half. A login alone does not
//! end the back-off: otherwise there would be no pause between logins to a server that accepts logins and then rejects
//! every row.
//!
//! ```text
//!   working ── failed ─► failing ── login, then success ─► working
//!                        │  ▲
//!                        └──┘ failed: the pause doubles
//! ```

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::DatabaseError;
use crate::fault::{Blame, Fault};

/// The pause after the first failure.
pub(crate) const PAUSE_FIRST: Duration = Duration::from_millis(20);

/// The maximum pause while a server cannot be reached. A longer pause would delay requests after the database is back.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The maximum pause after an error that does not go away by itself, such as a wrong password.
const PAUSE_DENIED_MAX: Duration = Duration::from_secs(10);

/// The back-off of a pool.
#[derive(Debug)]
pub(crate) struct Logins {
    /// Whether there is a pause between logins. A file can be opened at any time.
    paced: bool,
    state: Mutex<Option<Failing>>,
}

/// The state since the first failure.
#[derive(Debug)]
struct Failing {
    since: Instant,
    /// The number of logins since then.
    logins: u64,
    /// The number of failures that lengthened the pause.
    failures: u32,
    /// The earliest time of the next login.
    next: Instant,
    /// A login is in progress.
    opening: bool,
    /// The reason of the failure, as clients receive it. With [`kept`](Fault::kept) if a table has no transactions.
    fault: Fault,
}

impl Failing {
    fn new(now: Instant, fault: Fault) -> Self {
        let mut failing =
            Self { since: now, logins: 0, failures: 0, next: now, opening: false, fault };
        failing.delay(now);
        failing
    }

    fn delay(&mut self, now: Instant) {
        let max = if self.fault.again { PAUSE_MAX } else { PAUSE_DENIED_MAX };
        self.next = now + shortened(pause(self.failures, max), random());
        self.failures = self.failures.saturating_add(1);
    }
}

impl Logins {
    pub(crate) fn new(paced: bool) -> Self {
        Self { paced, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Failing>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `login` if one is allowed now. `database` is the name of the database in the log.
    ///
    /// # Errors
    /// Returns the error of `login`, or the last error if no login is allowed yet.
    pub(crate) fn attempt<T>(
        &self,
        database: &str,
        login: impl FnOnce() -> Result<T, DatabaseError>,
    ) -> Result<T, Fault> {
        if let Some(failing) = self.lock().as_mut() {
            if self.paced && (failing.opening || Instant::now() < failing.next) {
                return Err(failing.fault.clone());
            }
            failing.opening = true;
            failing.logins += 1;
        }
        let _opening = Opening(self);
        login().map_err(|error| {
            let (again, kept) = (error.is_for_now(), error.is_of_engine());
            let fault = Fault { again, kept, ..Fault::new(Blame::Lost, error.for_clients()) };
            let (fault, is_new) = self.note(fault, true);
            if is_new {
                tracing::error!(database, "{error}");
            }
            fault
        })
    }

    /// Records that a connection failed, so that the next login must wait.
    pub(crate) fn record_failure(&self, database: &str, fault: &Fault) {
        let text = fault.for_others().for_clients();
        if self.note(Fault::new(Blame::Lost, &text).again(), false).1 {
            let error = fault.for_operators();
            tracing::warn!(database, error, "the connection to the database failed");
        }
    }

    /// Returns the fault for handlers that may not log in at the moment, and whether it must be logged: the first
    /// failure is logged, and a login after which a retry has become useful or useless.
    fn note(&self, fault: Fault, is_login: bool) -> (Fault, bool) {
        let now = Instant::now();
        let mut state = self.lock();
        let is_first = state.is_none();
        let failing = state.get_or_insert_with(|| Failing::new(now, fault.clone()));
        let is_new = is_first || is_login && failing.fault.again != fault.again;
        failing.logins = failing.logins.max(is_login.into());
        // The result of a login remains until the next login, whatever older connections of other handlers report.
        if is_login || failing.logins == 0 {
            failing.fault = fault;
        }
        // Several handlers that fail together count once.
        if !is_first && now >= failing.next {
            failing.delay(now);
        }
        (failing.fault.clone(), is_new)
    }

    /// Returns the time until the next login is allowed.
    pub(crate) fn due_in(&self) -> Duration {
        match self.lock().as_ref().filter(|_| self.paced) {
            // The waiting handlers check again and notice its end.
            Some(failing) if failing.opening => PAUSE_MAX,
            Some(failing) => failing.next.saturating_duration_since(Instant::now()),
            None => Duration::ZERO,
        }
    }

    /// Records that a connection that was opened since the first failure works. The back-off is reset.
    pub(crate) fn recovered(&self, database: &str) {
        let Some(failing) = self.lock().take() else { return };
        let Failing { since, logins, .. } = failing;
        let after = since.elapsed();
        tracing::warn!(database, logins, ?after, "the connection to the database works again");
    }

    /// Records that a connection works on which the server answered with an error: the error concerned a row. The
    /// back-off is reset.
    pub(crate) fn cleared(&self, database: &str) {
        if self.lock().take().is_some() {
            tracing::info!(database, "the database stores rows again, on the same connection");
        }
    }
}

/// A login in progress.
struct Opening<'a>(&'a Logins);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(failing) = self.0.lock().as_mut() {
            failing.opening = false;
        }
    }
}

/// Returns the pause after this number of earlier failures, before it is shortened.
pub(crate) fn pause(failures: u32, max: Duration) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << failures.min(16)).min(max)
}

/// Returns a time between half of `pause` and all of it.
pub(crate) fn shortened(pause: Duration, random: u64) -> Duration {
    let half = pause / 2;
    half + half.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Returns a random number. The keys of a new hasher come from the random source of the system.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable() -> DatabaseError {
        DatabaseError::Unreachable("db".to_owned(), "no answer".into())
    }

    fn denied() -> DatabaseError {
        DatabaseError::Denied("db".to_owned(), "wrong password".into())
    }

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
    fn pauses_double_up_to_their_limit() {
        let all: Vec<u128> = (0..8).map(|it| pause(it, PAUSE_MAX).as_millis()).collect();
        assert_eq!(all, [20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(pause(u32::MAX, PAUSE_DENIED_MAX), PAUSE_DENIED_MAX);
    }

    #[test]
    fn no_login_is_made_before_it_is_due() {
        let logins = Logins::new(true);
        assert_eq!(logins.due_in(), Duration::ZERO);
        let fault = logins.attempt("db", || Err::<(), _>(denied())).unwrap_err();
        assert!(!fault.again, "time does not correct a password");
        let since = logins.lock().as_ref().unwrap().since;
        let early = logins.attempt("db", || -> Result<(), _> { unreachable!("not yet") });
        // On a machine that was suspended in between, the login may have been due.
        assert!(early.is_err() || since.elapsed() >= PAUSE_FIRST / 2);
        assert_eq!(early.unwrap_err(), fault, "the last error is repeated");
    }

    /// Makes the next login due.
    fn elapse(logins: &Logins) {
        logins.lock().as_mut().unwrap().next = Instant::now();
    }

    #[test]
    fn only_one_handler_logs_in_at_a_time_and_a_login_alone_resets_nothing() {
        let logins = Logins::new(true);
        logins.record_failure("db", &Fault::new(Blame::Lost, "lost"));
        elapse(&logins);
        let inner = logins.attempt("db", || {
            let other = logins.attempt("db", || Ok(()));
            assert!(other.unwrap_err().again, "another login is under way");
            Ok(())
        });
        assert_eq!(inner, Ok(()));
        assert_eq!(logins.lock().as_ref().map(|it| (it.logins, it.opening)), Some((1, false)));
        logins.recovered("db");
        assert!(logins.lock().is_none());
    }

    #[test]
    fn failures_before_the_pause_is_over_count_once() {
        let logins = Logins::new(true);
        for _ in 0..5 {
            logins.record_failure("db", &Fault::new(Blame::Lost, "lost"));
        }
        let failures = logins.lock().as_ref().map(|it| it.failures).unwrap();
        assert!(failures <= 2, "{failures}");
        for expected in failures + 1..failures + 4 {
            elapse(&logins);
            assert!(logins.attempt("db", || Err::<(), _>(unreachable())).is_err());
            assert_eq!(logins.lock().as_ref().map(|it| it.failures), Some(expected));
        }
    }

    #[test]
    fn a_lost_connection_of_another_handler_does_not_change_what_a_login_said() {
        let logins = Logins::new(true);
        logins.record_failure("db", &Fault::new(Blame::Lost, "lost"));
        elapse(&logins);
        assert!(!logins.attempt("db", || Err::<(), _>(denied())).unwrap_err().again);
        assert!(
            !logins.note(Fault::new(Blame::Lost, "lost too").again(), false).1,
            "it is not logged"
        );
        let fault = logins.lock().as_ref().unwrap().fault.clone();
        assert_eq!((&*fault.text, fault.again), (denied().for_clients(), false));
        elapse(&logins);
        assert!(logins.attempt("db", || Err::<(), _>(unreachable())).unwrap_err().again);
    }

    #[test]
    fn what_the_database_said_of_a_row_is_not_repeated_to_other_rows() {
        let logins = Logins::new(true);
        logins.record_failure("db", &Fault::new(Blame::Lost, "card 7").coded("25006").citing());
        let other = logins.attempt("db", || -> Result<(), _> { unreachable!("not yet") });
        let text = other.unwrap_err().for_clients();
        assert_eq!(text, "the batch failed: the database is read-only (25006)");
    }

    #[test]
    fn a_file_is_opened_at_any_time() {
        let logins = Logins::new(false);
        for _ in 0..5 {
            let opened = logins.attempt("db", || Err::<(), _>(denied()));
            assert_eq!(opened.unwrap_err().text, denied().for_clients());
        }
        assert_eq!(logins.due_in(), Duration::ZERO);
        assert_eq!(logins.attempt("db", || Ok(())), Ok(()));
    }

    #[test]
    fn a_login_that_panics_blocks_no_other() {
        let logins = Logins::new(true);
        logins.record_failure("db", &Fault::new(Blame::Lost, "lost"));
        elapse(&logins);
        let login = || logins.attempt("db", || -> Result<(), DatabaseError> { panic!("broken") });
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(login));
        assert_eq!(logins.attempt("db", || Ok(())), Ok(()));
    }
}
