//! The state machine of a pool: events in, effects out.
//!
//! Every `handle_*` applies its event and then carries out the consequences (`turn`): requests are dispatched or time
//! out, workers are started or stopped. Afterwards nothing remains to be done before the next event or
//! [`next_time`](Pool::next_time).

mod balance;
mod give;
mod note;
mod reservations;
mod reserve;
mod retries;
mod share;
mod shared;
mod slot_states;
mod slots;
mod turn;
mod view;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Instant;

use elastic::Policy;
use exchange::{Cause, Proof, WorkerId};

use crate::Queueable;
use crate::affinity::Affinity;
use crate::backoff::Backoff;
use crate::effect::{Effect, Refused};
use crate::failed::Retry;
use crate::fallback::Fallback;
use crate::health::{Ejected, HealthChange};
use crate::queue::{Lane, Queue, QueueEntry, Ticket};
use crate::random::{Random, mix};
use crate::recycle::Recycle;
use crate::schedule::{Capacity, Choice, FreeWorkers};
use crate::settings::Settings;
use crate::status::Counts;
use crate::why::Decisions;
use crate::worker_table::WorkerTable;
use crate::workers::{Move, State, Workers};

use reservations::Reservations;
use shared::Shared;
use slot_states::SlotStates;

/// The phase of a pool's life. It only advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Requests are admitted.
    Serving,
    /// No more requests are admitted. Waiting requests are served.
    Draining,
    /// No worker is started. Idle workers are stopped.
    Stopping,
}

/// One pool: it decides which request is served, waits or is rejected.
///
/// After every `handle_*`, call [`poll_effect`](Self::poll_effect) until it returns `None`, and call
/// [`handle_time`](Self::handle_time) at [`next_time`](Self::next_time). The time never goes back; an earlier `now` is
/// replaced by the latest one.
#[derive(Debug)]
pub struct Pool<P> {
    settings: Settings,
    phase: Phase,
    now: Instant,
    queue: Queue<P>,
    workers: Workers,
    worker_table: WorkerTable,
    slot_states: SlotStates,
    reservations: Reservations,
    free: FreeWorkers,
    affinity: Option<Affinity>,
    fallback: Fallback,
    ejected: Ejected,
    /// Since when no running worker is available to all clients.
    unavailable_since: Option<Instant>,
    policy: Policy,
    backoff: Backoff,
    random: Random,
    decisions: Decisions,
    recycle: Recycle,
    effects: VecDeque<Effect<P>>,
    health_changes: VecDeque<HealthChange>,
    counts: Counts,
    /// Whether an event has occurred since the next time was computed.
    is_changed: bool,
    /// Whether all consequences of the events up to `now` were carried out.
    is_at_rest: bool,
    next_time: Option<Instant>,
    /// The state of a pool that several shards serve.
    shared: Option<Box<Shared>>,
}

fn capacity(settings: &Settings) -> Capacity {
    let weights = |sum: u64, member: &crate::Member| sum + u64::from(member.weight);
    match settings.members.len() as u64 {
        0 => Capacity::new(
            settings.sizing.max_workers().into(),
            settings.sizing.max_workers().into(),
        ),
        members => Capacity::new(members, settings.members.iter().fold(0, weights)),
    }
}

impl<P: Queueable> Pool<P> {
    /// A pool without workers, which immediately starts its `min` workers. Numbers outside their range are brought into
    /// it. The seed determines the jitter of the back-off.
    pub fn new(settings: Settings, now: Instant, seed: u64) -> Self {
        let settings = settings.within_limits();
        let mut pool = Self {
            phase: Phase::Serving,
            now,
            queue: Queue::new(settings.priority_step),
            workers: Workers::default(),
            worker_table: WorkerTable::default(),
            slot_states: SlotStates::default(),
            reservations: Reservations::default(),
            free: FreeWorkers::new(settings.schedule, capacity(&settings)),
            affinity: None,
            fallback: Fallback::default(),
            ejected: Ejected::default(),
            unavailable_since: None,
            policy: Policy::new(settings.sizing),
            backoff: Backoff::new(settings.backoff, seed),
            random: Random::new(mix(seed)),
            decisions: Decisions::new(settings.decisions),
            recycle: Recycle::new(settings.recycle, seed),
            effects: VecDeque::new(),
            health_changes: VecDeque::new(),
            counts: Counts::default(),
            is_changed: true,
            is_at_rest: false,
            next_time: None,
            shared: None,
            settings,
        };
        pool.declare();
        pool.turn();
        pool
    }

