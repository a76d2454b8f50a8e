//! The workers of a pool and their states.
//!
//! ```text
//!            Started          Leave              Stop
//!  Starting ─────────► Ready ───────► Leaving ─────────► Stopping
//!      │                │ │ Stop          │              ▲     │
//!      │                │ └───────────────┼──────────────┘     │
//!      │ Retire         │ Retire          │ Retire             │
//!      ▼                ▼                 ▼                    │
//!      └───────────► Retiring ◄───────────┘                    │
//!      │ End            │ End (also from Ready and Leaving)    │ End
//!      ▼                ▼                                      ▼
//!                     Vacant, and the place may be used again
//! ```
//!
//! *Leaving*: slots are still in use. The worker is stopped when the last slot is free, unless it is needed again
//! before (`Stay`). *Stopping*: the worker was asked to stop. *Retiring*: the caller is ending the worker.

use std::time::Instant;

use exchange::WorkerId;

use crate::list::{Links, List};

/// The state of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No worker has this place.
    Vacant,
    /// The worker was started and is not ready yet.
    Starting,
    /// The worker receives requests.
    Ready,
    /// The worker receives no more requests. It is stopped when its slots are free.
    Leaving,
    /// The worker is idle and was asked to stop.
    Stopping,
    /// The worker receives no more requests. The caller is ending it.
    Retiring,
}

/// A transition of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// The worker is ready.
    Started,
    /// The worker is surplus, but has requests in flight.
    Leave,
    /// The worker is needed after all.
    Stay,
    /// The worker is asked to stop.
    Stop,
    /// The caller is ending the worker.
    Retire,
    /// The worker is gone.
    End,
}

