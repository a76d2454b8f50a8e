//! A naive model of a pool with members: plain lists that are searched each time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::calm::Calm;
use crate::job::{Job, Waiting};
use crate::random::Random;
use crate::turns::Turns;
use exchange::{Cause, WorkerId};
use pool::{
    AdminState, Control, Effect, FallbackReason, Gone, Member, Pool, Refused, Settings, Ticket,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Ready,
    /// Asked to stop, or no longer declared.
    Ending,
}

#[derive(Debug)]
struct Worker {
    id: WorkerId,
    name: String,
    state: State,
    in_use: u32,
}

/// The state of a declared name.
#[derive(Clone, Debug)]
struct Known {
    member: Member,
    weight_set: Option<u32>,
    admin_state: AdminState,
    up: bool,
    /// When it stopped serving, if it ever served.
    out_since: Option<Instant>,
    serving: bool,
}

pub(crate) struct Naive {
    seed: u64,
    step: u64,
    pool: Pool<Job>,
    now: Instant,
    known: BTreeMap<String, Known>,
    workers: Vec<Worker>,
    waiting: Vec<Waiting>,
    bound: BTreeMap<[u8; 1], String>,
    next_id: u64,
    tickets: Vec<Ticket>,
    /// Why the fallback was on after the last event.
    fallback: Option<FallbackReason>,
    by_operator: bool,
    /// Since when the load is low.
    low: Calm,
    /// Since when the load is low and no request need wait. This is required after a request that waited too long.
    easy: Calm,
    /// Whether a rejection during this event was a reason for the fallback.
    reason: bool,
    turns: Turns,
}

#[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
fn start() -> Instant {
    Instant::now()
}

/// Prints the seed and the step of a failure.
impl Drop for Naive {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, step {}", self.seed, self.step);
        }
    }
}

impl Naive {
    pub(crate) fn new(settings: Settings, turns: Turns, seed: u64) -> Self {
        let now = start();
        let known = settings.members.iter().map(fresh).collect();
        let mut naive = Self {
            seed,
            step: 0,
            pool: Pool::new(settings, now, seed),
            now,
            known,
            workers: Vec::new(),
            waiting: Vec::new(),
            bound: BTreeMap::new(),
            next_id: 0,
            tickets: Vec::new(),
            fallback: None,
            by_operator: false,
            low: Calm::default(),
            easy: Calm::default(),
            reason: false,
            turns,
        };
        naive.follow();
        naive
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.pool.handle_time(self.now);
        self.follow();
    }

    pub(crate) fn due(&mut self) {
        if let Some(at) = self.pool.next_time() {
            self.pass(at - self.now);
        }
    }

    pub(crate) fn request(&mut self, random: &mut Random) {
        let client = (random.below(2) == 0).then(|| [random.byte(20)]);
        let (priority, share) = self.turns.traits(random, client.is_some());
        self.next_id += 1;
        let job = Job { id: self.next_id, client, priority, share };
        let bound = self.bound_to(&job);
        let queued = self.pool.status().queued;
        let room = queued < self.pool.settings().queue.length;
        let any = self.may_give() && self.open().iter().any(|name| self.has_slot(name));
        // Whether a worker may take the request, and whether it must. It is undefined whether requests wait for a
        // worker that never served.
        let (may, must) = match &bound {
            Some(name) if self.serves(name) => {
                let free = self.may_give() && self.has_slot(name);
                (free, free)
            }
            Some(name) if self.known.contains_key(name) && !self.is_known_out(name) => (any, false),
            _ => (any, any),
        };
        match self.pool.handle_request(self.now, job) {
            Ok(ticket) => {
                assert_ne!(
                    self.fallback,
                    Some(FallbackReason::Operator),
                    "taken in though an operator said no"
                );
                assert!(self.fallback.is_none() || may, "nobody waits in the fallback");
                assert!(room || may, "taken in over the limit");
                let (bound, since) = (bound.filter(|name| self.is_awaited(name)), self.now);
                self.waiting.push(Waiting {
                    job,
                    came: self.step,
                    bound,
                    was_let_go: false,
                    since,
                    ticket,
                });
                self.tickets.push(ticket);
            }
            Err(Refused { payload, cause }) => {
                assert_eq!(payload, job, "a refusal gives back what came");
                self.refused(cause, &job, (room, must), bound.as_deref());
            }
        }
        self.follow();
    }

