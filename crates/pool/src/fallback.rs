//! The fallback of a pool: the response to requests that it cannot serve ("sorry server", in LVS terms).
//!
//! ```text
//!           the queue was full, a request waited too long, no worker could answer
//!     off ─────────────────────────────────────────────────────────────────────▶ on
//!      ▲                                                                          │
//!      └──────────────────────────────────────────────────────────────────────────┘
//!         the load fell to `until` of the capacity, and a worker can answer,
//!         and both held for `steady`
//! ```
//!
//! While the fallback is on, no request waits: a request is served if a slot is free for it, and gets the fallback
//! otherwise. So a pool under overload still does as much work as it can.
//!
//! After a request that waited too long, the fallback stays on until the queue is empty and a slot was free: a long
//! queue with few requests in it does not mean that the next request would be served sooner.
//!
//! If an operator has switched the fallback on, it stays on until an operator switches it off, and nothing is served.

use std::time::{Duration, Instant};

use exchange::Cause;

/// When the fallback is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FallbackSettings {
    /// The percentage of the slots, and of the places in the queue, that may be taken when the fallback is switched
    /// off, 0 to 100.
    pub until: u32,
    /// How long the load must stay at or below this level.
    pub steady: Duration,
}

impl Default for FallbackSettings {
    /// When half of the capacity is free again.
    fn default() -> Self {
        Self { until: 50, steady: Duration::ZERO }
    }
}

/// Why the fallback is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackReason {
    /// An operator switched it on.
    Operator,
    /// The queue was full.
    Full,
    /// A request waited too long.
    Waited,
    /// No worker could answer.
    NoWorker,
}

impl FallbackReason {
    /// The name in status, metrics and `why`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Full => "full",
            Self::Waited => "waited",
            Self::NoWorker => "no-worker",
        }
    }

    /// The reason for a rejection with `cause`; `None` if this cause does not switch the fallback on.
    pub(crate) const fn of(cause: Cause) -> Option<Self> {
        match cause {
            Cause::Full => Some(Self::Full),
            Cause::Waited => Some(Self::Waited),
            Cause::Down => Some(Self::NoWorker),
            _ => None,
        }
    }

    /// The cause with which requests are rejected while the fallback is on.
    pub(crate) const fn cause(self) -> Cause {
        match self {
            Self::Operator => Cause::Fallback,
            Self::Full => Cause::Full,
            Self::Waited => Cause::Waited,
            Self::NoWorker => Cause::Down,
        }
    }
}

/// The current load of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    /// For each resource, how much is taken and how much exists: slots and places in the queue, bytes that wait.
    pub(crate) taken: &'a [(u64, u64)],
    /// Whether any worker can answer.
    pub(crate) any_worker: bool,
    /// Whether the queue is empty.
    pub(crate) is_queue_empty: bool,
    /// Whether a slot is free.
    pub(crate) any_free: bool,
}

/// Whether the fallback is on, and why.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fallback {
    settings: Option<FallbackSettings>,
    by_operator: Option<Instant>,
    on: Option<(FallbackReason, Instant)>,
    /// Whether a slot was free while no request waited, since the last request that waited too long.
    had_free_slot: bool,
    /// Since when the conditions for switching off hold.
    low_since: Option<Instant>,
    times: u64,
    /// How often it was switched on other than by an operator, and why the last time.
    automatic: (u64, Option<FallbackReason>),
}

impl Fallback {
    pub(crate) fn handle_settings(&mut self, settings: Option<FallbackSettings>) {
        self.settings = settings;
        if settings.is_none() {
            self.on = None;
        }
    }

    /// Why the fallback is on, and since when.
    pub(crate) fn state(&self) -> Option<(FallbackReason, Instant)> {
        self.by_operator.map(|since| (FallbackReason::Operator, since)).or(self.on)
    }

    /// How often the fallback was switched on.
    pub(crate) const fn times(&self) -> u64 {
        self.times
    }