    /// Applies new settings. Waiting requests continue to wait, even beyond a lower limit. Workers above a lower `max`,
    /// and workers that are no longer declared, receive no more requests and stop when they are idle. Bound clients
    /// stay bound, and settings made by an operator are kept.
    pub fn handle_settings(&mut self, now: Instant, settings: Settings) {
        self.begin(now);
        self.settings = settings.within_limits();
        self.policy.set_sizing(self.settings.sizing);
        self.backoff.handle_settings(self.settings.backoff);
        self.declare();
        let health = self.settings.health;
        for place in self.worker_table.places() {
            self.change_health(place, |it, _| it.handle_settings(&health));
        }
        self.recycle.handle_settings(self.settings.recycle);
        self.trim();
        self.turn();
    }

    /// A request arrives. If a slot is free, the request is dispatched; otherwise it waits. The ticket of a dispatched
    /// request identifies nothing.
    ///
    /// # Errors
    /// Returns the payload when the queue is full ([`Cause::Full`]), when the circuit breaker is open or no worker is
    /// available ([`Cause::Down`]), when the fallback is on and no slot is free for the request (the cause that
    /// switched the fallback on), when an operator has switched the fallback on ([`Cause::Fallback`]), when the worker of
    /// its client is gone and the client may have no other ([`Cause::Gone`]), or after
    /// [`handle_drain`](Self::handle_drain) ([`Cause::Draining`]).
    pub fn handle_request(&mut self, now: Instant, payload: P) -> Result<Ticket, Refused<P>> {
        let entry = QueueEntry::of(&payload, now);
        self.handle_entry(now, payload, entry)
    }

    /// Like [`handle_request`](Self::handle_request), for a payload whose traits are already known.
    /// [`Queueable::traits`] is not called.
    ///
    /// # Errors
    /// Like [`handle_request`](Self::handle_request).
    pub fn handle_entry(
        &mut self,
        now: Instant,
        payload: P,
        mut entry: QueueEntry,
    ) -> Result<Ticket, Refused<P>> {
        let at_rest = self.begin(now);
        let all_taken = at_rest && self.is_all_taken();
        entry.info.since = self.now;
        self.backoff.handle_request(self.now, entry.info.client);
        let lane = if self.phase > Phase::Serving {
            Err(Cause::Draining)
        } else if self.fallback.is_by_operator() {
            Err(Cause::Fallback)
        } else {
            self.lane_with_room(&entry)
        };
        let reservations = lane.ok().and_then(|lane| self.reserved_for(&entry, lane));
        let next = match lane {
            Ok(Lane::Bound(_)) if reservations.is_some() => {
                reservations.map(|place| (place, Choice::Bound))
            }
            _ if reservations.is_some() => reservations.map(|place| (place, Choice::Reserved)),
            Ok(Lane::Common) if self.goes_at_once(entry.bytes) => self.secure_next(&entry),
            Ok(Lane::Bound(place)) => self.secure_own(place),
            _ => None,
        };
        let lane = match (lane, self.fallback.reason()) {
            (Err(Cause::Full | Cause::Down), Some(reason)) => Err(reason.cause()),
            // No request waits while the fallback is on.
            (Ok(lane), Some(reason)) if next.is_none() && !self.has_free_slot_for(lane) => {
                Err(reason.cause())
            }
            (lane, _) => lane,
        };
        match (lane, next) {
            (Ok(_), Some(next)) => {
                self.counts.admitted += 1;
                self.give_at_once(next, payload, &entry.info);
                self.turn_after_slot(at_rest);
                Ok(Ticket::SPENT)
            }
            (Ok(lane), None) => {
                self.counts.admitted += 1;
                let ticket = self.wait(payload, entry, lane, false);
                // When many requests arrive together, most of them have no further consequences.
                if all_taken && lane == Lane::Common {
                    self.is_at_rest = true;
                } else {
                    self.turn();
                }
                Ok(ticket)
            }
            (Err(cause), _) => {
                self.counts.refused += 1;
                if self.fallback.state().is_some() {
                    // A rejection while the fallback is on must not keep the fallback on.
                    self.note_refused(&entry.info, cause);
                } else {
                    self.note_refusal(&entry.info, cause);
                }
                // Time may have passed, and timers may be due.
                self.turn();
                Err(Refused { payload, cause })
            }
        }
    }

    /// The answer to a request is no longer needed. Returns the request if it still waits.
    pub fn handle_abandon(&mut self, now: Instant, ticket: Ticket) -> Option<P> {
        // `begin` is not called first: the caller's decision takes precedence over a deadline that has passed in the
        // meantime.
        let payload = self.queue.remove(ticket);
        self.counts.abandoned += u64::from(payload.is_some());
        self.begin(now);
        self.turn();
        payload
    }

