//! The world: its time, what happens next, and who lives in it.
//!
//! Time is virtual and jumps to what happens next. Everything that happens is in one queue, in the
//! order of its moment; ties are broken by chance, so that no order is relied on that the real
//! world does not give. All of it stands under one lock, which is never contended: of the threads
//! of a world only the one that has the baton runs.
//!
//! Each file below carries a part of [`World`]: what one kind of those who live in it does.

mod asks;
mod clients;
mod datagrams;
mod hosts;
mod kernel;
mod loops;
mod net;
mod plan;
mod plants;
mod programs;
mod servers;
mod speakers;
mod store;
mod transcripts;
mod trust;
mod tunnels;
mod visitors;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gateway::Mail;

use crate::asks::Ask;
use crate::chance::{Actor, Chance, Chances};
use crate::clients::Client;
use crate::datagrams::Datagrams;
use crate::happening::{Happening, Moment};
use crate::http::speakers::Http;
use crate::ids::{FlowId, Party};
use crate::loops::Sleeper;
use crate::net::Net;
use crate::plants::Planted;
use crate::programs::Program;
use crate::scenario::Scenario;
use crate::store::Store;
use crate::threads::Threads;
use crate::transcripts::Transcripts;

/// A world, shared by everything that stands in for a piece of the real one.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    world: Mutex<World>,
    crashed: AtomicBool,
}

impl Shared {
    pub(crate) fn new(world: World) -> Self {
        Self(Arc::new(Inner { world: Mutex::new(world), crashed: AtomicBool::new(false) }))
    }

    /// A panic of a sweep ends the run, but not before the trace was told.
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn crashed(&self) -> bool {
        self.0.crashed.load(Ordering::SeqCst)
    }

    pub(crate) fn crash(&self) {
        self.0.crashed.store(true, Ordering::SeqCst);
    }
}

/// Who lives in a world, and what is to happen.
#[derive(Debug)]
pub(crate) struct World {
    /// The real instant that stands for the beginning; only differences are seen.
    pub(crate) origin: Instant,
    pub(crate) now: Moment,
    /// The numbers of whoever acts now.
    pub(crate) chance: Chance,
    chances: Chances,
    pub(crate) scenario: Scenario,
    pub(crate) net: Net,
    pub(crate) clients: Vec<Client>,
    pub(crate) asks: Vec<Ask>,
    pub(crate) programs: Vec<Program>,
    pub(crate) threads: Threads,
    pub(crate) store: Store,
    pub(crate) http: Http,
    pub(crate) datagrams: Datagrams,
    /// The loops of the gateway, by their shards.
    pub(crate) loops: Vec<Sleeper>,
    pub(crate) planted: Planted,
    /// When the end was ordered.
    pub(crate) drain_at: Option<Moment>,
    /// What the gateway has sent.
    pub(crate) transcripts: Transcripts,
    /// No more faults are made.
    pub(crate) calm: bool,
    /// All of the gateway sleeps and nothing will ever happen again, or the run cannot go on.
    pub(crate) at_rest: bool,
    /// What was seen that must not be.
    pub(crate) violations: Vec<String>,
    queue: BTreeMap<(Moment, u64, u64), Happening>,
    queued: u64,
    trace: Trace,
}

/// What happened, as one number, and as text when somebody wants to read it.
#[derive(Debug)]
struct Trace {
    digest: u64,
    told: bool,
    notes: u64,
}

impl World {
    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    pub(crate) fn new(seed: u64, scenario: Scenario, planted: Planted, told: bool) -> Self {
        Self {
            origin: Instant::now(),
            now: Moment::ZERO,
            chance: Chance::new(seed ^ 0x51b1_a7e0),
            chances: Chances::new(seed),
            net: Net::new(),
            clients: Vec::new(),
            asks: Vec::new(),
            programs: Vec::new(),
            threads: Threads::default(),
            store: Store::default(),
            http: Http::default(),
            datagrams: Datagrams::default(),
            loops: (0..scenario.shards).map(|_| Sleeper::new()).collect(),
            planted,
            drain_at: None,
            transcripts: Transcripts::default(),
            calm: false,
            at_rest: false,
            violations: Vec::new(),
            queue: BTreeMap::new(),
            queued: 0,
            trace: Trace { digest: 0xcbf2_9ce4_8422_2325, told, notes: 0 },
            scenario,
        }
    }

    /// Lets something happen after `delay`.
    pub(crate) fn after(&mut self, delay: Duration, happening: Happening) {
        self.at(self.now + delay, happening);
    }

    /// Lets something happen at `at`.
    pub(crate) fn at(&mut self, at: Moment, happening: Happening) {
        self.queued += 1;
        let at = at.max(self.now);
        let tie = self.chances.rank(happening.actor(), at);
        self.queue.insert((at, tie, self.queued), happening);
    }

    /// All random numbers from now on are drawn for what `actor` does.
    pub(crate) fn act(&mut self, actor: Actor) {
        self.chance = self.chances.of(actor, self.now);
    }

