//! Deadlines of streams, and timers.

use std::time::{Duration, Instant};

use super::*;

impl Context<'_> {
    /// Arms a deadline of a stream, or disarms it (`None`). Moving it to a later time costs one memory write.
    ///
    /// # Panics
    /// If the name is not below [`DEADLINES_MAX`].
    pub fn deadline(&mut self, stream: StreamId, name: DeadlineName, at: Option<Instant>) {
        let slot = usize::from(name.0);
        assert!(slot < DEADLINES_MAX, "a deadline's name is below DEADLINES_MAX");
        self.state.set_alarm(stream, slot, at);
    }

    /// Arms a deadline of a stream at `after` from this turn. This equals [`Self::deadline`] at [`Self::now`] plus
    /// `after`, and is the fastest way to postpone a deadline on every request.
    ///
    /// # Panics
    /// If the name is not below [`DEADLINES_MAX`].
    #[inline]
    pub fn deadline_in(&mut self, stream: StreamId, name: DeadlineName, after: Duration) {
        let slot = usize::from(name.0);
        assert!(slot < DEADLINES_MAX, "a deadline's name is below DEADLINES_MAX");
        let tick = self.state.clock.tick_in(after);
        self.state.set_alarm_at(stream, slot, tick);
    }

    /// Creates a timer that belongs to no stream. It fires once at `at`, unless it is set again.
    pub fn timer(&mut self, at: Instant) -> TimerId {
        self.timer_of(OwnerKey::NONE, at)
    }

    /// Like [`Self::timer`], with the key of its owner.
    pub fn timer_of(&mut self, key: OwnerKey, at: Instant) -> TimerId {
        let (index, generation) = self.state.timers.insert(Timer { alarm: Alarm::NONE, key });
        let id = TimerId { index, generation };
        let alarm = self.state.wheel.create(AlarmKind::Timer(id));
        if let Some(timer) = self.state.timers.get_mut(index, generation) {
            timer.alarm = alarm;
        }
        self.state.wheel.set(alarm, self.state.clock.tick_after(at));
        id
    }

    /// Moves a timer, or arms it again.
    pub fn set_timer(&mut self, timer: TimerId, at: Instant) {
        if let Some(alarm) = self.alarm_of(timer) {
            self.state.wheel.set(alarm, self.state.clock.tick_after(at));
        }
    }

    /// Disarms a timer until it is set again.
    pub fn disarm_timer(&mut self, timer: TimerId) {
        if let Some(alarm) = self.alarm_of(timer) {
            self.state.wheel.disarm(alarm);
        }
    }

    /// Removes a timer.
    pub fn cancel_timer(&mut self, timer: TimerId) {
        if let Some(alarm) = self.alarm_of(timer) {
            self.state.wheel.remove(alarm);
            self.state.timers.remove(timer.index, timer.generation);
        }
    }

    fn alarm_of(&mut self, timer: TimerId) -> Option<Alarm> {
        let alarm = self.state.timers.get(timer.index, timer.generation).map(|timer| timer.alarm);
        if alarm.is_none() {
            self.state.counts.stale += 1;
        }
        alarm
    }
}
