//! One pool on several shards, with delayed mail between them: an owner shard and its member shards, checked against
//! what each server receives from all of them together.

#[path = "balance/random.rs"]
#[allow(dead_code, reason = "others draw other things")]
mod random;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::{Cause, WorkerId, WorkerIndex};
use pool::{
    AdminState, Control, Effect, Failed, FallbackSettings, Member, Pool, PoolUpdate, QueueEntry,
    QueueLimits, Queueable, RequestTraits, Retry, Schedule, Settings, Tokens,
};
use random::Random;

const PLACES: u32 = 3;
/// The number of servers that may exist at some time.
const NAMES: u32 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    id: u64,
    named: Option<u64>,
    failed: Failed,
}

impl Queueable for Job {
    fn bytes(&self) -> usize {
        1
    }

    fn traits(&self) -> RequestTraits<'_> {
        RequestTraits { id: self.id, named: self.named, ..RequestTraits::default() }
    }
}

impl Job {
    fn entry(&self, now: Instant) -> QueueEntry {
        QueueEntry::new(now, &self.traits(), self.bytes()).failed_by(self.failed)
    }
}

enum Mail {
    /// To the owner shard.
    Request(Job),
    Token(WorkerIndex),
    /// From the owner shard.
    PoolUpdate(Arc<PoolUpdate>),
    /// To all shards.
    Reload(Arc<Reload>),
}

/// New servers, with new slots.
struct Reload {
    settings: Settings,
    words: Vec<Arc<Tokens>>,
    slots: Vec<u32>,
}

/// A request in flight to a server.
struct InHand {
    shard: usize,
    worker: WorkerId,
    job: Job,
}

struct World {
    random: Random,
    now: Instant,
    settings: Settings,
    words: Vec<Arc<Tokens>>,
    /// The name and the slots of each server, by place.
    names: Vec<String>,
    slots: Vec<u32>,
    /// The maximum number of requests in flight to each server. Requests above its slots remain only until they are
    /// answered.
    most: Vec<usize>,
    /// The number of shards that have not applied the last reload.
    reloading: usize,
    /// The first one is the owner shard.
    pools: Vec<Pool<Job>>,
    /// Mail from each member shard to the owner shard, and from the owner shard to each member shard.
    up: Vec<VecDeque<Mail>>,
    down: Vec<VecDeque<Mail>>,
    in_hand: Vec<InHand>,
    /// Servers of the owner shard that end as soon as they are idle.
    ending: Vec<WorkerId>,
    asked: u64,
    given: u64,
    refused: u64,
    at_branches: u64,
}

fn settings(random: &mut Random, slots: u32) -> Settings {
    let schedules = Schedule::ALL;
    let member = |place: u32| Member { weight: place + 1, ..Member::new(&format!("s{place}")) };
    Settings {
        slots,
        schedule: schedules[random.pick(schedules.len())],
        queue: QueueLimits {
            length: [0, 2, 50][random.pick(3)],
            wait: Duration::from_millis([20, 10_000][random.pick(2)]),
            ..QueueLimits::default()
        },
        members: (0..PLACES).map(member).collect(),
        sizing: elastic::Sizing { min: PLACES, max: PLACES, ..elastic::Sizing::default() },
        fallback: (random.pick(3) == 0)
            .then_some(FallbackSettings { until: 50, steady: Duration::ZERO }),
        hold: Duration::from_millis(random.below(50)),
        decisions: 4,
        ..Settings::default()
    }
}

impl World {
    fn new(seed: u64, shards: usize) -> Self {
        let mut random = Random::new(seed);
        let slots = 1 + random.number(3);
        let settings = settings(&mut random, slots);
        Self::of(settings, random, shards)
    }