    /// When the next thing happens.
    pub(crate) fn next_at(&self) -> Option<Moment> {
        self.queue.first_key_value().map(|((at, ..), _)| *at)
    }

    /// The next thing to happen by `until`; its moment becomes the present.
    pub(crate) fn next(&mut self, until: Option<Moment>) -> Option<Happening> {
        let at = self.next_at()?;
        if until.is_some_and(|until| at > until) {
            return None;
        }
        self.now = self.now.max(at);
        self.queue.pop_first().map(|(_, happening)| happening)
    }

    /// Notes what happens: `who` and `number` are what the words say they are.
    pub(crate) fn note(&mut self, words: &'static str, who: usize, number: usize) {
        let trace = &mut self.trace;
        trace.notes += 1;
        let first = words
            .as_bytes()
            .iter()
            .fold(0_u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let now = u64::try_from(self.now.as_nanos()).unwrap_or(u64::MAX);
        for word in [first, now, who as u64, number as u64] {
            trace.digest =
                (trace.digest ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
        if trace.told {
            println!("{:>14.6} ms  {words}: {who}, {number}", self.now.as_secs_f64() * 1000.0);
        }
    }

    /// Notes something for a reader only.
    pub(crate) fn tell(&self, text: impl FnOnce() -> String) {
        if self.trace.told {
            println!("{:>14.6} ms  {}", self.now.as_secs_f64() * 1000.0, text());
        }
    }

    /// One number for all that happened, and how much it was.
    pub(crate) const fn digest(&self) -> (u64, u64) {
        (self.trace.digest, self.trace.notes)
    }

    /// Something was seen that must not be.
    pub(crate) fn violation(&mut self, text: String) {
        self.tell(|| format!("VIOLATION {text}"));
        if self.violations.len() < 20 {
            self.violations.push(text);
        }
    }

    /// Whether a fault is made now, of which there are so many in a thousand chances.
    pub(crate) fn fault(&mut self, in_1000: u32) -> bool {
        let in_1000 = in_1000 * self.scenario.trouble / 10;
        self.chance.in_1000(in_1000) && !self.calm
    }

    /// What is due in a flow arrives, and its reader learns of it.
    pub(crate) fn arrive(&mut self, id: FlowId) {
        let now = self.now;
        let flow = self.net.flow(id);
        let arrival = flow.arrive(now);
        let reader = flow.reader;
        if arrival.dropped {
            self.answer_with_reset(id);
        }
        if arrival.bytes == 0 && !arrival.end {
            return;
        }
        match reader {
            Party::Gateway(descriptor) => self.arrived_at_gateway(descriptor, arrival.end),
            Party::Client(client) => self.client_hears(client),
            Party::Program(program) => self.wake_program(program, Duration::ZERO),
            Party::Speaker(speaker) => self.call_speaker(speaker, self.now),
        }
    }

    /// Does one thing that happens, other than a thread's.
    pub(crate) fn happen(&mut self, happening: Happening) {
        self.act(happening.actor());
        match happening {
            Happening::Arrive(flow) => self.arrive(flow),
            Happening::Knock(connection) => self.knock(connection),
            Happening::ResetAtGateway(descriptor) => self.reset_at_gateway(descriptor),
            Happening::ResetAt(Party::Client(client)) => self.client_is_reset(client),
            Happening::ResetAt(Party::Speaker(speaker)) => self.speaker_is_reset(speaker),
            Happening::ResetAt(_) => unreachable!("only ends of connections are reset"),
            Happening::Reach(connection) => self.reach(connection),
            Happening::Speaker(speaker) => self.speaker_acts(speaker),
            Happening::Letter(number) => self.letter_arrives(number),
            Happening::LetterLeft => self.letter_left(),
            Happening::ServerTurns(server) => self.server_turns(server),
            Happening::Room(descriptor) => self.room_at_gateway(descriptor),
            Happening::Client(client) => self.client_acts(client),
            Happening::Patience(client) => self.client_looks_at_the_clock(client),
            Happening::ProgramStarts(program) => self.program_starts(program),
            Happening::Program(program) => self.program_acts(program),
            Happening::Signal(program, how) => self.signal(program, how),
            Happening::ProgramReported(program) => self.report_exit(program),
            Happening::PipesReleased(program) => self.release_pipes(program),
            Happening::Ask(number) => self.ask(number),
            Happening::KeeperLost => self.lose_keeper(),
            Happening::Cut if self.http.speaks() => self.cut_speaker(),
            Happening::Cut => self.cut_somebody(),
            Happening::Drain => {
                self.note("somebody orders the end", 0, 0);
                self.drain_at.get_or_insert(self.now);
                (0..self.loops.len()).for_each(|shard| self.post(shard, Mail::Drain));
            }
            Happening::Thread(_) | Happening::Turn(_) => {
                unreachable!("threads and loops go on outside of the lock")
            }
        }
    }
}
