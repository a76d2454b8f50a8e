//! The machine: events in, effects out.
//!
//! Every `handle_*` does what the event says, then what follows from it (`turn`): who is
//! dispatched, who waited too long, who is started and who is stopped. Afterwards nothing is
//! left to do before the next event or [`next_time`](Pool::next_time).

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
use crate::health::{Ejected, HealthChange};
use crate::queue::{Lane, Queue, QueueEntry, Ticket};
use crate::random::{Random, mix};
use crate::recycle::Recycle;
use crate::schedule::{Capacity, Choice, Free};
use crate::settings::Settings;
use crate::sorry::Sorry;
use crate::status::Counts;
use crate::why::Decisions;
use crate::worker_table::WorkerTable;
use crate::workers::{Move, State, Workers};

use reservations::Reservations;
use shared::Shared;
use slot_states::SlotStates;

/// How far a pool is on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Takes requests.
    Serving,
    /// Takes no more requests; serves what waits.
    Draining,
    /// Starts nobody; stops who has nothing to do.
    Stopping,
}

/// One pool: who answers, who waits, who is refused.
///
/// After every `handle_*`, drain [`poll_effect`](Self::poll_effect) until it gives nothing, and
/// call [`handle_time`](Self::handle_time) when [`next_time`](Self::next_time) has come. The time
/// never goes back; an earlier `now` counts as the latest one.
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
    free: Free,
    affinity: Option<Affinity>,
    sorry: Sorry,
    ejected: Ejected,
    /// Since when nobody who runs is fit to answer.
    unfit_since: Option<Instant>,
    policy: Policy,
    backoff: Backoff,
    random: Random,
    decisions: Decisions,
    recycle: Recycle,
    effects: VecDeque<Effect<P>>,
    health_changes: VecDeque<HealthChange>,
    counts: Counts,
    /// Something has happened since the next time was looked for.
    is_changed: bool,
    /// All that followed from what happened up to `now` was done.
    is_at_rest: bool,
    next_time: Option<Instant>,
    /// Where other shards serve it as well.
    shared: Option<Box<Shared>>,
}

fn capacity(settings: &Settings) -> Capacity {
    let weights = |sum: u64, member: &crate::Member| sum + u64::from(member.weight);
    match settings.members.len() as u64 {
        0 => Capacity::new(settings.sizing.most().into(), settings.sizing.most().into()),
        members => Capacity::new(members, settings.members.iter().fold(0, weights)),
    }
}

impl<P: Queueable> Pool<P> {
    /// A pool without workers, which wants its `min` of them at once. Numbers outside their range
    /// are brought into it. The seed decides the jitter of the back-off.
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
            free: Free::new(settings.schedule, capacity(&settings)),
            affinity: None,
            sorry: Sorry::default(),
            ejected: Ejected::default(),
            unfit_since: None,
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

    /// Other settings from now on. What waits goes on waiting, also beyond a lower limit; workers
    /// beyond a lower `max`, and those that are no longer declared, get nothing more and stop when
    /// they have nothing to do. Who is bound stays bound, and what was set by hand stays set.
    pub fn handle_settings(&mut self, now: Instant, settings: Settings) {
        self.begin(now);
        self.settings = settings.within_limits();
        self.policy.handle_sizing(self.settings.sizing);
        self.backoff.handle_settings(self.settings.backoff);
        self.declare();
        let health = self.settings.health;
        for place in self.worker_table.places() {
            self.fitness(place, |it, _| it.handle_settings(&health));
        }
        self.recycle.handle_settings(self.settings.recycle);
        self.trim();
        self.turn();
    }