    /// A dispatched request never reached its worker. It returns to the head of the queue, so several requests of one
    /// worker must be returned youngest first. No slot is released, and nothing is dispatched yet, because the youngest
    /// request would go first; call [`handle_time`](Self::handle_time) after the last one. If the client itself names a
    /// worker that is gone, and the client may have no other, the request is rejected ([`Cause::Gone`]).
    ///
    /// Its waiting time starts again, but the request is never younger than the requests behind it. Returns the ticket
    /// under which it waits.
    pub fn handle_returned(&mut self, now: Instant, payload: P) -> Ticket {
        let entry = QueueEntry::of(&payload, now);
        self.handle_returned_entry(now, payload, entry, Retry::default())
    }

    /// Like [`handle_returned`](Self::handle_returned), for a payload whose traits are already known.
    /// [`Queueable::traits`] is not called. `retry` is shown by `why`.
    pub fn handle_returned_entry(
        &mut self,
        now: Instant,
        payload: P,
        mut entry: QueueEntry,
        retry: Retry,
    ) -> Ticket {
        self.begin(now);
        entry.info.since = self.now;
        self.counts.returned += 1;
        self.note_return(&entry.info, retry);
        match self.lane_of_returned(&entry) {
            Ok(lane) => self.wait(payload, entry, lane, true),
            Err(cause) => {
                self.refused(payload, &entry.info, cause);
                Ticket::SPENT
            }
        }
    }

    /// Puts a request into a lane. `first`: before all others.
    fn wait(&mut self, payload: P, entry: QueueEntry, lane: Lane, first: bool) -> Ticket {
        let ticket = match lane {
            Lane::Retry => {
                let since = self.queue.oldest().filter(|_| first).unwrap_or(entry.info.since);
                let until = self.patience(since);
                self.queue.push_retry(payload, entry, until, first)
            }
            _ if first => self.queue.push_back_in(payload, entry, lane),
            _ => self.queue.push(payload, entry, lane),
        };
        self.call(lane);
        ticket
    }

    /// A worker is ready.
    pub fn handle_started(&mut self, now: Instant, worker: WorkerId) {
        self.begin(now);
        if let Some(place) = self.moved(worker, Move::Started) {
            let round = self.workers.at(place).round;
            self.backoff.handle_ready(self.now, worker, round);
            self.worker_table.warm_up(place, self.now, self.settings.slow_start);
            self.refresh(place);
            if self.recycle.handle_ready(self.now, place, worker) {
                self.stop_one_due();
            }
            // The worker was removed from the settings while it started. It is stopped, instead of one of the declared
            // workers.
            if !self.worker_table.at(place).is_declared() {
                self.stop_when_idle(place);
            }
            self.trim();
        }
        self.turn();
    }

    /// A worker could not be started. It is gone, and no [`handle_ended`](Self::handle_ended) follows.
    pub fn handle_start_failed(&mut self, now: Instant, worker: WorkerId) {
        self.handle_ended(now, worker, false);
    }

    /// A slot of this worker is free again.
    pub fn handle_released(&mut self, now: Instant, worker: WorkerId) {
        let at_rest = self.begin(now);
        let place = self.workers.find(worker);
        if let Some((place, in_use)) =
            place.and_then(|place| Some((place, self.workers.release(place)?)))
        {
            if self.backoff.needs_answers() {
                let worker = self.workers.at(place);
                if worker.proven {
                    self.backoff.handle_answer(self.now, worker.round);
                }
            }
            self.give_back(place, 1);
            match self.workers.at(place).state {
                State::Ready => {
                    self.refresh_slots(place, in_use);
                    return self.turn_after_slot(at_rest);
                }
                State::Leaving if in_use == 0 => self.stop(place),
                _ => {}
            }
        } else {
            self.counts.stale += 1;
        }
        self.turn();
    }

    /// A worker has started successfully, even if it ends soon. This shows that starts no longer fail.
    pub fn handle_proven(&mut self, now: Instant, worker: WorkerId, proof: Proof) {
        let Some(place) = self.workers.find(worker) else { return };
        let last_client = match proof {
            Proof::Answered => None,
            Proof::Given { client } => Some(client),
        };
        self.workers.prove(place, last_client);
        if self.backoff.needs_answers() {
            self.begin(now);
            let round = self.workers.at(place).round;
            match proof {
                Proof::Answered => self.backoff.handle_answer(self.now, round),
                Proof::Given { .. } => self.backoff.handle_given(round),
            }
            self.turn();
        }
    }

