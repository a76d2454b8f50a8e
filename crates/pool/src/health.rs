//! Whether a worker is given anything: what checks and requests say of it.
//!
//! ```text
//!           `fall` bad checks            `rise` good checks
//!     Up ───────────────────────▶ Down ─────────────────────▶ Up
//!      │                                                       ▲
//!      │ `errors` failures in a row        its time is over    │
//!      └─────────────────────────▶ Ejected ───────────────────-┘  on probation: one failure ejects
//! ```
//!
//! Checks are made by others and reported in. Each ejection of a worker that comes soon after the
//! last is twice as long; one that has served well for as long as it was out starts anew.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What makes a worker unfit and fit again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthSettings {
    /// Good checks in a row until a worker that was down is up.
    pub rise: u32,
    /// Bad checks in a row until a worker that was up is down.
    pub fall: u32,
    /// Failed requests in a row until a worker is ejected; 0: requests do not count.
    pub errors: u32,
    /// A request that takes longer counts as failed; none: time does not count.
    pub slow: Option<Duration>,
    /// How long the first ejection lasts, and the longest.
    pub eject: Duration,
    /// The longest ejection.
    pub eject_max: Duration,
    /// Whether a new worker must pass its checks before it is given anything.
    pub checked_first: bool,
}

impl Default for HealthSettings {
    /// Nothing makes a worker unfit but bad checks, three in a row.
    fn default() -> Self {
        Self {
            rise: 2,
            fall: 3,
            errors: 0,
            slow: None,
            eject: Duration::from_secs(10),
            eject_max: Duration::from_secs(300),
            checked_first: false,
        }
    }
}

/// What is held of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// It is given requests.
    Up,
    /// Its checks failed, or none has passed yet.
    Down,
    /// Its requests failed; it is tried again when its time is over.
    Ejected,
}

impl HealthState {
    /// The word in status and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Ejected => "ejected",
        }
    }
}

/// What is known of one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Health {
    state: HealthState,
    /// Checks in a row that speak against the state.
    against: u32,
    /// Failed requests in a row.
    failed: u32,
    /// Ejections that came soon after each other.
    ejections: u32,
    /// When an ejection ends; when up: until when the last one counts.
    until: Option<Instant>,
}

/// What is kept of a worker's health when its daemon is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthRecord {
    /// The worker's name.
    pub name: String,
    /// What was held of it.
    pub state: HealthState,
    /// How much longer it stays ejected.
    pub left: Duration,
    /// Ejections that came soon after each other.
    pub ejections: u32,
}

/// When ejections end, the first one first. One that came to nothing meanwhile, because its place
/// began anew, is looked at once when its time is over.
#[derive(Debug, Default)]
pub(crate) struct Ejected(BTreeSet<(Instant, u32)>);

impl Ejected {
    /// The worker at a place is ejected until another time than before; none: it is not.
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

    /// A place whose time is over; each is given once.
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
        Self { state, against: 0, failed: 0, ejections: 0, until: None }
    }

    pub(crate) fn restored(record: &HealthRecord, now: Instant) -> Self {
        Self {
            state: record.state,
            against: 0,
            failed: 0,
            ejections: record.ejections,
            until: (!record.left.is_zero()).then(|| now.checked_add(record.left)).flatten(),
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

    pub(crate) const fn is_up(&self) -> bool {
        matches!(self.state, HealthState::Up)
    }

    /// Whether nothing is held against it, so that a request which ends well changes nothing.
    pub(crate) const fn is_sound(&self) -> bool {
        self.is_up() && self.failed == 0 && self.until.is_none()
    }

    /// When it changes by itself.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.until.filter(|_| self.state == HealthState::Ejected)
    }

    /// A check was made.
    pub(crate) fn handle_check(&mut self, settings: &HealthSettings, good: bool) {
        let against = match self.state {
            HealthState::Up => !good,
            HealthState::Down => good,
            // Its requests have failed whatever its checks say.
            HealthState::Ejected => return,
        };
        self.against = if against { self.against + 1 } else { 0 };
        let enough = if self.is_up() { settings.fall } else { settings.rise };
        if self.against >= enough.max(1) {
            self.against = 0;
            self.failed = 0;
            self.state = if self.is_up() { HealthState::Down } else { HealthState::Up };
        }
    }

    /// A request ended. `may_eject`: another worker could take its place.
    pub(crate) fn handle_result(
        &mut self,
        settings: &HealthSettings,
        now: Instant,
        good: bool,
        may_eject: bool,
    ) {
        if settings.errors == 0 || !self.is_up() {
            return;
        }
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
        if (self.failed >= settings.errors || probation) && may_eject {
            let doubled = settings.eject.saturating_mul(1 << self.ejections.min(20));
            self.ejections = self.ejections.saturating_add(1);
            self.failed = 0;
            self.against = 0;
            self.state = HealthState::Ejected;
            self.until = now.checked_add(doubled.min(settings.eject_max.max(settings.eject)));
        }
    }

    /// Time has passed.
    pub(crate) fn handle_time(&mut self, settings: &HealthSettings, now: Instant) {
        if self.state == HealthState::Ejected && self.until.is_none_or(|until| until <= now) {
            self.state = HealthState::Up;
            // On probation for as long as it would be out the next time.
            let out = settings.eject.saturating_mul(1 << self.ejections.min(20));
            self.until = now.checked_add(out.min(settings.eject_max.max(settings.eject)));
        }
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
    };

    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    fn start() -> Instant {
        Instant::now()
    }

    fn checks(health: &mut Health, results: &str) -> Vec<HealthState> {
        let one = |good| {
            health.handle_check(&SETTINGS, good == '+');
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
            assert_eq!(health.state(), HealthState::Ejected, "checks do not end it");
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
}
