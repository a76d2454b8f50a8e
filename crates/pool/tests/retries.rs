//! Retries: a worker that has failed a request receives it again only if no other worker may have it. Random operations
//! in virtual time against a naive model of all workers.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "balance/random.rs"]
#[allow(dead_code, reason = "others draw other things")]
mod random;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use exchange::{Cause, WorkerId, WorkerIndex};
use pool::{
    AdminState, AffinityLimits, Control, Effect, Failed, Gone, Member, Pool, QueueEntry,
    QueueLimits, Queueable, RequestTraits, Retry, Schedule, Settings, Sticky,
};
use random::Random;

const WAIT: Duration = Duration::from_secs(8);
const PATIENCE: Duration = Duration::from_secs(1);
/// Fewer than the pool examines.
const JOBS_MAX: usize = 14;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A request as the pool has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    id: u64,
    named: Option<u64>,
}

impl Queueable for Job {
    fn bytes(&self) -> usize {
        1
    }

    fn traits(&self) -> RequestTraits<'_> {
        RequestTraits { id: self.id, named: self.named, ..RequestTraits::default() }
    }
}

/// The state of a request that is not finished.
#[derive(Clone, Debug)]
struct Known {
    job: Job,
    /// The place of the worker that it names.
    own: Option<u32>,
    /// The places that have failed it, in their order.
    failed: Vec<u32>,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Until when the request waits for another worker; whether meanwhile there was no other worker, or its own did not
    /// serve.
    Queue {
        until: Instant,
        alone: bool,
        lost: bool,
    },
    Worker(WorkerId),
}

struct World {
    random: Random,
    now: Instant,
    settings: Settings,
    pool: Pool<Job>,
    /// For each worker: whether it serves bound clients, whether it serves any client, and its slots in use.
    places: Vec<(bool, bool, u32)>,
    /// When each worker last served.
    served: Vec<Instant>,
    known: BTreeMap<u64, Known>,
    asked: u64,
    elsewhere: u64,
    again: u64,
}

fn settings(random: &mut Random) -> Settings {
    let count = 2 + random.number(4);
    let sticky = [Gone::Reschedule, Gone::Refuse][random.pick(2)];
    let limits = AffinityLimits::default();
    Settings {
        slots: 1 + random.number(3),
        schedule: Schedule::ALL[random.pick(Schedule::ALL.len())],
        slots_all: [None, Some(3)][random.pick(2)],
        queue: QueueLimits { length: 100, wait: WAIT, ..QueueLimits::default() },
        members: (0..count).map(|place| Member::new(&format!("s{place}"))).collect(),
        sizing: elastic::Sizing { min: count, max: count, ..elastic::Sizing::default() },
        sticky: Some(Sticky { limits, gone: sticky, shared: false }),
        hold: ms([0, 40][random.pick(2)]),
        ..Settings::default()
    }
}

