//! Replacement of workers that have reached a limit of requests, age or memory.
//!
//! For each worker the limits are drawn at random, at or below the configured ones, so that workers that were started
//! together are not replaced together. The old worker serves until the new one is ready:
//!
//! ```text
//!   ready ── a limit is reached, or all are replaced ──▶ due ── another worker has become ready ──▶ leaves
//! ```
//!
//! At most a share of the workers is being replaced at a time. This includes the replacements that are starting and the
//! old workers that are leaving and not gone. If a replacement fails to start, the old worker continues to serve; the
//! back-off determines when to try again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use exchange::WorkerId;

use crate::random::Random;
use crate::settings::RecycleSettings;

/// The counters and limits of the worker at one place.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    served: u64,
    /// The limit that was drawn when the worker became ready.
    requests_max: Option<u64>,
    age_at: Option<Instant>,
    memory_max: Option<u64>,
    /// The worker is leaving because it was due.
    leaving: bool,
}

/// The workers that are due for replacement.
#[derive(Debug)]
pub(crate) struct Recycle {
    settings: RecycleSettings,
    random: Random,
    tallies: Vec<Tally>,
    /// Ready workers that are due, the first one first.
    due: VecDeque<u32>,
    /// Workers that were started as replacements and are not ready.
    replacements: Vec<WorkerId>,
    /// Workers that are due as soon as they are ready.
    stale: Vec<WorkerId>,
    leaving: u32,
    /// The earliest age limit of the workers that are not due.
    next_age: Option<Instant>,
}

impl Recycle {
    pub(crate) const fn new(settings: RecycleSettings, seed: u64) -> Self {
        Self {
            settings,
            random: Random::new(!seed),
            tallies: Vec::new(),
            due: VecDeque::new(),
            replacements: Vec::new(),
            stale: Vec::new(),
            leaving: 0,
            next_age: None,
        }
    }

    /// Applies new limits to workers that become ready from now on.
    pub(crate) const fn handle_settings(&mut self, settings: RecycleSettings) {
        self.settings = settings;
    }

    /// A worker is ready, and its limits are drawn. Returns whether it was started as a replacement.
    pub(crate) fn handle_ready(&mut self, now: Instant, place: u32, worker: WorkerId) -> bool {
        if self.tallies.len() <= place as usize {
            self.tallies.resize(place as usize + 1, Tally::default());
        }
        let RecycleSettings { requests, age, memory, .. } = self.settings;
        self.tallies[place as usize] = Tally {
            served: 0,
            requests_max: requests.map(|most| self.draw(most)),
            age_at: age.and_then(|most| {
                let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
                now.checked_add(Duration::from_nanos(self.draw(nanos)))
            }),
            memory_max: memory.map(|most| self.draw(most)),
            leaving: false,
        };
        self.find_next_age();
        if self.take_stale(worker) {
            self.mark_due(place);
        }
        self.take_replacement(worker)
    }

    /// Returns a random number between `most` less the jitter and `most`; at least 1.
    fn draw(&mut self, most: u64) -> u64 {
        let percent = u128::from(self.settings.jitter.min(100));
        let span = u128::from(most) * percent / 100;
        let less = u128::from(self.random.draw()) % (span + 1);
        most.saturating_sub(u64::try_from(less).unwrap_or(0)).max(1)
    }

    fn take_replacement(&mut self, worker: WorkerId) -> bool {
        let place = self.replacements.iter().position(|one| *one == worker);
        place.map(|place| self.replacements.swap_remove(place)).is_some()
    }

    fn take_stale(&mut self, worker: WorkerId) -> bool {
        let place = self.stale.iter().position(|one| *one == worker);
        place.map(|place| self.stale.swap_remove(place)).is_some()
    }

    /// A ready worker received this number of requests.
    pub(crate) fn handle_dispatched(&mut self, place: u32, requests: u64) {
        let tally = &mut self.tallies[place as usize];
        tally.served += requests;
        if tally.requests_max.is_some_and(|most| tally.served >= most) {
            self.mark_due(place);
        }
    }