    fn refused(
        &mut self,
        cause: Cause,
        job: &Job,
        (room, must): (bool, bool),
        bound: Option<&str>,
    ) {
        let Some(reason) = self.fallback else {
            self.reason |= matches!(cause, Cause::Full | Cause::Down | Cause::Waited);
            match cause {
                Cause::Full => assert!(!room && !must, "refused though it fits: {job:?}"),
                Cause::Down => assert!(self.open().is_empty(), "down though somebody is fit"),
                Cause::Gone => {
                    let sticky = self.pool.settings().sticky;
                    assert_eq!(sticky.map(|sticky| sticky.gone), Some(Gone::Refuse));
                    assert!(bound.is_some_and(|name| !self.serves(name)), "gone though it serves");
                }
                cause => panic!("refused for {cause:?}"),
            }
            return;
        };
        let meant = match reason {
            FallbackReason::Operator => Cause::Fallback,
            FallbackReason::Full => Cause::Full,
            FallbackReason::Waited => Cause::Waited,
            FallbackReason::NoWorker => Cause::Down,
        };
        if cause == Cause::Gone {
            assert!(bound.is_some_and(|name| !self.serves(name)), "gone though it serves");
        } else {
            assert_eq!(cause, meant, "a pool in its fallback says why");
            let must = must && reason != FallbackReason::Operator;
            assert!(!must, "a free slot is used in the fallback: {job:?}");
        }
    }

    pub(crate) fn abandon(&mut self, random: &mut Random) {
        let recent = &self.tickets[self.tickets.len().saturating_sub(8)..];
        if recent.is_empty() {
            return;
        }
        let ticket = recent[random.pick(recent.len())];
        let at = self.waiting.iter().position(|waiting| waiting.ticket == ticket);
        let taken = at.map(|at| self.waiting.remove(at));
        if let Some(taken) = &taken {
            self.turns.note(taken, self.step);
        }
        let expected = taken.map(|taken| taken.job);
        assert_eq!(self.pool.handle_abandon(self.now, ticket), expected);
        self.follow();
    }

    pub(crate) fn release(&mut self, random: &mut Random) {
        if let Some(at) = self.pick(random, |worker| worker.in_use > 0) {
            self.workers[at].in_use -= 1;
            let id = self.workers[at].id;
            self.pool.handle_released(self.now, id);
            self.follow();
        }
    }

    pub(crate) fn started(&mut self, random: &mut Random) {
        if let Some(at) = self.pick(random, |worker| worker.state == State::Starting) {
            self.workers[at].state = State::Ready;
            let id = self.workers[at].id;
            // A worker that is no longer declared may be stopped immediately.
            self.pool.handle_started(self.now, id);
            self.follow();
        }
    }

    pub(crate) fn start_failed(&mut self, random: &mut Random) {
        if let Some(at) = self.pick(random, |worker| worker.state == State::Starting) {
            let worker = self.workers.remove(at);
            self.pool.handle_start_failed(self.now, worker.id);
            self.follow();
        }
    }

    /// A worker that was asked to stop is gone.
    pub(crate) fn ended(&mut self, random: &mut Random) {
        let stopped = |worker: &Worker| worker.state == State::Ending && worker.in_use == 0;
        if let Some(at) = self.pick(random, stopped) {
            let worker = self.workers.remove(at);
            self.pool.handle_ended(self.now, worker.id, true);
            self.follow();
        }
    }

    /// A worker is gone, with all its requests in flight.
    pub(crate) fn dies(&mut self, random: &mut Random) {
        if let Some(at) = self.pick(random, |worker| worker.state == State::Ready) {
            let worker = self.workers.remove(at);
            self.pool.handle_ended(self.now, worker.id, false);
            self.follow();
        }
    }

    /// Checks of one worker, all passed or all failed.
    pub(crate) fn check(&mut self, random: &mut Random) {
        let Some(at) = self.pick(random, |_| true) else { return };
        let (id, name) = (self.workers[at].id, self.workers[at].name.clone());
        let good = random.below(2) == 0;
        if let Some(known) = self.known.get_mut(&name) {
            known.up = good;
        }
        // Enough checks to decide the state, whatever the earlier checks were.
        let health = self.pool.settings().health;
        for _ in 0..health.rise.max(health.fall) {
            self.pool.handle_check(self.now, id, good);
        }
        self.follow();
    }