impl World {
    fn new(seed: u64) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a point to start from")]
        let now = Instant::now();
        let mut random = Random::new(seed);
        let settings = settings(&mut random);
        let places = vec![(true, true, 0); settings.members.len()];
        let served = vec![now; places.len()];
        let pool = Pool::new(settings.clone(), now, seed);
        let known = BTreeMap::new();
        let (asked, elsewhere, again) = (0, 0, 0);
        let mut world =
            Self { random, now, settings, pool, places, served, known, asked, elsewhere, again };
        world.follow();
        world
    }

    fn others(&self, failed: &[u32]) -> Vec<u32> {
        let open = (0..).zip(&self.places).filter(|(place, it)| it.1 && !failed.contains(place));
        open.map(|(place, _)| place).collect()
    }

    fn follow(&mut self) {
        while let Some(effect) = self.pool.poll_effect() {
            match effect {
                Effect::Start { worker } => self.pool.handle_started(self.now, worker),
                Effect::Dispatch { worker, payload, .. } => self.given(worker, payload),
                Effect::Refuse { payload, cause } => self.refused(payload, cause),
                Effect::Stop { .. } | Effect::ToOwner { .. } => unreachable!("nobody asks for it"),
            }
        }
        self.pool.check();
        for (place, served) in self.places.iter().zip(&mut self.served) {
            *served = if place.0 { self.now } else { *served };
        }
        let lost: Vec<_> = self.known.values().map(|known| self.is_lost(known.own)).collect();
        let places = &self.places;
        for (known, is_lost) in self.known.values_mut().zip(lost) {
            let failed = &known.failed;
            let others = (0..).zip(places).any(|(at, it)| it.1 && !failed.contains(&at));
            if let At::Queue { alone, lost, .. } = &mut known.at {
                *alone |= !others;
                *lost |= is_lost;
            }
        }
    }

    /// Whether a worker does not serve, and requests no longer wait for it.
    fn is_lost(&self, own: Option<u32>) -> bool {
        own.is_some_and(|own| {
            let (place, since) = (self.places[own as usize], self.served[own as usize]);
            !place.0 && self.now - since >= self.settings.hold
        })
    }

    /// Checks a dispatch against the naive model.
    fn given(&mut self, worker: WorkerId, job: Job) {
        let place = u32::try_from(worker.index()).unwrap();
        let known = self.known.get(&job.id).expect("nobody is given twice what was asked once");
        let At::Queue { until, alone, lost } = known.at else { panic!("two have it: {known:?}") };
        let others = self.others(&known.failed);
        let told = format!("{known:?} is given to {place}, {:?} of {others:?}", self.places);
        assert!(self.places[place as usize].0, "one that serves: {told}");
        assert!(self.places[place as usize].2 < self.settings.slots, "with a free slot: {told}");
        if known.own != Some(place) {
            let rest = |other: &&u32| self.places[**other as usize].2 < self.settings.slots;
            let better = others.iter().find(rest);
            if known.failed.contains(&place) {
                assert!(better.is_none(), "another is free: {told}");
                let waited = until <= self.now || alone || others.is_empty();
                assert!(waited || known.own.is_some(), "others are waited for: {told}");
            }
        }
        if let Some(own) = known.own.filter(|own| *own != place) {
            let refuses = self.settings.sticky.is_some_and(|sticky| sticky.gone == Gone::Refuse);
            assert!(!refuses, "it may have no other: {told}");
            let times = known.failed.iter().rev().take(3).filter(|other| **other == own).count();
            let left = times >= 2 && self.settings.hold.is_zero();
            assert!(left || lost || self.is_lost(Some(own)), "its own may have it: {told}");
            self.elsewhere += 1;
        }
        self.again += u64::from(!known.failed.is_empty());
        self.places[place as usize].2 += 1;
        self.known.get_mut(&job.id).unwrap().at = At::Worker(worker);
    }

    fn refused(&mut self, job: Job, cause: Cause) {
        let known = self.known.remove(&job.id).expect("nobody is refused twice");
        match cause {
            Cause::Gone => assert!(known.own.is_some(), "{known:?}"),
            Cause::Down => assert!(self.others(&[]).is_empty(), "{known:?}"),
            Cause::Waited => {}
            cause => panic!("{cause:?}: {known:?}"),
        }
    }

    /// Returns the queue entry of a request, which waits from now on.
    fn entry(&mut self, id: u64) -> QueueEntry {
        let others = |known: &Known| !self.others(&known.failed).is_empty();
        let oldest = self.pool.status().oldest.unwrap_or(self.now);
        let known = &self.known[&id];
        let left = WAIT.saturating_sub(self.now - oldest);
        let alone = !others(known);
        let until = self.now + (left / 2).min(PATIENCE);
        let lost = self.is_lost(known.own);
        let known = self.known.get_mut(&id).unwrap();
        known.at = At::Queue { until, alone, lost };
        let mut failed = Failed::default();
        known.failed.iter().for_each(|place| failed.add(WorkerIndex::new(*place), Cause::Died));
        QueueEntry::new(self.now, &known.job.traits(), 1).failed_by(failed)
    }

    fn add_request(&mut self) {
        if self.known.len() >= JOBS_MAX {
            return;
        }
        self.asked += 1;
        let count = self.places.len();
        let own = self.random.pick(count);
        let own = (self.random.pick(3) == 0).then(|| u32::try_from(own).unwrap());
        let named = own.and_then(|own| self.pool.affinity_target_named(&format!("s{own}")));
        let job = Job { id: self.asked, named };
        // Some requests come from a member shard, where other workers have failed them.
        let failed = (0..self.random.pick(3)).map(|_| u32::try_from(self.random.pick(count)));
        let failed: Vec<u32> = failed.map(Result::unwrap).collect();
        let failed = if self.random.pick(4) == 0 { failed } else { Vec::new() };
        let until = self.now;
        let at = At::Queue { until, alone: false, lost: false };
        self.known.insert(job.id, Known { job, own, failed, at });
        let entry = self.entry(job.id);
        if let Err(refused) = self.pool.handle_entry(self.now, job, entry) {
            self.refused(refused.payload, refused.cause);
        }
        self.follow();
    }

    /// A worker answers a request, or fails it.
    fn answer(&mut self, fails: bool) {
        let working = self.known.values().filter_map(|known| match known.at {
            At::Worker(worker) => Some((known.job, worker)),
            At::Queue { .. } => None,
        });
        let working: Vec<_> = working.collect();
        if working.is_empty() {
            return;
        }
        let (job, worker) = working[self.random.pick(working.len())];
        let place = u32::try_from(worker.index()).unwrap();
        self.places[place as usize].2 -= 1;
        // As in a turn of the loop: the slot is free before the request returns.
        self.pool.handle_released(self.now, worker);
        self.known.get_mut(&job.id).unwrap().failed.push(place);
        self.follow();
        if fails {
            let known = self.known.get_mut(&job.id).unwrap();
            let forgotten = known.failed.len().saturating_sub(3);
            known.failed.drain(..forgotten);
            let entry = self.entry(job.id);
            self.pool.handle_returned_entry(self.now, job, entry, Retry::default());
            self.pool.handle_time(self.now);
        } else {
            self.known.remove(&job.id);
        }
        self.follow();
    }

    fn order(&mut self) {
        let place = self.random.pick(self.places.len());
        let hand =
            [AdminState::Enabled, AdminState::Enabled, AdminState::Drained, AdminState::Disabled];
        let hand = hand[self.random.pick(hand.len())];
        self.places[place].0 = hand != AdminState::Disabled;
        self.places[place].1 = hand == AdminState::Enabled;
        self.pool.handle_control(self.now, &format!("s{place}"), Control::AdminState(hand));
        self.follow();
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.pool.next_time().is_some_and(|at| at <= self.now) {
            self.pool.handle_time(self.now);
            self.follow();
        }
    }

    fn step(&mut self) {
        match self.random.pick(100) {
            0..35 => self.add_request(),
            35..60 => self.answer(false),
            60..85 => self.answer(true),
            85..92 => self.order(),
            92..99 => {
                let time = ms(self.random.below(60));
                self.pass(time);
            }
            _ => self.pass(ms(1500)),
        }
    }
}