    /// A worker is no longer used, or is ending: it receives no more requests, and the caller is ending it. Its slots
    /// stay in use until they are released or the worker is gone.
    ///
    /// It is replaced immediately if it had reached its minimum uptime. Otherwise it is replaced when it is gone,
    /// because only then it is known whether it failed.
    pub fn handle_retired(&mut self, now: Instant, worker: WorkerId) {
        self.begin(now);
        if let Some(place) = self.moved(worker, Move::Retire) {
            self.refresh(place);
            if self.backoff.is_quick(self.workers.at(place).ready_at, self.now) {
                self.workers.leave_undecided(place);
            } else {
                self.backoff.handle_gone(self.now, worker);
            }
        }
        self.turn();
    }

    /// A worker is gone, together with its slots. `expected`: the end was requested, by [`Effect::Stop`] or by the
    /// caller. An unexpected end before the minimum uptime is a failure. It is a crash if the worker had answered a
    /// request or was [proven](Self::handle_proven); otherwise it is a failed start.
    pub fn handle_ended(&mut self, now: Instant, worker: WorkerId, expected: bool) {
        self.begin(now);
        let before = self.workers.find(worker).map(|place| *self.workers.at(place));
        if let Some(place) = self.moved(worker, Move::End)
            && let Some(before) = before
        {
            self.give_back(place, before.in_use);
            self.refresh(place);
            self.recycle.handle_gone(place, worker);
            let quick = match before.state {
                State::Retiring => before.undecided,
                State::Stopping => false,
                _ => self.backoff.is_quick(before.ready_at, self.now),
            };
            if quick && !expected {
                self.counts.failures += 1;
                if before.proven {
                    self.backoff.note_crash_client(self.now, before.last_client);
                    let backoff = &self.backoff;
                    let others_wait = backoff.is_slow()
                        && self.queue.any(|info| !backoff.has_crashed(info.client));
                    self.backoff.handle_crash(self.now, worker, others_wait);
                } else {
                    self.backoff.handle_failure(self.now, worker, before.round);
                }
            } else {
                self.backoff.handle_gone(self.now, worker);
            }
        }
        self.turn();
    }

    /// Reports the memory that a ready worker occupies now, in bytes.
    pub fn handle_memory(&mut self, now: Instant, worker: WorkerId, bytes: u64) {
        self.begin(now);
        let place = self.workers.find(worker);
        if let Some(place) = place.filter(|place| self.workers.at(*place).state == State::Ready) {
            self.recycle.handle_memory(place, bytes);
        }
        self.turn();
    }

    /// All current workers are replaced, a share of them at a time. Each worker serves until its replacement is ready.
    pub fn handle_recycle(&mut self, now: Instant) {
        self.begin(now);
        let of = |state| {
            let all = self.workers.all();
            all.filter(move |(_, worker)| worker.state == state).map(|(place, _)| place)
        };
        let starting = of(State::Starting).map(|place| self.workers.id(place));
        self.recycle.handle_all(of(State::Ready), starting);
        self.turn();
    }

    /// From now on, new requests are rejected with [`Cause::Draining`]. Waiting requests are still served, and batches
    /// are dispatched without waiting for more requests.
    pub fn handle_drain(&mut self, now: Instant) {
        self.begin(now);
        self.phase = self.phase.max(Phase::Draining);
        self.turn();
    }

    /// From now on, no worker is started, and every idle worker is stopped. Waiting requests are served while workers
    /// remain.
    pub fn handle_stop(&mut self, now: Instant) {
        self.begin(now);
        self.phase = Phase::Stopping;
        self.turn();
    }

    /// The time [`next_time`](Self::next_time) has come.
    pub fn handle_time(&mut self, now: Instant) {
        self.begin(now);
        self.turn();
    }

    /// Returns since when the oldest request waits.
    #[must_use]
    pub fn oldest(&self) -> Option<Instant> {
        self.queue.oldest()
    }

    /// Rejects the oldest request, because memory is short. Returns the bytes that it held.
    pub fn reject_oldest(&mut self, now: Instant, cause: Cause) -> Option<usize> {
        self.begin(now);
        self.queue.oldest()?;
        let before = self.queue.bytes();
        self.refuse(cause);
        let bytes = before.saturating_sub(self.queue.bytes());
        self.turn();
        Some(bytes)
    }

    /// Returns the next effect. Call it after every event until it returns `None`.
    pub fn poll_effect(&mut self) -> Option<Effect<P>> {
        self.effects.pop_front()
    }

    /// Applies a move to a worker. Returns `None` if the worker is gone or its state does not allow the move. This is
    /// counted as stale, except when it only repeats that a worker is ending.
    fn moved(&mut self, worker: WorkerId, event: Move) -> Option<u32> {
        let place = self.workers.find(worker);
        let moved = place.filter(|place| self.workers.apply(*place, event, self.now).is_some());
        let again = place.is_some() && event == Move::Retire;
        self.counts.stale += u64::from(moved.is_none() && !again);
        moved
    }
}