    /// How often the fallback was switched on other than by an operator, and why the last time.
    pub(crate) const fn automatic(&self) -> (u64, Option<FallbackReason>) {
        self.automatic
    }

    /// Whether an operator switched it on.
    pub(crate) const fn is_by_operator(&self) -> bool {
        self.by_operator.is_some()
    }

    /// Why the fallback is on. `None` if an operator switched it on, because then nothing is served.
    pub(crate) fn reason(&self) -> Option<FallbackReason> {
        self.on.filter(|_| self.by_operator.is_none()).map(|(reason, _)| reason)
    }

    /// Whether it is on for a reason that can end without an operator.
    pub(crate) const fn is_on(&self) -> bool {
        self.on.is_some()
    }

    pub(crate) fn handle_operator(&mut self, now: Instant, on: bool) {
        self.times += u64::from(on && self.state().is_none());
        self.by_operator = on.then(|| self.by_operator.unwrap_or(now));
    }

    /// A request was rejected.
    pub(crate) fn handle_refusal(&mut self, now: Instant, cause: Cause) {
        let (Some(_), Some(reason)) = (self.settings, FallbackReason::of(cause)) else { return };
        self.low_since = None;
        self.had_free_slot = false;
        if self.on.is_none() {
            self.times += u64::from(self.by_operator.is_none());
            self.on = Some((reason, now));
            self.automatic = (self.automatic.0 + 1, Some(reason));
        }
    }

    /// Updates the state with the current load.
    pub(crate) fn handle_load(&mut self, now: Instant, load: &Load<'_>) {
        let (Some(settings), Some((reason, _))) = (self.settings, &mut self.on) else { return };
        let until = u128::from(settings.until);
        let mut room = load.taken.iter();
        self.had_free_slot |= load.is_queue_empty && load.any_free;
        let low = room.all(|(taken, room)| u128::from(*taken) * 100 <= u128::from(*room) * until)
            && (*reason != FallbackReason::Waited || self.had_free_slot && load.is_queue_empty);
        if !low || !load.any_worker {
            self.low_since = None;
            if !load.any_worker {
                *reason = FallbackReason::NoWorker;
            }
            return;
        }
        let low_since = *self.low_since.get_or_insert(now);
        if low_since.checked_add(settings.steady).is_some_and(|at| at <= now) {
            self.on = None;
            self.low_since = None;
        }
    }

    /// When the fallback is switched off if nothing happens.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.on?;
        self.low_since?.checked_add(self.settings?.steady)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    fn start() -> Instant {
        Instant::now()
    }

    fn fallback(until: u32, steady_ms: u64) -> Fallback {
        let mut fallback = Fallback::default();
        let steady = Duration::from_millis(steady_ms);
        fallback.handle_settings(Some(FallbackSettings { until, steady }));
        fallback
    }