    fn of(settings: Settings, random: Random, shards: usize) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a point to start from")]
        let now = Instant::now();
        let slots = settings.slots;
        let words: Vec<_> = (0..PLACES).map(|_| Arc::new(Tokens::new(slots))).collect();
        let pools = (0..shards).map(|shard| {
            let mut pool = Pool::new(settings.clone(), now, shard as u64);
            pool.share(words.clone(), shard == 0);
            pool
        });
        let pools = pools.collect();
        let mut world = Self {
            now,
            settings,
            words,
            names: (0..PLACES).map(|place| format!("s{place}")).collect(),
            slots: vec![slots; PLACES as usize],
            most: vec![slots as usize; PLACES as usize],
            reloading: 0,
            pools,
            up: (0..shards).map(|_| VecDeque::new()).collect(),
            down: (0..shards).map(|_| VecDeque::new()).collect(),
            in_hand: Vec::new(),
            ending: Vec::new(),
            asked: 0,
            given: 0,
            refused: 0,
            at_branches: 0,
            random,
        };
        (0..shards).for_each(|shard| world.follow(shard));
        world
    }

    /// Carries out the effects of one shard, like a turn of its loop.
    fn follow(&mut self, shard: usize) {
        while let Some(effect) = self.pools[shard].poll_effect() {
            match effect {
                Effect::Dispatch { worker, payload: job, .. } => {
                    self.given += 1;
                    self.at_branches += u64::from(shard > 0);
                    self.in_hand.push(InHand { shard, worker, job });
                }
                Effect::Refuse { .. } => self.refused += 1,
                Effect::Start { worker } => self.pools[shard].handle_started(self.now, worker),
                Effect::Stop { worker } => self.pools[shard].handle_ended(self.now, worker, true),
                Effect::ToOwner { index } => self.up[shard].push_back(Mail::Token(index)),
            }
        }
        if let Some(update) = self.pools[shard].poll_update() {
            assert_eq!(shard, 0, "only a home has news");
            let update = Arc::new(update);
            let member_shards = self.down.iter_mut().skip(1);
            member_shards.for_each(|down| down.push_back(Mail::PoolUpdate(Arc::clone(&update))));
        }
        self.pools[shard].check();
        for (place, (most, &slots)) in self.most.iter_mut().zip(&self.slots).enumerate() {
            let at = |it: &&InHand| it.worker.index() == place;
            let seen = self.in_hand.iter().filter(at).count();
            assert!(seen <= *most, "{seen} requests at a server of {slots}");
            if self.reloading == 0 {
                *most = seen.max(slots as usize);
            }
        }
    }

    /// Servers are added and removed, and their slots change.
    fn order_reload(&mut self) {
        if self.reloading > 0 {
            return;
        }
        let some = 1 + self.random.number(NAMES - 1);
        let first = self.random.number(NAMES);
        let member = |at: u32| Member::new(&format!("s{}", (first + at) % NAMES));
        let members: Vec<_> = (0..some).map(member).collect();
        let slots = 1 + self.random.number(3);
        self.slots.fill(0);
        for member in &members {
            let place = self.names.iter().position(|name| *name == member.name);
            let place = place.unwrap_or_else(|| {
                self.names.push(member.name.clone());
                self.words.push(Arc::new(Tokens::new(slots)));
                self.slots.push(0);
                self.most.push(0);
                self.names.len() - 1
            });
            self.slots[place] = slots;
            self.most[place] = self.most[place].max(slots as usize);
        }
        self.settings.slots = slots;
        self.settings.members = members;
        self.settings.sizing.min = some;
        self.settings.sizing.max = some;
        let reload = Arc::new(Reload {
            settings: self.settings.clone(),
            words: self.words.clone(),
            slots: self.slots.clone(),
        });
        self.reloading = self.pools.len();
        if self.pools.len() == 1 || self.random.pick(2) == 0 {
            // The owner shard may apply the reload before or after its member shards receive the updates that follow
            // from it.
            self.take_over(0, &reload);
            self.follow(0);
        } else {
            self.up[1].push_back(Mail::Reload(Arc::clone(&reload)));
        }
        let member_shards = self.down.iter_mut().skip(1);
        member_shards.for_each(|down| down.push_back(Mail::Reload(Arc::clone(&reload))));
    }

    fn take_over(&mut self, shard: usize, reload: &Reload) {
        let pool = &mut self.pools[shard];
        pool.handle_slots(self.now, &reload.words, &reload.slots);
        pool.handle_settings(self.now, reload.settings.clone());
        self.reloading -= 1;
    }

    fn add_request(&mut self, shard: usize) {
        self.asked += 1;
        let some = self.random.number(NAMES);
        let named = self.pools[0].affinity_target_named(&format!("s{some}"));
        let named = named.filter(|_| self.random.pick(4) == 0);
        let job = Job { id: self.asked, named, failed: Failed::default() };
        if shard == 0 {
            self.take_in(job);
        } else if let Err(back) =
            self.pools[shard].handle_entry_on_member(self.now, job, job.entry(self.now))
        {
            self.up[shard].push_back(Mail::Request(back.payload));
        }
        self.follow(shard);
    }

    fn take_in(&mut self, job: Job) {
        if self.pools[0].handle_entry(self.now, job, job.entry(self.now)).is_err() {
            self.refused += 1;
        }
    }

    fn answer(&mut self) {
        if let Some(InHand { shard, worker, .. }) = self.take_out() {
            self.free(shard, worker);
        }
    }

    /// A server fails a request. The request returns to the queue of the owner shard.
    fn fail(&mut self) {
        let Some(InHand { shard, worker, mut job }) = self.take_out() else { return };
        job.failed.add(worker.into(), Cause::Died);
        self.free(shard, worker);
        self.given -= 1;
        self.at_branches -= u64::from(shard > 0);
        if shard > 0 {
            return self.up[shard].push_back(Mail::Request(job));
        }
        self.pools[0].handle_returned_entry(self.now, job, job.entry(self.now), Retry::default());
        self.pools[0].handle_time(self.now);
        self.follow(0);
    }

    fn take_out(&mut self) -> Option<InHand> {
        let all = self.in_hand.len();
        (all > 0).then(|| self.in_hand.swap_remove(self.random.pick(all)))
    }

    fn free(&mut self, shard: usize, worker: WorkerId) {
        if self.ending.contains(&worker) && shard == 0 {
            self.try_end();
        } else {
            self.pools[shard].handle_released(self.now, worker);
        }
        self.follow(shard);
    }

    /// A retired server is gone on the owner shard when it has none of its requests in flight.
    fn try_end(&mut self) {
        let (in_hand, pool, now) = (&self.in_hand, &mut self.pools[0], self.now);
        self.ending.retain(|worker| {
            let busy = in_hand.iter().any(|it| it.shard == 0 && it.worker == *worker);
            if !busy {
                pool.handle_ended(now, *worker, false);
            }
            busy
        });
        self.follow(0);
    }

    fn read(&mut self, shard: usize) {
        if let Some(mail) = self.up[shard].pop_front() {
            match mail {
                Mail::Request(job) => self.take_in(job),
                Mail::Token(place) => self.pools[0].handle_token(self.now, place),
                Mail::Reload(reload) => self.take_over(0, &reload),
                Mail::PoolUpdate(_) => unreachable!("home sends them"),
            }
            self.follow(0);
        }
        match self.down[shard].pop_front() {
            Some(Mail::PoolUpdate(update)) => {
                self.pools[shard].handle_update(self.now, &update);
                self.follow(shard);
            }
            Some(Mail::Reload(reload)) => {
                self.take_over(shard, &reload);
                self.follow(shard);
            }
            _ => {}
        }
    }

    fn order(&mut self) {
        let name = format!("s{}", self.random.number(NAMES));
        let hands = [AdminState::Enabled, AdminState::Disabled, AdminState::Drained];
        let control = match self.random.pick(2) {
            0 => Control::Weight([None, Some(0), Some(5)][self.random.pick(3)]),
            _ => Control::AdminState(hands[self.random.pick(3)]),
        };
        self.pools[0].handle_control(self.now, &name, control);
        self.follow(0);
    }

    fn retire(&mut self) {
        let some = self.random.number(NAMES);
        let found = self.pools[0].workers().find(|view| view.index.get() == some);
        if let Some(worker) = found.and_then(|view| view.worker)
            && !self.ending.contains(&worker)
        {
            self.pools[0].handle_retired(self.now, worker);
            self.ending.push(worker);
            self.follow(0);
            self.try_end();
        }
    }

    fn pass_time(&mut self) {
        self.now += Duration::from_millis(self.random.below(40));
        for shard in 0..self.pools.len() {
            if self.pools[shard].next_time().is_some_and(|at| at <= self.now) {
                self.pools[shard].handle_time(self.now);
                self.follow(shard);
            }
        }
    }

    fn step(&mut self) {
        let shard = self.random.pick(self.pools.len());
        match self.random.pick(100) {
            0..40 => self.add_request(shard),
            40..58 => self.answer(),
            58..65 => self.fail(),
            65..90 => self.read(shard),
            90..93 => self.order(),
            93 => self.retire(),
            95 => self.order_reload(),
            94 => {
                let on = self.random.pick(2) == 0;
                self.pools[0].handle_fallback(self.now, on);
                self.follow(0);
            }
            _ => self.pass_time(),
        }
    }

    /// All mail is read, and all requests are answered.
    fn quiet(&mut self) {
        for place in 0..NAMES {
            let name = format!("s{place}");
            self.pools[0].handle_control(self.now, &name, Control::AdminState(AdminState::Enabled));
            self.pools[0].handle_control(self.now, &name, Control::Weight(None));
        }
        self.pools[0].handle_fallback(self.now, false);
        self.follow(0);
        let mail = |world: &Self| world.up.iter().chain(&world.down).any(|it| !it.is_empty());
        while mail(self) || !self.in_hand.is_empty() {
            (0..self.pools.len()).for_each(|shard| self.read(shard));
            self.answer();
        }
        // A server that failed returns after a pause.
        for _ in 0..200 {
            self.pass_time();
            while mail(self) || !self.in_hand.is_empty() {
                (0..self.pools.len()).for_each(|shard| self.read(shard));
                self.answer();
            }
        }
    }
}