    pub(crate) fn fallback(&mut self, on: bool) {
        self.by_operator = on;
        self.pool.handle_fallback(self.now, on);
        self.follow();
    }

    pub(crate) fn control(&mut self, name: &str, control: Control) {
        // A name that was declared before may still be known while its worker ends.
        if let Some(known) = self.known.get_mut(name) {
            match control {
                Control::Weight(weight) => known.weight_set = weight,
                Control::AdminState(admin_state) => known.admin_state = admin_state,
                other => unreachable!("the model does not have {other:?}"),
            }
            assert!(self.pool.handle_control(self.now, name, control));
            self.follow();
        }
    }

    /// New members are declared: some join, some leave, some have a new weight.
    pub(crate) fn members(&mut self, members: Vec<Member>) {
        let known = std::mem::take(&mut self.known);
        for member in &members {
            let (name, new) = fresh(member);
            let known = known.get(&name).cloned();
            self.known
                .insert(name, known.map_or(new, |old| Known { member: member.clone(), ..old }));
        }
        for worker in &mut self.workers {
            if worker.state == State::Ready && !self.known.contains_key(&worker.name) {
                worker.state = State::Ending;
            } else if worker.in_use > 0 && self.known.contains_key(&worker.name) {
                // The worker was not asked to stop yet, and need not be.
                worker.state = State::Ready;
            }
        }
        let settings = Settings { members, ..self.pool.settings().clone() };
        self.pool.handle_settings(self.now, settings);
        self.adopt();
        self.follow();
    }

    /// If a name returns before its place was reused, it keeps its administrative state, weight and health. The pool
    /// decides this, so the model reads them once, when the name joins.
    fn adopt(&mut self) {
        for view in self.pool.workers() {
            if let Some(known) = view.name.and_then(|name| self.known.get_mut(name)) {
                let up = view.health == pool::HealthState::Up;
                if (known.admin_state, known.weight_set, known.up)
                    != (view.admin_state, view.weight_set, up)
                {
                    assert!(known.out_since.is_none() && !known.serving, "forgotten on the way");
                    (known.admin_state, known.weight_set, known.up) =
                        (view.admin_state, view.weight_set, up);
                }
            }
        }
    }

    /// Drains the effects and checks everything.
    fn follow(&mut self) {
        self.step += 1;
        self.note_serving();
        while let Some(effect) = self.pool.poll_effect() {
            match effect {
                Effect::Start { worker } => {
                    let view = self.pool.workers().find(|view| view.worker == Some(worker));
                    let name =
                        view.and_then(|view| view.name).expect("members have names").to_owned();
                    let twice = self.workers.iter().any(|worker| worker.name == name);
                    assert!(!twice, "a second worker of one name");
                    let state = State::Starting;
                    self.workers.push(Worker { id: worker, name, state, in_use: 0 });
                }
                Effect::Stop { worker } => {
                    let worker = self.worker(worker);
                    assert_eq!(worker.in_use, 0, "stopped though it has something to do");
                    worker.state = State::Ending;
                }
                Effect::ToOwner { .. } => unreachable!("it has no branches"),
                Effect::Refuse { payload, cause } => {
                    let taken = self.take(&payload);
                    self.turns.note(&taken, self.step);
                    self.reason |= matches!(cause, Cause::Full | Cause::Down | Cause::Waited);
                }
                Effect::Dispatch { worker, payload, last } => {
                    assert!(last, "one at a time");
                    self.dispatched(worker, &payload);
                }
            }
        }
        self.note_serving();
        self.pool.check();
        self.sweep();
        for at in 0..self.waiting.len() {
            if self.waiting[at].bound.as_ref().is_some_and(|name| !self.is_awaited(name)) {
                self.waiting[at].bound = None;
            }
        }
        self.sweep_fallback();
    }