    /// A request arrives. It is dispatched if a slot is free for it, and waits otherwise; the
    /// ticket of one that was dispatched names nothing.
    ///
    /// # Errors
    /// Gives the payload back when the queue holds as much as it may ([`Cause::Full`]), when the
    /// circuit is open or no worker is fit ([`Cause::Down`]), when the fallback is on and no slot is
    /// free for it (the cause that switched it on), when an operator switched the fallback on
    /// ([`Cause::Sorry`]), when its client may have no other worker than
    /// one that is gone ([`Cause::Gone`]), or after [`handle_drain`](Self::handle_drain)
    /// ([`Cause::Draining`]).
    pub fn handle_request(&mut self, now: Instant, payload: P) -> Result<Ticket, Refused<P>> {
        let entry = QueueEntry::of(&payload, now);
        self.handle_entry(now, payload, entry)
    }

    /// The same for a payload whose wishes are known already: it is not asked.
    ///
    /// # Errors
    /// As of [`handle_request`](Self::handle_request).
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
        } else if self.sorry.is_by_hand() {
            Err(Cause::Sorry)
        } else {
            self.lane_with_room(&entry)
        };
        let reservations = lane.ok().and_then(|lane| self.kept_for(&entry, lane));
        let next = match lane {
            Ok(Lane::Bound(_)) if reservations.is_some() => {
                reservations.map(|place| (place, Choice::Bound))
            }
            _ if reservations.is_some() => reservations.map(|place| (place, Choice::Reserved)),
            Ok(Lane::Common) if self.goes_at_once(entry.bytes) => self.secure_next(&entry),
            Ok(Lane::Bound(place)) => self.secure_own(place),
            _ => None,
        };
        let lane = match (lane, self.sorry.reason()) {
            (Err(Cause::Full | Cause::Down), Some(reason)) => Err(reason.cause()),
            // Nobody waits in the fallback.
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
                // Of many that come at once nothing more is to be done for most.
                if all_taken && lane == Lane::Common {
                    self.is_at_rest = true;
                } else {
                    self.turn();
                }
                Ok(ticket)
            }
            (Err(cause), _) => {
                self.counts.refused += 1;
                if self.sorry.state().is_some() {
                    // That it is sorry is no reason to stay so.
                    self.note_refused(&entry.info, cause);
                } else {
                    self.note_refusal(&entry.info, cause);
                }
                // Time may have passed, and with it something become due.
                self.turn();
                Err(Refused { payload, cause })
            }
        }
    }

    /// Nobody wants the answer to this request any more. Gives it back if it still waits.
    pub fn handle_abandon(&mut self, now: Instant, ticket: Ticket) -> Option<P> {
        // Not `begin`: what is asked for wins over a deadline that passed unnoticed.
        let payload = self.queue.remove(ticket);
        self.counts.abandoned += u64::from(payload.is_some());
        self.begin(now);
        self.turn();
        payload
    }

    /// A request that was dispatched never reached its worker. It goes to the head of the queue,
    /// so several of one worker are returned youngest first. Nothing is released by this, and
    /// nothing is dispatched, so that the youngest does not go first: after the last of them
    /// comes [`handle_time`](Self::handle_time). One whose client says itself that it is bound to a
    /// worker that is gone, and may have no other, is refused ([`Cause::Gone`]).
    ///
    /// Its age starts anew, but it is never younger than who stands behind it. Gives the ticket
    /// under which it waits.
    pub fn handle_returned(&mut self, now: Instant, payload: P) -> Ticket {
        let entry = QueueEntry::of(&payload, now);
        self.handle_returned_entry(now, payload, entry, Retry::default())
    }

    /// The same for a payload whose wishes are known already: it is not asked. `retry` is for `why`.
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

    /// A request waits in a lane; `first`: before all others.
    fn wait(&mut self, payload: P, entry: QueueEntry, lane: Lane, first: bool) -> Ticket {
        let ticket = match lane {
            Lane::Retry => {
                let since = self.queue.oldest().filter(|_| first).unwrap_or(entry.info.since);
                let until = self.patience(since);
                self.queue.push_again(payload, entry, until, first)
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
                self.let_one_go();
            }
            // It was taken out while it started: it goes, and not one of those that are wanted.
            if !self.worker_table.at(place).is_declared() {
                self.let_go(place);
            }
            self.trim();
        }
        self.turn();
    }

    /// A worker could not be started. It is gone, and no [`handle_ended`](Self::handle_ended)
    /// follows.
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
            if self.backoff.heeds_answers() {
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

    /// The start of a worker has not failed, however soon it ends: starts do not fail any more.
    pub fn handle_proven(&mut self, now: Instant, worker: WorkerId, proof: Proof) {
        let Some(place) = self.workers.find(worker) else { return };
        let asker = match proof {
            Proof::Answered => None,
            Proof::Given { client } => Some(client),
        };
        self.workers.prove(place, asker);
        if self.backoff.heeds_answers() {
            self.begin(now);
            let round = self.workers.at(place).round;
            match proof {
                Proof::Answered => self.backoff.handle_answer(self.now, round),
                Proof::Given { .. } => self.backoff.handle_given(round),
            }
            self.turn();
        }
    }

    /// A worker is not trusted any more, or ends: it gets nothing more, and its owner is ending
    /// it. Its slots stay in use until they are released or it is gone.
    ///
    /// It is replaced at once, unless it had not settled: then only when it is gone, for only
    /// then is known whether it failed.
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

    /// A worker is gone, and its slots with it. `expected`: its end was asked for, by
    /// [`Effect::Stop`] or by its owner; otherwise it is a failure if it had not settled: a failed
    /// start, or a crash if it had answered a request or was [proven](Self::handle_proven).
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
                    self.backoff.note_asker(self.now, before.asker);
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

    /// A ready worker occupies so many bytes of memory now.
    pub fn handle_memory(&mut self, now: Instant, worker: WorkerId, bytes: u64) {
        self.begin(now);
        let place = self.workers.find(worker);
        if let Some(place) = place.filter(|place| self.workers.at(*place).state == State::Ready) {
            self.recycle.handle_memory(place, bytes);
        }
        self.turn();
    }

    /// Every worker that is there now is to be replaced, a share of them at once; each serves until
    /// another is ready in its place.
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

    /// From now on requests are refused with [`Cause::Draining`]. What waits is still served, and
    /// batches leave without waiting for more.
    pub fn handle_drain(&mut self, now: Instant) {
        self.begin(now);
        self.phase = self.phase.max(Phase::Draining);
        self.turn();
    }

    /// Nobody is started any more, and every worker that has nothing to do is stopped. What still
    /// waits is served as long as a worker lives.
    pub fn handle_stop(&mut self, now: Instant) {
        self.begin(now);
        self.phase = Phase::Stopping;
        self.turn();
    }

    /// [`next_time`](Self::next_time) has come.
    pub fn handle_time(&mut self, now: Instant) {
        self.begin(now);
        self.turn();
    }

    /// Since when the request waits that has waited longest.
    #[must_use]
    pub fn oldest(&self) -> Option<Instant> {
        self.queue.oldest()
    }

    /// Rejects the request that has waited longest, and returns its bytes: there is no memory for it.
    pub fn reject_oldest(&mut self, now: Instant, cause: Cause) -> Option<usize> {
        self.begin(now);
        self.queue.oldest()?;
        let before = self.queue.bytes();
        self.refuse(cause);
        let bytes = before.saturating_sub(self.queue.bytes());
        self.turn();
        Some(bytes)
    }

    /// What must be done next; drain it after every event.
    pub fn poll_effect(&mut self) -> Option<Effect<P>> {
        self.effects.pop_front()
    }

    /// Moves a worker. None when it is gone or its state does not allow it, which is counted
    /// unless it only says again that a worker ends.
    fn moved(&mut self, worker: WorkerId, event: Move) -> Option<u32> {
        let place = self.workers.find(worker);
        let moved = place.filter(|place| self.workers.apply(*place, event, self.now).is_some());
        let again = place.is_some() && event == Move::Retire;
        self.counts.stale += u64::from(moved.is_none() && !again);
        moved
    }
}