impl State {
    /// The table of transitions; `None` for a transition that is not allowed.
    pub(crate) const fn after(self, event: Move) -> Option<Self> {
        match (self, event) {
            (Self::Vacant, _) => None,
            (_, Move::End) => Some(Self::Vacant),
            (Self::Starting, Move::Started) => Some(Self::Ready),
            (Self::Starting | Self::Ready | Self::Leaving, Move::Retire) => Some(Self::Retiring),
            (Self::Ready, Move::Leave) => Some(Self::Leaving),
            (Self::Leaving, Move::Stay) => Some(Self::Ready),
            (Self::Ready | Self::Leaving, Move::Stop) => Some(Self::Stopping),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Worker {
    generation: u32,
    pub(crate) state: State,
    /// Slots in use.
    pub(crate) in_use: u32,
    /// When the worker became ready.
    pub(crate) ready_at: Option<Instant>,
    /// The round of the back-off in which the worker was started.
    pub(crate) round: u32,
    /// The worker was retired before its minimum uptime. Whether that was a failure is decided when it is gone.
    pub(crate) undecided: bool,
    /// The worker has answered a request, or the caller reported that its start succeeded, even if it ends soon.
    pub(crate) proven: bool,
    /// The client whose request the worker had when it ended, if the caller has reported it.
    pub(crate) last_client: Option<u64>,
}

impl Worker {
    const fn new(generation: u32, state: State, round: u32) -> Self {
        Self {
            generation,
            state,
            in_use: 0,
            ready_at: None,
            round,
            undecided: false,
            proven: false,
            last_client: None,
        }
    }
}

/// All workers of a pool, and the number of workers in each state.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    table: Vec<Worker>,
    vacant: Vec<u32>,
    /// Ready workers with no slot in use. The one that has been idle longest is first.
    idle: List,
    links: Links,
    starting: u32,
    ready: u32,
    ending: u32,
    undecided: u32,
    slots_in_use: u32,
}

impl Workers {
    pub(crate) const fn starting(&self) -> u32 {
        self.starting
    }

    pub(crate) const fn ready(&self) -> u32 {
        self.ready
    }

    pub(crate) const fn idle(&self) -> u32 {
        self.idle.length()
    }

    pub(crate) const fn busy(&self) -> u32 {
        self.ready - self.idle.length()
    }

    /// The number of workers that receive no more requests and are not gone.
    pub(crate) const fn ending(&self) -> u32 {
        self.ending
    }

    /// The number of those that were retired before their minimum uptime.
    pub(crate) const fn undecided(&self) -> u32 {
        self.undecided
    }

    pub(crate) const fn slots_in_use(&self) -> u32 {
        self.slots_in_use
    }

    /// The worker that has been idle longest.
    pub(crate) const fn longest_idle(&self) -> Option<u32> {
        self.idle.first()
    }

    /// Returns a ready worker with the fewest slots in use. It examines all workers.
    pub(crate) fn least_busy(&self) -> Option<u32> {
        let ready = self.all().filter(|(_, worker)| worker.state == State::Ready);
        ready.min_by_key(|(_, worker)| worker.in_use).map(|(place, _)| place)
    }

    /// All workers that are not gone.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &Worker)> {
        (0..).zip(&self.table).filter(|(_, worker)| worker.state != State::Vacant)
    }

    pub(crate) fn at(&self, place: u32) -> &Worker {
        &self.table[place as usize]
    }

    /// Returns the place of a worker that is not gone.
    pub(crate) fn find(&self, id: WorkerId) -> Option<u32> {
        let worker = self.table.get(id.index())?;
        let alive = worker.generation == id.generation() && worker.state != State::Vacant;
        alive.then(|| u32::try_from(id.index()).expect("an id is made of 32 bits"))
    }

    pub(crate) fn id(&self, place: u32) -> WorkerId {
        WorkerId::new(place, self.at(place).generation)
    }

    /// Whether no worker has this place.
    pub(crate) fn is_vacant(&self, place: u32) -> bool {
        self.table.get(place as usize).is_none_or(|worker| worker.state == State::Vacant)
    }

    /// Adds a worker, which is starting, at a vacant place.
    pub(crate) fn add_at(&mut self, place: u32, round: u32) {
        while self.table.len() <= place as usize {
            let vacant = u32::try_from(self.table.len()).expect("a place has 32 bits");
            self.table.push(Worker::new(0, State::Vacant, 0));
            self.links.cover(vacant);
            self.vacant.push(vacant);
        }
        // `add` takes the last place of this list.
        self.vacant.retain(|other| *other != place);
        self.vacant.push(place);
        let added = self.add(round);
        assert_eq!(added, place, "the place was vacant");
    }

    /// Adds a worker, which is starting.
    pub(crate) fn add(&mut self, round: u32) -> u32 {
        let new = Worker::new(0, State::Starting, round);
        self.starting += 1;
        if let Some(place) = self.vacant.pop() {
            let generation = self.at(place).generation;
            self.table[place as usize] = Worker { generation, ..new };
            return place;
        }
        let place = u32::try_from(self.table.len()).expect("`max` fits into 32 bits");
        self.table.push(new);
        self.links.cover(place);
        place
    }

    /// Applies a transition, if the table allows it.
    pub(crate) fn apply(&mut self, place: u32, event: Move, now: Instant) -> Option<State> {
        let worker = self.table[place as usize];
        let after = worker.state.after(event)?;
        if worker.state == State::Ready && worker.in_use == 0 {
            self.idle.remove(&mut self.links, place);
        }
        self.count(worker.state, u32::wrapping_sub);
        self.count(after, u32::wrapping_add);
        let changed = &mut self.table[place as usize];
        changed.state = after;
        match after {
            // The worker returns from `Leaving` with slots in use.
            State::Ready if event == Move::Stay => {}
            State::Ready => {
                changed.ready_at = Some(now);
                self.idle.push_last(&mut self.links, place);
            }
            State::Vacant => {
                self.slots_in_use -= worker.in_use;
                self.undecided -= u32::from(worker.undecided);
                changed.in_use = 0;
                changed.undecided = false;
                changed.generation = worker.generation.wrapping_add(1);
                self.vacant.push(place);
            }
            State::Starting | State::Leaving | State::Stopping | State::Retiring => {}
        }
        Some(after)
    }

    /// Records that it is decided when this worker is gone whether its retirement was a failure.
    pub(crate) fn leave_undecided(&mut self, place: u32) {
        let worker = &mut self.table[place as usize];
        assert_eq!(worker.state, State::Retiring, "only a retirement can be undecided");
        self.undecided += u32::from(!worker.undecided);
        worker.undecided = true;
    }

    /// Marks one more slot of a ready worker as used.
    pub(crate) fn occupy(&mut self, place: u32) -> u32 {
        let worker = &mut self.table[place as usize];
        assert_eq!(worker.state, State::Ready, "only a ready worker is given work");
        if worker.in_use == 0 {
            self.idle.remove(&mut self.links, place);
        }
        worker.in_use += 1;
        self.slots_in_use += 1;
        worker.in_use
    }

    /// Marks one slot as free. Returns `None` if no slot was in use.
    pub(crate) fn release(&mut self, place: u32) -> Option<u32> {
        let worker = &mut self.table[place as usize];
        worker.in_use = worker.in_use.checked_sub(1)?;
        worker.proven |= matches!(worker.state, State::Ready | State::Leaving);
        self.slots_in_use -= 1;
        let in_use = worker.in_use;
        if in_use == 0 && worker.state == State::Ready {
            self.idle.push_last(&mut self.links, place);
        }
        Some(in_use)
    }

    /// Records that the start of the worker succeeded.
    pub(crate) fn prove(&mut self, place: u32, last_client: Option<u64>) {
        let proven = &mut self.table[place as usize];
        proven.proven = true;
        proven.last_client = last_client;
    }

    fn count(&mut self, state: State, change: fn(u32, u32) -> u32) {
        let count = match state {
            State::Vacant => return,
            State::Starting => &mut self.starting,
            State::Ready => &mut self.ready,
            State::Leaving | State::Stopping | State::Retiring => &mut self.ending,
        };
        *count = change(*count, 1);
    }

    /// Checks every invariant.
    pub(crate) fn check(&self) {
        let (mut starting, mut ready, mut ending) = (0, 0, 0);
        let (mut in_use, mut idle, mut undecided) = (0, 0, 0);
        for (place, worker) in self.all() {
            in_use += worker.in_use;
            undecided += u32::from(worker.undecided);
            match worker.state {
                State::Vacant => {}
                State::Starting => starting += 1,
                State::Ready => ready += 1,
                State::Leaving => {
                    ending += 1;
                    assert!(worker.in_use > 0, "a worker that leaves has something to do");
                }
                State::Stopping => {
                    ending += 1;
                    assert_eq!(worker.in_use, 0, "only an idle worker is told to stop");
                }
                State::Retiring => ending += 1,
            }
            let rests = worker.state == State::Ready && worker.in_use == 0;
            assert_eq!(self.links.holds(place), rests, "the idle list holds who is idle");
            idle += u32::from(rests);
            let was_ready = !matches!(worker.state, State::Starting | State::Retiring);
            assert!(!was_ready || worker.ready_at.is_some(), "a ready worker knows since when");
        }
        assert_eq!(
            (starting, ready, ending, undecided),
            (self.starting, self.ready, self.ending, self.undecided),
            "workers are counted"
        );
        assert_eq!(
            (in_use, idle),
            (self.slots_in_use, self.idle.length()),
            "slots and idle workers are counted"
        );
        assert_eq!(self.idle.iter(&self.links).count(), idle as usize, "the idle list is whole");
        let alive = self.all().count();
        assert_eq!(self.table.len(), alive + self.vacant.len(), "other places are vacant");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table_of_moves() {
        let states = [
            State::Vacant,
            State::Starting,
            State::Ready,
            State::Leaving,
            State::Stopping,
            State::Retiring,
        ];
        let moves = [Move::Started, Move::Leave, Move::Stay, Move::Stop, Move::Retire, Move::End];
        let mut table = String::new();
        for state in states {
            let row: Vec<_> = moves
                .iter()
                .map(|event| {
                    state.after(*event).map_or_else(|| "-".to_owned(), |to| format!("{to:?}"))
                })
                .collect();
            table += &format!("{state:?}: {}\n", row.join(" "));
        }
        let expected = "\
Vacant: - - - - - -
Starting: Ready - - - Retiring Vacant
Ready: - Leaving - Stopping Retiring Vacant
Leaving: - - Ready Stopping Retiring Vacant
Stopping: - - - - - Vacant
Retiring: - - - - - Vacant
";
        assert_eq!(table, expected);
    }

    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn an_id_names_nothing_once_its_worker_is_gone_even_when_the_place_is_taken_again() {
        let mut workers = Workers::default();
        let place = workers.add(0);
        let old = workers.id(place);
        assert_eq!(workers.apply(place, Move::End, start()), Some(State::Vacant));
        assert_eq!(workers.find(old), None);
        let again = workers.add(0);
        assert_eq!(again, place);
        assert_eq!(workers.find(old), None);
        assert_eq!(workers.find(workers.id(again)), Some(again));
        workers.check();
    }

    #[test]
    fn slots_of_a_worker_vanish_with_it() {
        let mut workers = Workers::default();
        let place = workers.add(0);
        workers.apply(place, Move::Started, start());
        workers.occupy(place);
        workers.occupy(place);
        workers.check();
        assert_eq!((workers.busy(), workers.slots_in_use()), (1, 2));
        workers.apply(place, Move::Retire, start());
        workers.check();
        assert_eq!((workers.ready(), workers.ending(), workers.slots_in_use()), (0, 1, 2));
        assert_eq!(workers.release(place), Some(1));
        workers.apply(place, Move::End, start());
        workers.check();
        assert_eq!((workers.ending(), workers.slots_in_use()), (0, 0));
    }

    #[test]
    fn more_releases_than_slots_are_noticed() {
        let mut workers = Workers::default();
        let place = workers.add(0);
        workers.apply(place, Move::Started, start());
        assert_eq!(workers.release(place), None);
        workers.occupy(place);
        assert_eq!(workers.release(place), Some(0));
        assert_eq!(workers.release(place), None);
        workers.check();
    }
}