    fn dispatched(&mut self, id: WorkerId, job: &Job) {
        let bound = self.bound_to(job);
        let open = self.open();
        let taken = self.take(job);
        let was = taken.bound.clone();
        let name = self.worker(id).name.clone();
        assert_eq!(self.worker(id).state, State::Ready, "given to one that takes nothing");
        assert!(self.has_slot(&name), "over the limit of a worker");
        assert!(self.may_give(), "over the limit of the pool");
        assert!(self.serves(&name), "given to {name}, which serves nobody");
        if bound.as_deref() != Some(&*name) {
            assert!(open.contains(&name), "given to {name}, which is closed to others");
            if let Some(bound) = bound.filter(|_| self.pool.settings().sticky.is_some()) {
                assert!(!self.is_awaited(&bound), "given to {name}, though bound to {bound}");
                let refused =
                    self.pool.settings().sticky.is_some_and(|sticky| sticky.gone == Gone::Refuse);
                assert!(
                    !refused || was != Some(bound),
                    "given to {name} in place of the one that is gone"
                );
            }
        }
        let is_open = open.contains(&name);
        self.turns.check(&taken, &self.waiting, &name, is_open);
        self.turns.note_given(&taken, &name, self.step);
        self.worker(id).in_use += 1;
        if let (Some(client), Some(_)) = (job.client, self.pool.settings().sticky) {
            self.bound.insert(client, name);
        }
    }

    /// What must hold whenever nothing remains to be done.
    fn sweep(&self) {
        let limits = self.pool.settings().queue;
        let status = self.pool.status();
        assert_eq!(status.queued as usize, self.waiting.len(), "all that wait are known");
        assert!(status.queued <= limits.length, "more wait than may");
        let free: Vec<String> = if self.may_give() {
            self.open().into_iter().filter(|name| self.has_slot(name)).collect()
        } else {
            Vec::new()
        };
        for waiting in &self.waiting {
            assert!(self.now < waiting.since + limits.wait, "waits too long: {waiting:?}");
            match self.bound_to(&waiting.job) {
                bound if bound != waiting.bound => {}
                Some(name) if self.serves(&name) => {
                    let could = self.has_slot(&name) && self.may_give();
                    assert!(!could, "{waiting:?} is forgotten by {name}");
                }
                Some(name) if self.known.contains_key(&name) && self.is_awaited(&name) => {}
                Some(name) if self.is_known_out(&name) || !self.known.contains_key(&name) => {
                    assert!(free.is_empty(), "{waiting:?} is forgotten, {name} is gone");
                }
                Some(_) => {}
                None => assert!(free.is_empty(), "{waiting:?} is forgotten by {free:?}"),
            }
        }
    }

    /// The fallback is switched on for a reason, and off when the load was low for long enough.
    fn sweep_fallback(&mut self) {
        let status = self.pool.status();
        let Some(settings) = self.pool.settings().fallback else {
            let admin_state = self.by_operator.then_some(FallbackReason::Operator);
            self.fallback = status.fallback.map(|(reason, _)| reason);
            assert_eq!(self.fallback, admin_state, "without settings it is sorry by hand alone");
            return;
        };
        let serving: u64 = self
            .known
            .iter()
            .filter(|(_, known)| known.serving)
            .map(|(name, _)| u64::from(self.slots(name)))
            .sum();
        let all = self.pool.settings().slots_all.map_or(u64::MAX, u64::from);
        let room = serving.min(all) + u64::from(self.pool.settings().queue.length);
        let taken: u32 = self.workers.iter().map(|worker| worker.in_use).sum();
        let taken = u64::from(taken) + self.waiting.len() as u64;
        let low = taken * 100 <= room * u64::from(settings.until) && !self.open().is_empty();
        let free = self.may_give() && self.open().iter().any(|name| self.has_slot(name));
        let easy = low && self.waiting.is_empty() && free;
        let reason = std::mem::take(&mut self.reason);
        let was = self.fallback;
        self.fallback = status.fallback.map(|(reason, _)| reason);
        assert_eq!(
            self.by_operator,
            self.fallback == Some(FallbackReason::Operator),
            "by hand it is by hand"
        );
        self.low.note(self.now, low, reason);
        self.easy.note(self.now, easy, reason);
        if self.by_operator {
            return;
        }
        if was.is_none() && self.fallback.is_some() {
            assert!(reason, "sorry without a reason");
        }
        let calm = self.low.since.is_none_or(|at| self.now >= at + settings.steady);
        if was.is_some() && was != Some(FallbackReason::Operator) && self.fallback.is_none() {
            assert!(low && calm, "no longer sorry, though the load is high or was just now");
        }
        if self.fallback.is_some() {
            let since = self.easy.since.is_some_and(|at| self.now > at + settings.steady);
            assert!(!(easy && since), "sorry though the load was low for long enough");
        }
    }