#[test]
fn no_slot_is_given_twice_and_no_waiter_is_forgotten_whatever_happens() {
    let (mut at_branches, mut given) = (0, 0);
    for seed in 0..300 {
        let mut world = World::new(seed, 1 + usize::try_from(seed % 4).unwrap());
        for _ in 0..400 {
            world.step();
        }
        world.quiet();
        assert_eq!(world.given + world.refused, world.asked, "seed {seed}: each is answered once");
        for (word, &slots) in world.words.iter().zip(&world.slots) {
            assert_eq!(word.look(), (false, slots), "seed {seed}: all tokens are free again");
        }
        at_branches += world.at_branches;
        given += world.given;
    }
    assert!(at_branches * 10 > given, "{at_branches} of {given} requests were given at branches");
}

#[test]
fn a_branch_gives_nothing_before_its_home_has_said_who_serves() {
    let mut world = World::new(1, 2);
    world.pools[0].handle_fallback(world.now, true);
    world.down[1].clear();
    let job = Job { id: 1, named: None, failed: Failed::default() };
    assert!(world.pools[1].handle_entry_on_member(world.now, job, job.entry(world.now)).is_err());
    // Nor while the fallback is on.
    world.follow(0);
    world.read(1);
    assert!(world.pools[1].handle_entry_on_member(world.now, job, job.entry(world.now)).is_err());
    world.pools[0].handle_fallback(world.now, false);
    world.follow(0);
    world.read(1);
    assert!(world.pools[1].handle_entry_on_member(world.now, job, job.entry(world.now)).is_ok());
}

#[test]
fn a_slot_that_a_branch_frees_goes_to_whoever_waits_at_home() {
    let settings = Settings {
        queue: QueueLimits { length: 1, ..QueueLimits::default() },
        ..settings(&mut Random::new(1), 2)
    };
    let mut world = World::of(settings, Random::new(1), 2);
    world.read(1);
    let slots = world.slots.iter().map(|&slots| u64::from(slots)).sum();
    (0..slots).for_each(|_| world.add_request(1));
    assert_eq!(world.at_branches, slots, "all of them at once");
    let job = Job { id: 99, named: None, failed: Failed::default() };
    assert!(world.pools[0].handle_request(world.now, job).is_ok());
    assert!(world.pools[0].handle_request(world.now, job).is_err(), "one may wait");
    world.follow(0);
    let InHand { shard, worker, .. } = world.in_hand.remove(0);
    world.pools[shard].handle_released(world.now, worker);
    world.follow(shard);
    // No request overtakes the one that waits.
    assert!(world.pools[1].handle_entry_on_member(world.now, job, job.entry(world.now)).is_err());
    world.read(1);
    assert_eq!(world.in_hand.last().map(|it| it.shard), Some(0));
}