    fn of(taken: &[(u64, u64)]) -> Load<'_> {
        Load { taken, any_worker: true, is_queue_empty: true, any_free: true }
    }

    #[test]
    fn after_a_request_that_waited_too_long_it_stays_until_a_slot_was_free_and_the_queue_is_empty()
    {
        let (mut fallback, now) = (fallback(50, 0), start());
        let load =
            |is_queue_empty, any_free| Load { is_queue_empty, any_free, ..of(&[(1, 10_000)]) };
        fallback.handle_refusal(now, Cause::Waited);
        for (is_queue_empty, any_free) in [(false, false), (false, true), (true, false)] {
            fallback.handle_load(now, &load(is_queue_empty, any_free));
            assert_eq!(fallback.state(), Some((FallbackReason::Waited, now)));
        }
        fallback.handle_load(now, &load(true, true));
        assert_eq!(fallback.state(), None);
    }

    #[test]
    fn a_pool_whose_slots_are_busy_again_leaves_the_fallback_when_nobody_waited_for_long_enough() {
        let (mut fallback, now) = (fallback(50, 1000), start());
        let at = |ms| now + Duration::from_millis(ms);
        fallback.handle_refusal(now, Cause::Waited);
        fallback.handle_load(at(10), &of(&[(1, 10)]));
        fallback.handle_load(at(20), &Load { any_free: false, ..of(&[(5, 10)]) });
        assert_eq!(
            fallback.next_time(),
            Some(at(1010)),
            "what is served meanwhile is no reason to stay"
        );
        fallback.handle_load(at(1010), &Load { any_free: false, ..of(&[(5, 10)]) });
        assert_eq!(fallback.state(), None);
        fallback.handle_refusal(at(2000), Cause::Waited);
        fallback.handle_load(at(4000), &Load { any_free: false, ..of(&[(5, 10)]) });
        assert!(fallback.state().is_some(), "no slot was free since");
    }

    #[test]
    fn it_goes_when_all_there_is_room_for_is_low() {
        let (mut fallback, now) = (fallback(50, 0), start());
        fallback.handle_refusal(now, Cause::Full);
        let taken = [(1, 10_000), (51 << 20, 100 << 20)];
        fallback.handle_load(now, &of(&taken));
        assert!(fallback.state().is_some(), "its bytes still wait");
        fallback.handle_load(now, &of(&[(1, 10_000), (50 << 20, 100 << 20)]));
        assert!(fallback.state().is_none());
    }

    #[test]
    fn it_comes_with_a_refusal_and_goes_when_the_load_is_low() {
        let (mut fallback, now) = (fallback(30, 0), start());
        fallback.handle_refusal(now, Cause::Draining);
        assert_eq!(fallback.state(), None, "the daemon's end is no reason");
        fallback.handle_refusal(now, Cause::Full);
        fallback.handle_load(now, &of(&[(31, 100)]));
        assert_eq!(fallback.state(), Some((FallbackReason::Full, now)));
        fallback.handle_load(now, &of(&[(30, 100)]));
        assert_eq!((fallback.state(), fallback.times()), (None, 1));
    }

    #[test]
    fn it_goes_only_when_things_hold_for_a_while() {
        let (mut fallback, now) = (fallback(50, 1000), start());
        let at = |ms| now + Duration::from_millis(ms);
        fallback.handle_refusal(now, Cause::Waited);
        fallback.handle_load(at(10), &of(&[(0, 100)]));
        assert_eq!(fallback.next_time(), Some(at(1010)));
        fallback.handle_load(at(500), &of(&[(80, 100)]));
        assert_eq!(fallback.next_time(), None, "the load came back");
        fallback.handle_load(at(600), &of(&[(0, 100)]));
        fallback.handle_load(at(1599), &of(&[(0, 100)]));
        assert!(fallback.state().is_some());
        fallback.handle_load(at(1600), &of(&[(0, 100)]));
        assert!(fallback.state().is_none());
    }

    #[test]
    fn nobody_to_answer_keeps_it_on_and_a_hand_is_above_all() {
        let (mut fallback, now) = (fallback(50, 0), start());
        fallback.handle_refusal(now, Cause::Full);
        fallback.handle_load(now, &Load { any_worker: false, ..of(&[(0, 0)]) });
        assert_eq!(fallback.state(), Some((FallbackReason::NoWorker, now)));
        fallback.handle_operator(now, true);
        fallback.handle_load(now, &of(&[(0, 100)]));
        assert_eq!(fallback.state(), Some((FallbackReason::Operator, now)));
        fallback.handle_operator(now, false);
        assert_eq!((fallback.state(), fallback.times()), (None, 1));
    }

    #[test]
    fn without_settings_it_is_fallback_by_hand_only() {
        let (mut fallback, now) = (Fallback::default(), start());
        fallback.handle_refusal(now, Cause::Full);
        assert_eq!(fallback.state(), None);
        fallback.handle_operator(now, true);
        assert!(fallback.state().is_some());
    }
}