    /// Lets everything end. Every request must get an answer.
    pub(crate) fn finish(&mut self) {
        let mut random = Random::new(self.seed);
        self.pool.handle_drain(self.now);
        self.follow();
        for _ in 0..2000 {
            if self.pool.is_idle() {
                break;
            }
            self.release(&mut random);
            self.due();
        }
        assert!(self.pool.is_idle() && self.waiting.is_empty(), "a drain comes to its end");
        let counts = self.pool.counts();
        let gone = counts.dispatched + counts.abandoned + counts.expired;
        assert_eq!(counts.admitted, gone, "counts agree");
    }

    fn pick(&self, random: &mut Random, wanted: impl Fn(&Worker) -> bool) -> Option<usize> {
        let all: Vec<usize> =
            (0..self.workers.len()).filter(|at| wanted(&self.workers[*at])).collect();
        (!all.is_empty()).then(|| all[random.pick(all.len())])
    }

    fn worker(&mut self, id: WorkerId) -> &mut Worker {
        self.workers.iter_mut().find(|worker| worker.id == id).expect("a worker that lives")
    }

    /// A waiting request leaves the queue.
    fn take(&mut self, job: &Job) -> Waiting {
        let at = self.waiting.iter().position(|waiting| waiting.job == *job);
        self.waiting.remove(at.expect("answered once, and only what was taken in"))
    }

    fn bound_to(&self, job: &Job) -> Option<String> {
        self.bound.get(&job.client?).cloned()
    }

    fn slots(&self, name: &str) -> u32 {
        self.known[name].member.slots.unwrap_or_else(|| self.pool.settings().slots)
    }

    fn has_slot(&self, name: &str) -> bool {
        let worker = self.workers.iter().find(|worker| worker.name == name);
        worker.is_some_and(|worker| worker.in_use < self.slots(name))
    }

    fn may_give(&self) -> bool {
        let in_use: u32 = self.workers.iter().map(|worker| worker.in_use).sum();
        self.pool.settings().slots_all.is_none_or(|all| in_use < all)
    }

    /// Whether the worker may receive requests of clients that are bound to it.
    fn serves(&self, name: &str) -> bool {
        let ready = |worker: &Worker| worker.name == name && worker.state == State::Ready;
        let fit = |known: &Known| known.up && known.admin_state != AdminState::Disabled;
        self.known.get(name).is_some_and(fit) && self.workers.iter().any(ready)
    }

    /// The workers that may receive any request: backup workers only if there is no other.
    fn open(&self) -> Vec<String> {
        let open = |(name, known): &(&String, &Known)| {
            let weight = known.weight_set.unwrap_or(known.member.weight);
            self.serves(name) && known.admin_state == AdminState::Enabled && weight > 0
        };
        let (backup, first): (Vec<_>, Vec<_>) =
            self.known.iter().filter(open).partition(|(_, known)| known.member.backup);
        let names = if first.is_empty() { backup } else { first };
        names.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// Whether the clients of the worker have to wait for it.
    fn is_awaited(&self, name: &str) -> bool {
        let Some(known) = self.known.get(name) else { return false };
        let hold = self.pool.settings().hold;
        self.serves(name) || known.out_since.is_some_and(|since| self.now < since + hold)
    }

    /// Whether the worker served before, and clients no longer wait for it.
    fn is_known_out(&self, name: &str) -> bool {
        let once = self.known.get(name).is_some_and(|known| known.out_since.is_some());
        once && !self.is_awaited(name)
    }

    fn note_serving(&mut self) {
        let names: Vec<String> = self.known.keys().cloned().collect();
        for name in names {
            let (serves, now) = (self.serves(&name), self.now);
            let known = self.known.get_mut(&name).expect("it is one of the keys");
            if known.serving && !serves {
                known.out_since = Some(now);
            } else if serves {
                known.out_since = None;
            }
            known.serving = serves;
            let theirs = |one: &&mut Waiting| !serves && one.bound.as_ref() == Some(&name);
            self.waiting.iter_mut().filter(theirs).for_each(|one| one.was_let_go = true);
        }
    }
}

fn fresh(member: &Member) -> (String, Known) {
    let known = Known {
        member: member.clone(),
        weight_set: None,
        admin_state: AdminState::Enabled,
        up: true,
        out_since: None,
        serving: false,
    };
    (member.name.clone(), known)
}
