//! The policy: its input is a load, its output is advice.
//!
//! **Growing.** Workers that are missing for `min` and `spare` are started immediately. Beyond that, a worker is
//! started when the oldest waiting request has waited for `grow_after`, and again every `grow_after` while the pressure
//! lasts. Each step starts twice as many workers as the step before. No step starts more workers than the waiting
//! requests can use; workers that are still starting are included in this count. With `grow_above`, the length of the
//! queue is also a reason: for each request beyond `grow_above` one worker is started immediately.
//!
//! **Shrinking.** Workers beyond `max(min, busy + spare)` are *surplus*. The balancing method decides which worker is
//! idle, and round robin leaves none of them idle for long. The policy therefore considers only the number of workers,
//! not the workers themselves. For each k it stores the time since when there have been at least k surplus workers, as
//! if work always went to the worker with the shortest idle time. When this time exceeds `idle`, one worker is ended.
//! The next worker is ended only when the previous one has gone. A short peak therefore keeps its workers for another
//! `idle`, and the number of workers does not oscillate.

use std::collections::VecDeque;
use std::time::Instant;

use crate::Sizing;

/// The state of a pool, as far as the policy needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Workers that are ready and have work.
    pub busy: u32,
    /// Workers that are ready and have no work.
    pub idle: u32,
    /// Workers that were started and are not ready yet.
    pub starting: u32,
    /// Workers that get no more work and have not gone yet.
    pub ending: u32,
    /// The number of additional workers that the waiting requests could keep busy.
    pub waiting: u32,
    /// When the oldest waiting request began to wait; `None` if no request waits.
    pub oldest: Option<Instant>,
    /// The number of workers that may be started now; a back-off lowers it.
    pub room: u32,
    /// Whether workers may be ended because they have no work.
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

/// What the pool should do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Do nothing until the load changes or [`Policy::next_time`] is reached.
    Nothing,
    /// Start this many workers; at least one.
    Start(u32),
    /// End one idle worker.
    Stop,
}

/// Decides how many workers a pool should have.
///
/// Call [`advise`](Self::advise) after every change of the load and when [`next_time`](Self::next_time) is reached.
/// Follow the advice and call it again until it returns [`Advice::Nothing`].
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
    /// The number of workers that the next growth step starts: 1, 2, 4, … `grow_step_max`.
    step: u32,
    /// No growth step happens before this time.
    step_at: Option<Instant>,
    /// `surplus[k]`: the time since when there have been more than `k` surplus workers; the oldest is first.
    surplus: VecDeque<Instant>,
}

impl Policy {
    /// Creates a policy for a pool that has no workers yet. Numbers outside their range are moved into it.
    #[must_use]
    pub fn new(sizing: Sizing) -> Self {
        let sizing = sizing.within_limits();
        Self { sizing, step: 1, step_at: None, surplus: VecDeque::new() }
    }

    /// The current settings.
    #[must_use]
    pub const fn sizing(&self) -> &Sizing {
        &self.sizing
    }

    /// Replaces the settings. The times since when workers have been surplus are kept.
    pub fn set_sizing(&mut self, sizing: Sizing) {
        self.sizing = sizing.within_limits();
        if self.sizing.is_fixed_at(self.sizing.max) {
            // With a fixed number no worker is surplus. The policy may not be called again until that changes, so the
            // times are cleared here.
            self.surplus.clear();
        }
        self.step = self.step.min(self.sizing.grow_step_max);
    }

    /// Records a load without acting on it. Returns when to call [`advise`](Self::advise): `now` if it has advice
    /// already. This is for pools whose load changes on one thread and whose workers are started and ended by another.
    pub fn observe(&mut self, now: Instant, load: &Load) -> Option<Instant> {
        self.note(now, load);
        if self.missing(load) > 0 { Some(now) } else { self.next_time(load) }
    }

    /// Returns what to do now. The time `now` never goes back.
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

    /// The number of ready workers that must end because `max` was lowered, whether busy or idle.
    #[must_use]
    pub const fn excess(&self, ready: u32) -> u32 {
        ready.saturating_sub(self.sizing.max)
    }

    /// When to call [`advise`](Self::advise) again if the load does not change after it returned [`Advice::Nothing`].
    /// This is always later than the time of that call, so that no call is useless.
    #[must_use]
    pub fn next_time(&self, load: &Load) -> Option<Instant> {
        match (self.growth_due(load), self.shrink_due(load)) {
            (Some(growth), Some(shrink)) => Some(growth.min(shrink)),
            (growth, shrink) => growth.or(shrink),
        }
    }

    /// The maximum number of workers that may be started, for any reason.
    fn room(&self, load: &Load) -> u32 {
        self.sizing.max.saturating_sub(load.present()).min(load.room)
    }

    /// The number of workers that are missing immediately: for `min`, for `spare`, for a queue longer than
    /// `grow_above`, and the first worker if requests wait and the pool has none.
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

    /// The number of additional workers that may be starting because requests wait.
    fn growth_room(&self, load: &Load) -> u32 {
        let useful = load.waiting.min(self.sizing.grow_step_max).saturating_sub(load.starting);
        useful.min(self.room(load))
    }

    /// When the next growth step is due under this load; this may be in the past.
    fn growth_due(&self, load: &Load) -> Option<Instant> {
        if self.growth_room(load) == 0 {
            return None;
        }
        let pressure_at = load.oldest?.checked_add(self.sizing.grow_after)?;
        Some(self.step_at.map_or(pressure_at, |step_at| step_at.max(pressure_at)))
    }

    /// Takes a growth step that was due at `due` and returns how many workers to start.
    fn grow(&mut self, now: Instant, due: Instant, load: &Load) -> u32 {
        // The pressure has lasted since the previous step if this step became due at most `grow_after` after it was
        // allowed. Otherwise the steps begin with 1 again.
        let lasted = self.step_at.and_then(|step_at| step_at.checked_add(self.sizing.grow_after));
        if lasted.is_none_or(|lasted| due > lasted) {
            self.step = 1;
        }
        let count = self.step.min(self.growth_room(load));
        self.step = self.step.saturating_mul(2).min(self.sizing.grow_step_max);
        self.step_at = now.checked_add(self.sizing.grow_after);
        count
    }

    /// When the worker that has been surplus for the longest time may be ended; this may be in the past.
    fn shrink_due(&self, load: &Load) -> Option<Instant> {
        if load.ending > 0 || load.idle == 0 {
            return None;
        }
        self.surplus.front()?.checked_add(self.sizing.idle)
    }

    /// Updates `surplus`.
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
