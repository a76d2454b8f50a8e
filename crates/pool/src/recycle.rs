//! Workers that are replaced before they grow old.
//!
//! What it is: for each worker the number of requests, the age and the memory at which another
//! takes its place, each drawn anew below the limit so that workers started together do not go
//! together; and the law that the old one serves until the new one is ready:
//!
//! ```text
//!   ready ── a limit is reached, or all are to go ──▶ due ── another has become ready ──▶ leaves
//! ```
//!
//! At most a share of the workers is being replaced at once: replacements that start, and old ones
//! that have been told to leave and are not gone. One that starts in vain leaves the old one where
//! it is; the back-off says when to try again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use exchange::WorkerId;

use crate::random::Random;
use crate::settings::RecycleSettings;

/// What is known of the worker at one place.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    served: u64,
    /// Drawn when it became ready.
    requests_max: Option<u64>,
    age_at: Option<Instant>,
    memory_max: Option<u64>,
    /// It was told to leave because it was due.
    leaving: bool,
}

/// Who is to be replaced.
#[derive(Debug)]
pub(crate) struct Recycle {
    settings: RecycleSettings,
    random: Random,
    tallies: Vec<Tally>,
    /// Ready workers that are due, the first one first.
    due: VecDeque<u32>,
    /// Workers that were started to replace others and are not ready.
    replacements: Vec<WorkerId>,
    /// Workers that are due as soon as they are ready.
    stale: Vec<WorkerId>,
    leaving: u32,
    /// The earliest age that is reached by one that is not due.
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

    /// Other limits, for workers that become ready from now on.
    pub(crate) const fn handle_settings(&mut self, settings: RecycleSettings) {
        self.settings = settings;
    }

    /// A worker is ready, and its limits are drawn. Whether it was started to replace another.
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
        if self.is_stale_no_more(worker) {
            self.is_due(place);
        }
        self.is_replacement_no_more(worker)
    }

    /// Somewhere between `most` less the jitter and `most`; at least 1.
    fn draw(&mut self, most: u64) -> u64 {
        let percent = u128::from(self.settings.jitter.min(100));
        let span = u128::from(most) * percent / 100;
        let less = u128::from(self.random.next()) % (span + 1);
        most.saturating_sub(u64::try_from(less).unwrap_or(0)).max(1)
    }

    fn is_replacement_no_more(&mut self, worker: WorkerId) -> bool {
        let place = self.replacements.iter().position(|one| *one == worker);
        place.map(|place| self.replacements.swap_remove(place)).is_some()
    }

    fn is_stale_no_more(&mut self, worker: WorkerId) -> bool {
        let place = self.stale.iter().position(|one| *one == worker);
        place.map(|place| self.stale.swap_remove(place)).is_some()
    }

    /// So many requests were given to a ready worker.
    pub(crate) fn handle_dispatched(&mut self, place: u32, requests: u64) {
        let tally = &mut self.tallies[place as usize];
        tally.served += requests;
        if tally.requests_max.is_some_and(|most| tally.served >= most) {
            self.is_due(place);
        }
    }

    /// What a ready worker occupies.
    pub(crate) fn handle_memory(&mut self, place: u32, bytes: u64) {
        if self.tallies[place as usize].memory_max.is_some_and(|most| bytes > most) {
            self.is_due(place);
        }
    }

    /// All of these are to be replaced, those that start when they are ready.
    pub(crate) fn handle_all(
        &mut self,
        ready: impl Iterator<Item = u32>,
        starting: impl Iterator<Item = WorkerId>,
    ) {
        ready.for_each(|place| self.is_due(place));
        self.stale = starting.collect();
    }

    /// Whoever has reached its age is due.
    pub(crate) fn handle_time(&mut self, now: Instant) {
        if self.next_age.is_none_or(|at| at > now) {
            return;
        }
        for place in 0..u32::try_from(self.tallies.len()).expect("places are 32 bits") {
            if self.tallies[place as usize].age_at.is_some_and(|at| at <= now) {
                self.is_due(place);
            }
        }
    }

    fn is_due(&mut self, place: u32) {
        // What it reaches from now on changes nothing.
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

    /// When the next worker reaches its age.
    pub(crate) const fn next_time(&self) -> Option<Instant> {
        self.next_age
    }

    /// Whether anybody is due.
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether another may be started in place of one that is due.
    pub(crate) fn wants_replacement(&self, ready: u32) -> bool {
        let starting = self.replacements.len();
        let share = u64::from(ready) * u64::from(self.settings.share.min(100)) / 100;
        self.due.len() > starting && (starting as u64 + u64::from(self.leaving)) < share.max(1)
    }

    /// One is started in place of another.
    pub(crate) fn handle_start(&mut self, worker: WorkerId) {
        self.replacements.push(worker);
    }

    /// The worker that leaves now that another is ready.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let place = self.due.pop_front()?;
        self.tallies[place as usize].leaving = true;
        self.leaving += 1;
        Some(place)
    }

    /// A worker gets nothing more, for whatever reason.
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
        self.is_replacement_no_more(worker);
        self.is_stale_no_more(worker);
        self.handle_unready(place);
        if let Some(tally) = self.tallies.get_mut(place as usize) {
            self.leaving -= u32::from(std::mem::take(tally).leaving);
        }
    }

    /// Sweeps every invariant; `ready` says who takes work.
    pub(crate) fn check(&self, ready: impl Fn(u32) -> bool) {
        assert!(self.due.iter().all(|place| ready(*place)), "who is due still serves");
        let leaving = self.tallies.iter().filter(|tally| tally.leaving).count();
        assert_eq!(leaving, self.leaving as usize, "those that leave are counted");
        let ages = self.tallies.iter().filter_map(|tally| tally.age_at).min();
        assert_eq!(self.next_age, ages, "the next age is the earliest");
    }
}
