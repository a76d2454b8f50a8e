//! Worker health, from active checks and from the results of requests (passive checks).
//!
//! ```text
//!           `fall` failed checks in a row       `rise` passed checks in a row
//!     Up ─────────────────────────────▶ Down ─────────────────────────────────▶ Up
//!      │                                  ▲                                     ▲
//!      │ `errors` failures in a row, or   │ the ejection is over, and checks    │
//!      │ `fail_rate` over the window      │ have not passed `rise` times        │
//!      └─────────────────────────────▶ Ejected ─────────────────────────────────┘
//!                                           the ejection is over, and checks, if
//!                                           there are any, have passed; on probation
//! ```
//!
//! The checks are made by the caller and reported here. An ejected worker returns only when both conditions hold: the
//! ejection is over, and the last `rise` checks since the ejection have passed. On probation, one failed request ejects
//! it again. Each ejection that follows soon after the last one is twice as long. When a worker has served without
//! failure for as long as its next ejection would last, the previous ejections are no longer counted.

mod window;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use exchange::WorkerIndex;

pub use window::FailRate;
use window::Window;

/// When a worker becomes unhealthy, and when it is healthy again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthSettings {
    /// The number of passed checks in a row after which a worker that is down is up.
    pub rise: u32,
    /// The number of failed checks in a row after which a worker that is up is down.
    pub fall: u32,
    /// The number of failed requests in a row after which a worker is ejected; 0: failures in a row do not eject.
    pub errors: u32,
    /// A request that takes longer counts as failed; `None`: its duration does not matter.
    pub slow: Option<Duration>,
    /// The duration of the first ejection.
    pub eject: Duration,
    /// The maximum duration of an ejection.
    pub eject_max: Duration,
    /// Whether a new worker must pass its checks before it receives requests.
    pub checked_first: bool,
    /// Whether workers are checked actively. Without checks, an ejection ends when its time is over.
    pub checked: bool,
    /// The share of failed requests that ejects a worker; `None`: only failures in a row count.
    pub fail_rate: Option<FailRate>,
}

impl HealthSettings {
    /// Whether results of requests can eject a worker.
    const fn is_passive(&self) -> bool {
        self.errors > 0 || self.fail_rate.is_some()
    }

    /// Returns the duration of the ejection that follows this number of others.
    fn ejection(&self, others: u32) -> Duration {
        let doubled = self.eject.saturating_mul(1 << others.min(20));
        doubled.min(self.eject_max.max(self.eject))
    }
}

impl Default for HealthSettings {
    /// Only failed checks make a worker unhealthy, three in a row.
    fn default() -> Self {
        Self {
            rise: 2,
            fall: 3,
            errors: 0,
            slow: None,
            eject: Duration::from_secs(10),
            eject_max: Duration::from_secs(300),
            checked_first: false,
            checked: false,
            fail_rate: None,
        }
    }
}

/// The health state of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HealthState {
    /// The worker receives requests.
    Up,
    /// Its checks failed, or none has passed yet.
    Down,
    /// Its requests failed. The worker is tried again when the ejection is over.
    Ejected,
}

impl HealthState {
    /// The name in status and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Ejected => "ejected",
        }
    }
}

/// What last changed the health state of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HealthCause {
    /// The worker is new, or its state was taken over from before a restart or reload.
    Start,
    /// Active checks.
    Checks,
    /// Several requests failed in a row.
    Failures,
    /// The share of failed requests was reached.
    FailRate,
    /// A request failed while the worker was on probation.
    Probation,
    /// The ejection is over.
    Time,
}

impl HealthCause {
    /// The name in status and in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Checks => "checks",
            Self::Failures => "failures in a row",
            Self::FailRate => "fail rate",
            Self::Probation => "a failure on probation",
            Self::Time => "end of the ejection",
        }
    }
}

/// A change of the health state of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthChange {
    /// The worker.
    pub index: WorkerIndex,
    /// The new state.
    pub state: HealthState,
    /// The cause.
    pub cause: HealthCause,
    /// The duration of the ejection.
    pub ejected_for: Option<Duration>,
}