    /// Reports the memory of a ready worker.
    pub(crate) fn handle_memory(&mut self, place: u32, bytes: u64) {
        if self.tallies[place as usize].memory_max.is_some_and(|most| bytes > most) {
            self.mark_due(place);
        }
    }

    /// All of these workers are due; the starting ones, as soon as they are ready.
    pub(crate) fn handle_all(
        &mut self,
        ready: impl Iterator<Item = u32>,
        starting: impl Iterator<Item = WorkerId>,
    ) {
        ready.for_each(|place| self.mark_due(place));
        self.stale = starting.collect();
    }

    /// Workers that have reached their age limit are due.
    pub(crate) fn handle_time(&mut self, now: Instant) {
        if self.next_age.is_none_or(|at| at > now) {
            return;
        }
        for place in 0..u32::try_from(self.tallies.len()).expect("places are 32 bits") {
            if self.tallies[place as usize].age_at.is_some_and(|at| at <= now) {
                self.mark_due(place);
            }
        }
    }

    fn mark_due(&mut self, place: u32) {
        // Limits that the worker reaches from now on have no effect.
        let tally = &mut self.tallies[place as usize];
        let known = std::mem::replace(tally, Tally { leaving: tally.leaving, ..Tally::default() });
        if !known.leaving && !self.due.contains(&place) {
            self.due.push_back(place);
        }
        if known.age_at.is_some() {
            self.find_next_age();
        }
    }

    fn find_next_age(&mut self) {
        self.next_age = self.tallies.iter().filter_map(|tally| tally.age_at).min();
    }

    /// When the next worker reaches its age limit.
    pub(crate) const fn next_time(&self) -> Option<Instant> {
        self.next_age
    }

    /// Whether any worker is due.
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether a replacement may be started for a worker that is due.
    pub(crate) fn wants_replacement(&self, ready: u32) -> bool {
        let starting = self.replacements.len();
        let share = u64::from(ready) * u64::from(self.settings.share.min(100)) / 100;
        self.due.len() > starting && (starting as u64 + u64::from(self.leaving)) < share.max(1)
    }

    /// A replacement is started.
    pub(crate) fn handle_start(&mut self, worker: WorkerId) {
        self.replacements.push(worker);
    }

    /// Returns the due worker that leaves now, because another is ready.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let place = self.due.pop_front()?;
        self.tallies[place as usize].leaving = true;
        self.leaving += 1;
        Some(place)
    }

    /// A worker receives no more requests, for any reason.
    pub(crate) fn handle_unready(&mut self, place: u32) {
        self.due.retain(|one| *one != place);
        if let Some(tally) = self.tallies.get_mut(place as usize) {
            let had_age = tally.age_at.is_some();
            *tally = Tally { leaving: tally.leaving, ..Tally::default() };
            if had_age {
                self.find_next_age();
            }
        }
    }

    /// A worker is gone, or could not be started.
    pub(crate) fn handle_gone(&mut self, place: u32, worker: WorkerId) {
        self.take_replacement(worker);
        self.take_stale(worker);
        self.handle_unready(place);
        if let Some(tally) = self.tallies.get_mut(place as usize) {
            self.leaving -= u32::from(std::mem::take(tally).leaving);
        }
    }

    /// Checks every invariant. `ready` returns whether the worker at a place receives requests.
    pub(crate) fn check(&self, ready: impl Fn(u32) -> bool) {
        assert!(self.due.iter().all(|place| ready(*place)), "who is due still serves");
        let leaving = self.tallies.iter().filter(|tally| tally.leaving).count();
        assert_eq!(leaving, self.leaving as usize, "those that leave are counted");
        let ages = self.tallies.iter().filter_map(|tally| tally.age_at).min();
        assert_eq!(self.next_age, ages, "the next age is the earliest");
    }
}