#[test]
fn whoever_has_failed_a_request_has_it_again_only_where_nobody_else_may() {
    let (mut again, mut elsewhere) = (0, 0);
    for seed in 0..400 {
        let mut world = World::new(seed);
        for _ in 0..500 {
            world.step();
        }
        for place in 0..world.places.len() {
            world.places[place] = (true, true, world.places[place].2);
            let name = format!("s{place}");
            world.pool.handle_control(world.now, &name, Control::AdminState(AdminState::Enabled));
            world.follow();
        }
        while !world.known.is_empty() {
            world.answer(false);
        }
        assert!(world.pool.is_idle(), "seed {seed}");
        again += world.again;
        elsewhere += world.elsewhere;
    }
    assert!(again > 10_000 && elsewhere > 100, "{again} again, {elsewhere} elsewhere");
}

/// One worker with two slots and one that stalls: a request that the first has failed waits for the other, although the
/// first is free. Later requests do not wait for it.
#[test]
fn nobody_waits_behind_a_retry_and_it_does_not_wait_for_ever() {
    #[expect(clippy::disallowed_methods, reason = "a point to start from")]
    let now = Instant::now();
    let settings = Settings {
        slots: 1,
        queue: QueueLimits { wait: WAIT, ..QueueLimits::default() },
        members: vec![Member::new("a"), Member::new("b")],
        sizing: elastic::Sizing { min: 2, max: 2, ..elastic::Sizing::default() },
        schedule: Schedule::First,
        ..Settings::default()
    };
    let mut pool = Pool::new(settings, now, 1);
    let given = |pool: &mut Pool<Job>| {
        let mut given = Vec::new();
        while let Some(effect) = pool.poll_effect() {
            match effect {
                Effect::Start { worker } => pool.handle_started(now, worker),
                Effect::Dispatch { worker, payload, .. } => given.push((payload.id, worker)),
                other => panic!("{other:?}"),
            }
        }
        given
    };
    given(&mut pool);
    let job = |id| Job { id, named: None };
    for id in [1, 2] {
        assert!(pool.handle_request(now, job(id)).is_ok());
    }
    let [(1, a), (2, b)] = given(&mut pool)[..] else { panic!("one each") };
    assert_eq!((a.index(), b.index()), (0, 1));
    let mut failed = Failed::default();
    failed.add(WorkerIndex::new(0), Cause::Died);
    pool.handle_released(now, a);
    let entry = QueueEntry::new(now, &job(1).traits(), 1).failed_by(failed);
    pool.handle_returned_entry(now, job(1), entry, Retry::default());
    pool.handle_time(now);
    assert_eq!(given(&mut pool), [], "it waits for the other");
    assert!(pool.handle_request(now, job(3)).is_ok());
    assert_eq!(given(&mut pool), [(3, a)], "others do not");
    pool.handle_released(now, a);
    assert_eq!(pool.next_time(), Some(now + PATIENCE));
    pool.handle_time(now + PATIENCE);
    assert_eq!(given(&mut pool), [(1, a)], "nobody else came free in its time");
}
