//! The state of each place, as it matters to clients that are bound to its worker.

use std::time::Instant;

use crate::why::PLACES_SEEN;

/// The state of one place, for clients that are bound to its worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlotState {
    /// Slots of the worker; 0: it does not serve.
    pub(super) slots: u32,
    /// Since when the worker does not serve.
    pub(super) out_since: Option<Instant>,
    /// Whether the place is in `callers`.
    pub(super) calls: bool,
}

/// The states of all places.
#[derive(Debug, Default)]
pub(super) struct SlotStates {
    pub(super) slot_states: Vec<SlotState>,
    /// Slots of all workers that serve.
    pub(super) slots: u64,
    pub(super) serving: u32,
    /// Places with a free slot and a request in their own lane. Some entries may be outdated.
    pub(super) callers: Vec<u32>,
    /// Places that do not serve and that had a request in their own lane.
    pub(super) held: Vec<u32>,
    /// Free slots of the first places, one bit each.
    pub(super) free: u64,
}

impl SlotStates {
    pub(super) fn at(&self, place: u32) -> SlotState {
        self.slot_states.get(place as usize).copied().unwrap_or_default()
    }

    /// The slots of the worker at `place`, if it serves clients that are bound to it.
    pub(super) fn slots(&self, place: u32) -> u32 {
        self.at(place).slots
    }

    pub(super) fn out_since(&self, place: u32) -> Option<Instant> {
        self.at(place).out_since
    }

    pub(super) const fn slots_all(&self) -> u64 {
        self.slots
    }

    pub(super) const fn serving(&self) -> u32 {
        self.serving
    }

    pub(super) fn set(&mut self, place: u32, slots: u32, free: bool, now: Instant) {
        if self.slot_states.len() <= place as usize {
            let new = SlotState { out_since: Some(now), ..SlotState::default() };
            self.slot_states.resize(place as usize + 1, new);
        }
        let slot_state = &mut self.slot_states[place as usize];
        if (slot_state.slots > 0) != (slots > 0) {
            slot_state.out_since = (slots == 0).then_some(now);
            self.serving = if slots > 0 { self.serving + 1 } else { self.serving - 1 };
        }
        self.slots = self.slots - u64::from(slot_state.slots) + u64::from(slots);
        slot_state.slots = slots;
        self.note_free(place, free);
    }

    pub(super) fn note_free(&mut self, place: u32, free: bool) {
        if place < PLACES_SEEN {
            self.free = self.free & !(1 << place) | u64::from(free) << place;
        }
    }

    pub(super) fn call(&mut self, place: u32) {
        let slot_state = &mut self.slot_states[place as usize];
        if !std::mem::replace(&mut slot_state.calls, true) {
            self.callers.push(place);
        }
    }
}