/// The health of one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Health {
    state: HealthState,
    /// Why the worker is in this state.
    cause: HealthCause,
    /// Checks in a row whose result contradicts the state.
    against: u32,
    /// Failed requests in a row.
    failed: u32,
    /// Ejections that followed soon after each other.
    ejections: u32,
    /// When the ejection ends. If the worker is up: until when the last ejection counts.
    until: Option<Instant>,
    window: Window,
}

/// The health of a worker as it is kept when the daemon is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthRecord {
    /// The name of the worker.
    pub name: String,
    /// The health state.
    pub state: HealthState,
    /// The remaining time of the ejection.
    pub left: Duration,
    /// Ejections that followed soon after each other.
    pub ejections: u32,
}

/// When ejections end, the first one first. An entry may be obsolete, because its place has got a new worker; such an
/// entry is examined once, when its time is over.
#[derive(Debug, Default)]
pub(crate) struct Ejected(BTreeSet<(Instant, u32)>);

impl Ejected {
    /// The end of the ejection at a place has changed; `None`: it is not ejected.
    pub(crate) fn handle_change(
        &mut self,
        place: u32,
        before: Option<Instant>,
        after: Option<Instant>,
    ) {
        if before != after {
            if let Some(before) = before {
                self.0.remove(&(before, place));
            }
            self.0.extend(after.map(|after| (after, place)));
        }
    }

    /// Returns a place whose ejection is over. Each place is returned once.
    pub(crate) fn due(&mut self, now: Instant) -> Option<u32> {
        self.0.first().filter(|(until, _)| *until <= now)?;
        self.0.pop_first().map(|(_, place)| place)
    }

    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.0.first().map(|(until, _)| *until)
    }
}

impl Health {
    pub(crate) const fn new(settings: &HealthSettings) -> Self {
        let state = if settings.checked_first { HealthState::Down } else { HealthState::Up };
        Self {
            state,
            cause: HealthCause::Start,
            against: 0,
            failed: 0,
            ejections: 0,
            until: None,
            window: Window::new(),
        }
    }

    pub(crate) fn restored(record: &HealthRecord, now: Instant) -> Self {
        Self {
            state: record.state,
            cause: HealthCause::Start,
            against: 0,
            failed: 0,
            ejections: record.ejections,
            until: (!record.left.is_zero()).then(|| now.checked_add(record.left)).flatten(),
            window: Window::new(),
        }
    }

