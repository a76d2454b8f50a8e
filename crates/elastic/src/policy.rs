//! The policy itself: a load in, an advice out.
//!
//! **Growing.** What `min` and `spare` want is started at once. Beyond that a worker is started
//! when the oldest waiting request waited for `grow_after`, and again every `grow_after` while
//! the pressure lasts, each step twice the step before. No step starts more than the waiting
//! requests could use, those that are still starting counted. With `grow_above` the length of the
//! queue is a reason as well: each request beyond it is worth a worker at once.
//!
//! **Shrinking.** A worker is *surplus* beyond `max(min, busy + spare)`. Which worker that is
//! depends on the schedule (round robin lets none of them rest), so the policy does not look at
//! workers but at their number: it keeps for the k-th surplus worker since when there have been
//! at least k of them, as though work always went to the worker that rested shortest. Once that
//! has been so for `idle`, one worker is ended, and the next only when it is gone. A short peak
//! therefore keeps the workers that it needed for another `idle`, and nothing oscillates.

use std::collections::VecDeque;
use std::time::Instant;

use crate::Sizing;

/// What the policy has to know of its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Workers that are ready and have something to do.
    pub busy: u32,
    /// Workers that are ready and have nothing to do.
    pub idle: u32,
    /// Workers that were started and are not ready yet.
    pub starting: u32,
    /// Workers that get nothing more and are not gone yet.
    pub ending: u32,
    /// How many more workers the waiting requests could keep busy.
    pub waiting: u32,
    /// Since when the oldest request waits for a worker; none when none does.
    pub oldest: Option<Instant>,
    /// How many may be started now; what a back-off allows.
    pub room: u32,
    /// Whether workers may be ended for want of work.
    pub may_shrink: bool,
}

impl Load {
    const fn ready(&self) -> u32 {
        self.busy.saturating_add(self.idle)
    }

    const fn present(&self) -> u32 {
        self.ready().saturating_add(self.starting).saturating_add(self.ending)
    }
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing, until the load changes or [`Policy::next_time`] has come.
    Nothing,
    /// Start so many workers; at least one.
    Start(u32),
    /// End one idle worker.
    Stop,
}

/// Decides how many workers there should be.
///
/// Ask [`advise`](Self::advise) after every change of the load and when
/// [`next_time`](Self::next_time) has come; do what it says and ask again until it says
/// [`Advice::Nothing`].
///
/// ```
/// use elastic::{Advice, Load, Policy, Sizing};
/// let now = std::time::Instant::now();
/// let mut policy = Policy::new(Sizing { min: 2, max: 20, ..Sizing::default() });
/// let none = Load { room: u32::MAX, ..Load::default() };
/// assert_eq!(policy.advise(now, &none), Advice::Start(2));
/// let both = Load { starting: 2, ..none };
/// assert_eq!(policy.advise(now, &both), Advice::Nothing);
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    sizing: Sizing,
    /// Workers that the next growth step starts: 1, 2, 4, … `grow_step_max`.
    step: u32,
    /// No growth step before this.
    step_at: Option<Instant>,
    /// `surplus[k]`: since when there have been more than `k` surplus workers; oldest first.
    surplus: VecDeque<Instant>,
}

impl Policy {
    /// A policy for a pool that has no workers yet. Numbers outside their range are brought
    /// into it.
    #[must_use]
    pub fn new(sizing: Sizing) -> Self {
        let sizing = sizing.within_limits();
        Self { sizing, step: 1, step_at: None, surplus: VecDeque::new() }
    }

    /// The numbers in force.
    #[must_use]
    pub const fn sizing(&self) -> &Sizing {
        &self.sizing
    }

    /// Other numbers from now on. How long workers have not been needed is remembered.
    pub fn handle_sizing(&mut self, sizing: Sizing) {
        self.sizing = sizing.within_limits();
        if self.sizing.is_fixed_at(self.sizing.max) {
            // Nobody is surplus, and it may not be asked until that changes.
            self.surplus.clear();
        }
        self.step = self.step.min(self.sizing.grow_step_max);
    }

    /// Takes notice of a load without acting on it: when to ask [`advise`](Self::advise), `now` if
    /// it has something to say already. For pools whose load changes on one thread and whose
    /// workers are started and ended by another.
    pub fn observe(&mut self, now: Instant, load: &Load) -> Option<Instant> {
        self.note(now, load);
        if self.missing(load) > 0 { Some(now) } else { self.next_time(load) }
    }

