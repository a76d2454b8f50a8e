//! The back-off after workers fail to start or end before their minimum uptime.
//!
//! *Rounds.* If several workers that were started together fail, this is one failure of one round: the delay doubles
//! once. The next start belongs to the next round.
//!
//! *Crashes.* A worker that received a request has started successfully, even if it ends soon. When it crashes, its
//! place is paused for the first delay; other places are not delayed. After more than `open_after` crashes in a row,
//! with no request answered between them, the pause doubles with each crash, up to [`PAUSE_MAX`] first delays. It is
//! the first delay again when a request is answered, and while a request waits whose client had no part in these
//! crashes: one client must not slow down the others.
//!
//! *Trouble.* After a failure, at most one worker is started per delay. While the circuit breaker is open, no worker is
//! started before the last one has become ready or has failed.
//!
//! *Reset.* All failures are cleared when a worker of the current round, which was started after the last failure,
//! answers a request or receives one, or has been ready for twice the delay and for the minimum uptime. They are also
//! cleared when no start was tried for that time, because the old failures are then no longer informative.

use std::time::{Duration, Instant};

use exchange::WorkerId;

use crate::random::Random;
use crate::settings::BackoffSettings;

/// The maximum pause of a place, in first delays.
const PAUSE_MAX: u32 = 20;

/// The maximum number of clients that are remembered in a row of crashes. Above it, every client may be one of them.
const CLIENTS_MAX: usize = 64;

/// Crashes without an answered request between them.
#[derive(Clone, Debug)]
struct Crashes {
    in_a_row: u32,
    last: Option<Instant>,
    /// The clients whose requests the crashed workers had.
    clients: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Trouble {
    /// Failures in a row.
    failures: u32,
    /// The delay between two starts, before jitter.
    delay: Duration,
    /// The earliest time of the next start.
    start_at: Option<Instant>,
    /// The first worker of this round that became ready, and when.
    witness: Option<(WorkerId, Instant)>,
    /// The time of the last event about a worker.
    last_event_at: Instant,
}

/// Decides when the next worker may be started.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    settings: BackoffSettings,
    random: Random,
    round: u32,
    trouble: Option<Trouble>,
    /// When the places of crashed workers may be used again. There are no more entries than places.
    pauses: Vec<Instant>,
    crashes: Crashes,
}

impl Backoff {
    pub(crate) const fn new(settings: BackoffSettings, seed: u64) -> Self {
        let random = Random::new(seed);
        let crashes = Crashes { in_a_row: 0, last: None, clients: Vec::new() };
        Self { settings, random, round: 0, trouble: None, pauses: Vec::new(), crashes }
    }

    pub(crate) const fn handle_settings(&mut self, settings: BackoffSettings) {
        self.settings = settings;
    }

    pub(crate) const fn in_trouble(&self) -> bool {
        self.trouble.is_some()
    }

    /// Whether a worker that became ready at `ready_at` has not reached the minimum uptime.
    pub(crate) fn is_quick(&self, ready_at: Option<Instant>, now: Instant) -> bool {
        ready_at.is_none_or(|at| now.saturating_duration_since(at) < self.settings.min_uptime)
    }

    /// Whether the circuit breaker is open: so many starts failed in a row that requests are rejected while no worker
    /// is ready.
    pub(crate) fn is_breaker_open(&self) -> bool {
        self.trouble.is_some_and(|trouble| trouble.failures >= self.settings.open_after)
    }

    /// The earliest time of the next start.
    pub(crate) fn start_at(&self) -> Option<Instant> {
        self.trouble?.start_at
    }

    /// The number of places that are paused.
    pub(crate) fn paused(&self, now: Instant) -> u32 {
        let paused = self.pauses.iter().filter(|until| **until > now).count();
        u32::try_from(paused).unwrap_or(u32::MAX)
    }