    pub(crate) fn record(&self, name: &str, now: Instant) -> HealthRecord {
        let until = self.until.filter(|_| self.state == HealthState::Ejected);
        HealthRecord {
            name: name.to_owned(),
            state: self.state,
            left: until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now)),
            ejections: self.ejections,
        }
    }

    pub(crate) const fn state(&self) -> HealthState {
        self.state
    }

    pub(crate) const fn cause(&self) -> HealthCause {
        self.cause
    }

    pub(crate) const fn is_up(&self) -> bool {
        matches!(self.state, HealthState::Up)
    }

    /// Whether the worker has no recent failure and no recent ejection. Then a successful request changes only the
    /// counts of the window.
    pub(crate) const fn is_sound(&self) -> bool {
        self.is_up() && self.failed == 0 && self.until.is_none()
    }

    /// A request succeeded at a worker that [is sound](Self::is_sound).
    pub(crate) fn handle_sound_result(&mut self, settings: &HealthSettings, now: Instant) {
        if let Some(rate) = settings.fail_rate {
            self.window.handle(&rate, now, true);
        }
    }

    /// When the state changes without an event.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.until.filter(|_| self.state == HealthState::Ejected)
    }

    /// Applies new settings. If checks are switched off, a worker that is down becomes up, because nothing else could
    /// bring it back.
    pub(crate) fn handle_settings(&mut self, settings: &HealthSettings) {
        if !settings.checked && self.state == HealthState::Down {
            self.enter(HealthState::Up, HealthCause::Start);
        }
    }

    /// A check was made.
    pub(crate) fn handle_check(&mut self, settings: &HealthSettings, now: Instant, good: bool) {
        // While a worker is down or ejected, passed checks contradict its state.
        let against = good != self.is_up();
        self.against = if against { self.against.saturating_add(1) } else { 0 };
        match self.state {
            HealthState::Up if self.against >= settings.fall.max(1) => {
                self.enter(HealthState::Down, HealthCause::Checks);
            }
            HealthState::Down if self.against >= settings.rise.max(1) => {
                self.come_back(settings, now, HealthCause::Checks);
            }
            // An ejection ends when its time is over, regardless of the checks.
            HealthState::Up | HealthState::Down | HealthState::Ejected => {}
        }
    }

    /// A request finished. `may_eject`: another worker could serve instead.
    pub(crate) fn handle_result(
        &mut self,
        settings: &HealthSettings,
        now: Instant,
        good: bool,
        may_eject: bool,
    ) {
        if !settings.is_passive() || !self.is_up() {
            return;
        }
        let failing = settings.fail_rate.is_some_and(|rate| self.window.handle(&rate, now, good));
        if good {
            self.failed = 0;
            if self.until.is_some_and(|until| until <= now) {
                self.until = None;
                self.ejections = 0;
            }
            return;
        }
        self.failed = self.failed.saturating_add(1);
        let probation = self.until.is_some_and(|until| until > now);
        let in_a_row = settings.errors > 0 && self.failed >= settings.errors;
        if (in_a_row || failing || probation) && may_eject {
            let until = now.checked_add(settings.ejection(self.ejections));
            self.ejections = self.ejections.saturating_add(1);
            let cause = match (in_a_row, failing) {
                (true, _) => HealthCause::Failures,
                (_, true) => HealthCause::FailRate,
                _ => HealthCause::Probation,
            };
            self.enter(HealthState::Ejected, cause);
            self.until = until;
        }
    }

    /// Time has passed.
    pub(crate) fn handle_time(&mut self, settings: &HealthSettings, now: Instant) {
        if self.state == HealthState::Ejected && self.until.is_none_or(|until| until <= now) {
            if settings.checked && self.against < settings.rise.max(1) {
                // The checks that have passed so far still count.
                self.state = HealthState::Down;
                self.cause = HealthCause::Checks;
                self.until = None;
            } else {
                self.come_back(settings, now, HealthCause::Time);
            }
        }
    }

    /// The worker serves again. After an ejection it is on probation, for as long as the next ejection would last.
    fn come_back(&mut self, settings: &HealthSettings, now: Instant, cause: HealthCause) {
        self.enter(HealthState::Up, cause);
        if self.ejections > 0 {
            self.until = now.checked_add(settings.ejection(self.ejections));
        }
    }

    /// Enters a state. All counters of the previous state are reset, except the number of ejections.
    fn enter(&mut self, state: HealthState, cause: HealthCause) {
        let ejections = self.ejections;
        *self = Self { state, cause, ejections, ..Self::new(&HealthSettings::default()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: HealthSettings = HealthSettings {
        rise: 2,
        fall: 3,
        errors: 2,
        slow: None,
        eject: Duration::from_secs(10),
        eject_max: Duration::from_secs(35),
        checked_first: false,
        checked: false,
        fail_rate: None,
    };
    const CHECKED: HealthSettings = HealthSettings { checked: true, ..SETTINGS };

    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    fn start() -> Instant {
        Instant::now()
    }

    fn checks(health: &mut Health, results: &str) -> Vec<HealthState> {
        let now = start();
        let one = |good| {
            health.handle_check(&CHECKED, now, good == '+');
            health.state()
        };
        results.chars().map(one).collect()
    }

    #[test]
    fn only_checks_in_a_row_change_what_is_held() {
        use HealthState::{Down, Up};
        let mut health = Health::new(&SETTINGS);
        assert_eq!(checks(&mut health, "--+--"), [Up; 5]);
        assert_eq!(checks(&mut health, "-+-++-"), [Down, Down, Down, Down, Up, Up]);
        let mut new = Health::new(&HealthSettings { checked_first: true, ..SETTINGS });
        assert_eq!(checks(&mut new, "++"), [Down, Up]);
    }

    #[test]
    fn ejections_double_up_to_the_longest_and_are_forgiven() {
        let mut health = Health::new(&SETTINGS);
        let mut now = start();
        health.handle_result(&SETTINGS, now, false, true);
        health.handle_result(&SETTINGS, now, true, true);
        health.handle_result(&SETTINGS, now, false, true);
        assert!(health.is_up(), "not two in a row");
        health.handle_result(&SETTINGS, now, false, true);
        for out in [10, 20, 35, 35] {
            assert_eq!(health.next_time(), Some(now + Duration::from_secs(out)));
            checks(&mut health, "+++");
            assert_eq!(health.state(), HealthState::Ejected, "passed checks do not end it early");
            now += Duration::from_secs(out);
            health.handle_time(&SETTINGS, now);
            assert!(health.is_up());
            health.handle_result(&SETTINGS, now, false, true);
        }
        now += Duration::from_secs(35);
        health.handle_time(&SETTINGS, now);
        now += Duration::from_secs(36);
        health.handle_result(&SETTINGS, now, true, true);
        health.handle_result(&SETTINGS, now, false, true);
        assert!(health.is_up(), "forgiven: one failure is not enough again");
        health.handle_result(&SETTINGS, now, false, true);
        assert_eq!(health.next_time(), Some(now + Duration::from_secs(10)));
    }

    #[test]
    fn the_last_one_is_not_ejected() {
        let mut health = Health::new(&SETTINGS);
        for _ in 0..9 {
            health.handle_result(&SETTINGS, start(), false, false);
        }
        assert!(health.is_up());
    }

    #[test]
    fn what_is_held_outlives_its_daemon() {
        let now = start();
        let mut health = Health::new(&SETTINGS);
        (0..2).for_each(|_| health.handle_result(&SETTINGS, now, false, true));
        let record = health.record("a", now + Duration::from_secs(4));
        assert_eq!(record.left, Duration::from_secs(6));
        let later = now + Duration::from_secs(100);
        let mut again = Health::restored(&record, later);
        assert_eq!(again.next_time(), Some(later + Duration::from_secs(6)));
        again.handle_time(&SETTINGS, later + Duration::from_secs(6));
        assert!(again.is_up());
    }

    #[test]
    fn an_ejected_worker_returns_only_when_its_checks_pass_as_well() {
        let (mut health, now) = (Health::new(&CHECKED), start());
        let later = now + Duration::from_secs(10);
        (0..2).for_each(|_| health.handle_result(&CHECKED, now, false, true));
        assert_eq!(health.state(), HealthState::Ejected);
        assert_eq!(checks(&mut health, "-+"), [HealthState::Ejected; 2]);
        health.handle_time(&CHECKED, later);
        assert_eq!(health.state(), HealthState::Down, "one of two checks has passed");
        assert_eq!(health.next_time(), None);
        assert_eq!(checks(&mut health, "-+"), [HealthState::Down; 2]);
        assert_eq!(checks(&mut health, "+"), [HealthState::Up]);
        health.handle_result(&CHECKED, now, false, true);
        assert_eq!(health.state(), HealthState::Ejected, "it was on probation");
        assert_eq!(health.next_time(), Some(now + Duration::from_secs(20)));
        assert_eq!(checks(&mut health, "++"), [HealthState::Ejected; 2]);
        health.handle_time(&CHECKED, now + Duration::from_secs(20));
        assert!(health.is_up(), "both agree");
    }

    #[test]
    fn without_checks_a_worker_that_was_down_is_up() {
        let mut health = Health::new(&CHECKED);
        checks(&mut health, "---");
        health.handle_settings(&CHECKED);
        assert_eq!(health.state(), HealthState::Down);
        health.handle_settings(&SETTINGS);
        assert!(health.is_up());
    }

    #[test]
    fn a_share_of_failures_ejects_although_there_are_not_enough_in_a_row() {
        let rate = FailRate { percent: 30, window: Duration::from_secs(10), requests_min: 20 };
        let settings = HealthSettings { errors: 0, fail_rate: Some(rate), ..SETTINGS };
        let (mut health, now) = (Health::new(&settings), start());
        // Three of ten requests fail, never two in a row.
        for request in 0..19 {
            health.handle_result(&settings, now, !matches!(request % 10, 0 | 3 | 6), true);
            assert!(health.is_up(), "only {request} requests so far");
        }
        health.handle_result(&settings, now, false, true);
        assert_eq!(health.state(), HealthState::Ejected, "7 of 20");
        health.handle_time(&settings, now + Duration::from_secs(10));
        assert!(health.is_up());
        let later = now + Duration::from_secs(60);
        health.handle_result(&settings, later, true, true);
        assert!(health.is_sound(), "what was counted before the ejection is forgotten");
    }
}