    /// What to do now, at `now`, which never goes back.
    pub fn advise(&mut self, now: Instant, load: &Load) -> Advice {
        self.note(now, load);
        let missing = self.missing(load);
        if missing > 0 {
            return Advice::Start(missing);
        }
        if let Some(due) = self.growth_due(load)
            && due <= now
        {
            return Advice::Start(self.grow(now, due, load));
        }
        if self.shrink_due(load).is_some_and(|due| due <= now) {
            self.surplus.pop_front();
            return Advice::Stop;
        }
        Advice::Nothing
    }

    /// How many of those that are ready must end because `max` was lowered, busy or not.
    #[must_use]
    pub const fn beyond(&self, ready: u32) -> u32 {
        ready.saturating_sub(self.sizing.max)
    }

    /// When to ask again though nothing has changed since [`advise`](Self::advise) said
    /// [`Advice::Nothing`] for this load. Later than that, so that nobody asks in vain.
    #[must_use]
    pub fn next_time(&self, load: &Load) -> Option<Instant> {
        match (self.growth_due(load), self.shrink_due(load)) {
            (Some(growth), Some(shrink)) => Some(growth.min(shrink)),
            (growth, shrink) => growth.or(shrink),
        }
    }

    /// How many may be started at most, for whatever reason.
    fn room(&self, load: &Load) -> u32 {
        self.sizing.max.saturating_sub(load.present()).min(load.room)
    }

    /// How many are missing at once: for `min`, for `spare`, for a queue that is too long, and the
    /// first one for a request that no worker could ever answer.
    fn missing(&self, load: &Load) -> u32 {
        let coming = load.ready().saturating_add(load.starting);
        let for_min = self.sizing.min.saturating_sub(coming);
        let for_spare = self.sizing.spare.saturating_sub(load.idle.saturating_add(load.starting));
        let for_first = u32::from(coming == 0 && load.waiting > 0);
        let for_queue = self
            .sizing
            .grow_above
            .map_or(0, |above| load.waiting.saturating_sub(above).saturating_sub(load.starting));
        for_min.max(for_spare).max(for_queue).max(for_first).min(self.room(load))
    }

    /// How many more may be starting because requests wait.
    fn growth_room(&self, load: &Load) -> u32 {
        let useful = load.waiting.min(self.sizing.grow_step_max).saturating_sub(load.starting);
        useful.min(self.room(load))
    }

    /// When the next growth step is due under this load; may be past.
    fn growth_due(&self, load: &Load) -> Option<Instant> {
        if self.growth_room(load) == 0 {
            return None;
        }
        let pressure_at = load.oldest?.checked_add(self.sizing.grow_after)?;
        Some(self.step_at.map_or(pressure_at, |step_at| step_at.max(pressure_at)))
    }

    /// Takes a growth step that was due at `due`: how many to start.
    fn grow(&mut self, now: Instant, due: Instant, load: &Load) -> u32 {
        // The pressure lasted when the step was due hardly later than it might have been.
        let lasted = self.step_at.and_then(|step_at| step_at.checked_add(self.sizing.grow_after));
        if lasted.is_none_or(|lasted| due > lasted) {
            self.step = 1;
        }
        let count = self.step.min(self.growth_room(load));
        self.step = self.step.saturating_mul(2).min(self.sizing.grow_step_max);
        self.step_at = now.checked_add(self.sizing.grow_after);
        count
    }

    /// When the worker that has not been needed longest may be ended; may be past.
    fn shrink_due(&self, load: &Load) -> Option<Instant> {
        if load.ending > 0 || load.idle == 0 {
            return None;
        }
        self.surplus.front()?.checked_add(self.sizing.idle)
    }

    /// Brings `surplus` up to date.
    fn note(&mut self, now: Instant, load: &Load) {
        let needed = self.sizing.min.max(load.busy.saturating_add(self.sizing.spare));
        let surplus = if load.may_shrink { load.ready().saturating_sub(needed) } else { 0 };
        let surplus = usize::try_from(surplus).unwrap_or(usize::MAX);
        self.surplus.truncate(surplus);
        while self.surplus.len() < surplus {
            self.surplus.push_back(now);
        }
    }
}

#[cfg(test)]
mod tests;