    /// When the next of these pauses ends.
    pub(crate) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.pauses.iter().filter(|until| **until > now).min().copied()
    }

    /// The number of workers that may be started now.
    pub(crate) fn room(&self, now: Instant, starting: u32, open: bool) -> u32 {
        let Some(trouble) = self.trouble else { return u32::MAX };
        let too_early = trouble.start_at.is_some_and(|at| at > now);
        let probing = open && starting > 0;
        if too_early || probing { 0 } else { 1 }
    }

    /// A worker is started now. Returns the round that it belongs to.
    pub(crate) fn handle_start(&mut self, now: Instant) -> u32 {
        if let Some(trouble) = &mut self.trouble {
            trouble.start_at = now.checked_add(self.random.jitter(trouble.delay));
        }
        self.round
    }

    /// A worker that was started in `round` is ready.
    pub(crate) fn handle_ready(&mut self, now: Instant, worker: WorkerId, round: u32) {
        if let Some(trouble) = &mut self.trouble {
            trouble.last_event_at = now;
            if trouble.witness.is_none() && round == self.round {
                trouble.witness = Some((worker, now));
            }
        }
    }

    /// Whether an answer changes anything.
    pub(crate) const fn needs_answers(&self) -> bool {
        self.trouble.is_some() || self.crashes.in_a_row > 0
    }

    /// A worker that was started in `round` answered a request. This shows that starts no longer fail.
    pub(crate) fn handle_answer(&mut self, now: Instant, round: u32) {
        self.handle_given(round);
        self.crashes.in_a_row = 0;
        self.crashes.clients.clear();
        self.shorten_pauses(now);
    }

    /// A worker that was started in `round` received a request. This shows that starts no longer fail.
    pub(crate) fn handle_given(&mut self, round: u32) {
        if round == self.round {
            self.trouble = None;
        }
    }

    /// A worker that had answered or received a request ended before its minimum uptime. `others_wait`: requests wait
    /// whose clients had no part in crashes.
    pub(crate) fn handle_crash(&mut self, now: Instant, worker: WorkerId, others_wait: bool) {
        self.handle_gone(now, worker);
        self.pauses.retain(|until| *until > now);
        if self.trouble.is_none() {
            let pause = if others_wait { self.settings.first } else { self.pause() };
            self.pauses.extend(now.checked_add(self.random.jitter(pause)));
        }
    }

    /// Records the client whose request a crashed worker had. [`handle_crash`](Self::handle_crash) follows.
    pub(crate) fn note_crash_client(&mut self, now: Instant, client: Option<u64>) {
        let Crashes { in_a_row, last, clients } = &mut self.crashes;
        let is_old = |last: Instant| now.saturating_duration_since(last) > self.settings.max;
        if last.replace(now).is_none_or(is_old) {
            *in_a_row = 0;
            clients.clear();
        }
        *in_a_row = in_a_row.saturating_add(1);
        if let Some(client) = client.filter(|client| !clients.contains(client))
            && clients.len() < CLIENTS_MAX
        {
            clients.push(client);
        }
    }

    /// Whether places are paused for longer than the first delay.
    pub(crate) const fn is_slow(&self) -> bool {
        self.crashes.in_a_row > self.settings.open_after
    }

    /// Whether a request of this client may have had a part in crashes since the last answer.
    pub(crate) fn has_crashed(&self, client: Option<u64>) -> bool {
        let clients = &self.crashes.clients;
        clients.len() >= CLIENTS_MAX || client.is_none_or(|client| clients.contains(&client))
    }

    /// A request of this client arrives.
    #[inline]
    pub(crate) fn handle_request(&mut self, now: Instant, client: Option<u64>) {
        if self.is_slow() && !self.has_crashed(client) {
            self.shorten_pauses(now);
        }
    }

    fn pause(&self) -> Duration {
        let BackoffSettings { first, max, open_after, .. } = self.settings;
        let doublings = self.crashes.in_a_row.saturating_sub(open_after).min(16);
        first.saturating_mul((1 << doublings).min(PAUSE_MAX)).min(max)
    }

    fn shorten_pauses(&mut self, now: Instant) {
        if let Some(latest) = now.checked_add(self.settings.first) {
            self.pauses.iter_mut().for_each(|until| *until = latest.min(*until));
        }
    }

    /// A worker that did not fail is no longer ready.
    pub(crate) fn handle_gone(&mut self, now: Instant, worker: WorkerId) {
        if let Some(trouble) = &mut self.trouble {
            trouble.last_event_at = now;
            if trouble.witness.is_some_and(|(witness, _)| witness == worker) {
                trouble.witness = None;
            }
        }
    }

    /// A worker that was started in `round` failed.
    pub(crate) fn handle_failure(&mut self, now: Instant, worker: WorkerId, round: u32) {
        self.handle_gone(now, worker);
        let BackoffSettings { first, max, .. } = self.settings;
        let before = self.trouble;
        let failures = before.map_or(0, |trouble| trouble.failures).saturating_add(1);
        let (delay, start_at, witness) = match before {
            Some(trouble) if round != self.round => {
                (trouble.delay, trouble.start_at, trouble.witness)
            }
            _ => {
                self.round = self.round.wrapping_add(1);
                let delay = before.map_or(first, |trouble| trouble.delay.saturating_mul(2));
                let delay = delay.clamp(first, max);
                (delay, now.checked_add(self.random.jitter(delay)), None)
            }
        };
        self.trouble = Some(Trouble { failures, delay, start_at, witness, last_event_at: now });
    }

    /// Clears the failures if enough time has passed.
    pub(crate) fn handle_time(&mut self, now: Instant, starting: u32) {
        if self.reset_at(starting).is_some_and(|at| at <= now) {
            self.trouble = None;
        }
    }

    /// When the state next changes without an event, after `now`.
    pub(crate) fn next_time(&self, now: Instant, starting: u32) -> Option<Instant> {
        let start_at = self.start_at().filter(|at| *at > now);
        let times = [start_at, self.reset_at(starting), self.paused_until(now)];
        times.into_iter().flatten().min()
    }

    fn reset_at(&self, starting: u32) -> Option<Instant> {
        let trouble = self.trouble?;
        let enough = trouble.delay.saturating_mul(2).max(self.settings.min_uptime);
        match trouble.witness {
            Some((_, since)) => since.checked_add(enough),
            None if starting == 0 => trouble.last_event_at.checked_add(enough),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(100);
    const SETTINGS: BackoffSettings = BackoffSettings {
        first: FIRST,
        max: Duration::from_secs(30),
        min_uptime: Duration::from_secs(1),
        open_after: 5,
    };

    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    fn start() -> Instant {
        Instant::now()
    }

    fn worker(number: u32) -> WorkerId {
        WorkerId::new(number, 0)
    }

    /// The delays for workers that each fail as soon as they may be started.
    fn waits(seed: u64, count: u32) -> Vec<Duration> {
        let mut backoff = Backoff::new(SETTINGS, seed);
        let mut now = start();
        let mut waits = Vec::new();
        for number in 0..count {
            let round = backoff.handle_start(now);
            backoff.handle_failure(now, worker(number), round);
            assert_eq!(backoff.room(now, 0, false), 0);
            let at = backoff.start_at().unwrap();
            assert_eq!(backoff.next_time(now, 0), Some(at));
            waits.push(at - now);
            now = at;
            assert_eq!(backoff.room(now, 0, false), 1);
        }
        waits
    }

    #[test]
    fn delays_double_with_jitter_up_to_the_longest() {
        let waits = waits(7, 12);
        let mut delay = FIRST;
        for wait in &waits {
            assert!(*wait <= delay && *wait > delay * 3 / 4 - Duration::from_nanos(1), "{waits:?}");
            delay = (delay * 2).min(SETTINGS.max);
        }
        assert_eq!(waits, self::waits(7, 12), "the same seed, the same waits");
        assert_ne!(waits, self::waits(8, 12), "another seed, other waits");
    }

    #[test]
    fn workers_that_fail_together_double_the_delay_once() {
        let now = start();
        let mut backoff = Backoff::new(SETTINGS, 1);
        let rounds: Vec<_> = (0..4).map(|_| backoff.handle_start(now)).collect();
        for (number, round) in (0..).zip(rounds) {
            assert!(!backoff.is_breaker_open());
            backoff.handle_failure(now, worker(number), round);
        }
        assert!(backoff.start_at().unwrap() <= now + FIRST);
        backoff.handle_failure(now, worker(4), 0);
        assert!(backoff.is_breaker_open(), "each of them counts");
    }

    #[test]
    fn forgiven_when_a_worker_of_the_current_round_has_lived_long_enough() {
        let now = start();
        let mut backoff = Backoff::new(SETTINGS, 1);
        let old = backoff.handle_start(now);
        let round = backoff.handle_start(now);
        backoff.handle_failure(now, worker(1), round);
        backoff.handle_ready(now, worker(0), old);
        let round = backoff.handle_start(now + FIRST);
        backoff.handle_ready(now + FIRST, worker(2), round);
        let enough = now + FIRST + SETTINGS.min_uptime;
        backoff.handle_time(enough - Duration::from_nanos(1), 0);
        assert!(backoff.in_trouble());
        assert_eq!(backoff.next_time(now + FIRST * 3, 0), Some(enough));
        backoff.handle_time(enough, 0);
        assert!(!backoff.in_trouble());
        assert_eq!(backoff.room(enough, 9, true), u32::MAX);
    }

    #[test]
    fn not_forgiven_while_a_start_is_under_way_but_when_nothing_was_tried() {
        let now = start();
        let hour = now + Duration::from_secs(3600);
        let mut backoff = Backoff::new(SETTINGS, 1);
        let round = backoff.handle_start(now);
        backoff.handle_failure(now, worker(0), round);
        backoff.handle_time(hour, 1);
        assert!(backoff.in_trouble());
        assert_eq!(backoff.next_time(hour, 1), None);
        backoff.handle_time(hour, 0);
        assert!(!backoff.in_trouble());
    }

    #[test]
    fn one_that_ended_before_it_had_lived_long_enough_forgives_nothing() {
        let now = start();
        let mut backoff = Backoff::new(SETTINGS, 1);
        let round = backoff.handle_start(now);
        backoff.handle_failure(now, worker(0), round);
        let round = backoff.handle_start(now + FIRST);
        backoff.handle_ready(now + FIRST, worker(1), round);
        let gone = now + Duration::from_millis(900);
        backoff.handle_gone(gone, worker(1));
        assert_eq!(backoff.next_time(gone, 1), None, "another one is starting");
        backoff.handle_time(now + SETTINGS.min_uptime * 2, 1);
        assert!(backoff.in_trouble());
        // No other worker was started: the time counts from the end of this one.
        assert_eq!(backoff.next_time(gone, 0), Some(gone + SETTINGS.min_uptime));
        let ready = now + Duration::from_secs(9);
        backoff.handle_ready(ready, worker(2), round);
        assert_eq!(backoff.next_time(ready, 1), Some(ready + SETTINGS.min_uptime));
    }

    #[test]
    fn an_old_good_worker_forgives_nothing_that_new_ones_do() {
        let mut now = start();
        let mut backoff = Backoff::new(SETTINGS, 1);
        let old = backoff.handle_start(now);
        backoff.handle_ready(now, worker(0), old);
        let mut delays = Vec::new();
        for number in 1..=6 {
            let round = backoff.handle_start(now);
            backoff.handle_ready(now, worker(number), round);
            now += Duration::from_millis(10);
            backoff.handle_time(now, 0);
            backoff.handle_failure(now, worker(number), round);
            delays.push(backoff.trouble.unwrap().delay);
            now = backoff.start_at().unwrap();
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32].map(|times| FIRST * times));
    }

    #[test]
    fn a_place_whose_worker_crashed_after_an_answer_is_paused_for_the_first_delay_alone() {
        let mut now = start();
        let mut backoff = Backoff::new(SETTINGS, 1);
        for number in 0..20 {
            let round = backoff.handle_start(now);
            backoff.handle_ready(now, worker(number), round);
            backoff.handle_answer(now, round);
            backoff.note_crash_client(now, Some(7));
            backoff.handle_crash(now, worker(number), false);
            assert_eq!((backoff.in_trouble(), backoff.paused(now)), (false, 1));
            assert_eq!(backoff.room(now, 0, false), u32::MAX, "others may be started");
            let at = backoff.paused_until(now).unwrap();
            assert!(at > now && at <= now + FIRST, "crash {number}");
            assert_eq!((backoff.next_time(now, 0), backoff.paused(at)), (Some(at), 0));
            now = at;
        }
    }

    #[test]
    fn an_answer_ends_the_trouble_of_starts_that_failed() {
        let now = start();
        let mut backoff = Backoff::new(SETTINGS, 1);
        let old = backoff.handle_start(now);
        for number in 0..5 {
            let round = backoff.handle_start(now);
            backoff.handle_failure(now, worker(number), round);
        }
        backoff.handle_answer(now, old);
        assert!(backoff.is_breaker_open(), "one that was started before says nothing");
        let round = backoff.handle_start(now);
        backoff.handle_answer(now, round);
        assert!(!backoff.in_trouble());
    }

    #[test]
    fn while_the_circuit_is_open_one_probe_at_a_time() {
        let now = start();
        let mut backoff = Backoff::new(SETTINGS, 1);
        let round = backoff.handle_start(now);
        backoff.handle_failure(now, worker(0), round);
        let later = now + FIRST;
        assert_eq!(backoff.room(later, 1, true), 0);
        assert_eq!(backoff.room(later, 0, true), 1);
        assert_eq!(backoff.room(later, 1, false), 1);
    }
}
