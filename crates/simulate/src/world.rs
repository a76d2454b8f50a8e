//! The world: its state and its actors.
//!
//! All of it is under one lock, which is never contended: only the thread of the world that has the baton runs.
//!
//! Each submodule implements a part of [`World`]: the actions of one kind of actor.

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

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway::ShardMail;

use crate::asks::InternalRequest;
use crate::chance::{Actor, Chance};
use crate::clients::Client;
use crate::datagrams::Datagrams;
use crate::http::speakers::Http;
use crate::ids::{FlowId, Party};
use crate::loops::SimulatedLoop;
use crate::net::Net;
use crate::plants::Planted;
use crate::programs::Program;
use crate::record::Record;
use crate::scenario::Scenario;
use crate::scheduled_event::{Moment, ScheduledEvent};
use crate::store::Store;
use crate::threads::Threads;
use crate::timeline::Timeline;

/// A world, shared by all replacements of real parts.
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

    /// Locks the world. Poisoning is ignored, because a panic in a check of a shard ends the run, but the events before
    /// it must still be printed.
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

/// The state of a world.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) time: Timeline,
    /// The random numbers of the current actor.
    pub(crate) chance: Chance,
    pub(crate) scenario: Scenario,
    pub(crate) net: Net,
    pub(crate) users: Users,
    pub(crate) workers: Workers,
    pub(crate) http: Http,
    pub(crate) datagrams: Datagrams,
    /// The loops of the gateway, by shard.
    pub(crate) loops: Vec<SimulatedLoop>,
    pub(crate) planted: Planted,
    pub(crate) progress: Progress,
    pub(crate) record: Record,
}

/// The senders of lines to the gateway: connected clients, and requests from within its process.
#[derive(Debug, Default)]
pub(crate) struct Users {
    pub(crate) clients: Vec<Client>,
    pub(crate) asks: Vec<InternalRequest>,
}

/// The workers of the gateway: its programs, the threads of its handlers, and the database that the handlers write.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    pub(crate) programs: Vec<Program>,
    pub(crate) threads: Threads,
    pub(crate) store: Store,
}

/// The progress of the run.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Whether no more faults are injected.
    pub(crate) calm: bool,
    /// When the drain was ordered.
    pub(crate) drain_at: Option<Moment>,
    /// Whether all loops sleep and no event is scheduled, or the run cannot continue.
    pub(crate) at_rest: bool,
}

impl World {
    pub(crate) fn new(seed: u64, scenario: Scenario, planted: Planted, trace: bool) -> Self {
        Self {
            time: Timeline::new(seed),
            chance: Chance::new(seed ^ 0x51b1_a7e0),
            net: Net::new(),
            users: Users::default(),
            workers: Workers::default(),
            http: Http::default(),
            datagrams: Datagrams::default(),
            loops: (0..scenario.shards).map(|_| SimulatedLoop::new()).collect(),
            planted,
            progress: Progress::default(),
            record: Record::new(trace),
            scenario,
        }
    }

    /// Schedules an event after `delay`.
    pub(crate) fn after(&mut self, delay: Duration, scheduled_event: ScheduledEvent) {
        self.at(self.time.now + delay, scheduled_event);
    }

    /// Schedules an event at `at`.
    pub(crate) fn at(&mut self, at: Moment, scheduled_event: ScheduledEvent) {
        self.time.add(at, scheduled_event);
    }

    /// Selects the actor for which random numbers are drawn from now on.
    pub(crate) fn act(&mut self, actor: Actor) {
        self.chance = self.time.chance_of(actor);
    }

    /// Records an event. `words` describes the meaning of `who` and `number`.
    pub(crate) fn note(&mut self, words: &'static str, who: usize, number: usize) {
        self.record.note(self.time.now, words, who, number);
    }

    /// Prints a text for a reader; it is not part of the digest.
    pub(crate) fn trace(&self, text: impl FnOnce() -> String) {
        self.record.trace(self.time.now, text);
    }

    /// Records a violation.
    pub(crate) fn violation(&mut self, text: String) {
        self.record.add_violation(self.time.now, text);
    }

    /// Whether a fault is injected now. `in_1000` is its frequency per thousand calls.
    pub(crate) fn fault(&mut self, in_1000: u32) -> bool {
        let in_1000 = in_1000 * self.scenario.trouble / 10;
        self.chance.in_1000(in_1000) && !self.progress.calm
    }

    /// Delivers the bytes or the end that are due in a flow, and notifies its reader.
    pub(crate) fn arrive(&mut self, id: FlowId) {
        let now = self.time.now;
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
            Party::Client(client) => self.client_receives(client),
            Party::Program(program) => self.wake_program(program, Duration::ZERO),
            Party::Speaker(speaker) => self.call_speaker(speaker, self.time.now),
        }
    }

    /// Executes one event, except those of threads and loops.
    pub(crate) fn execute(&mut self, scheduled_event: ScheduledEvent) {
        self.act(scheduled_event.actor());
        match scheduled_event {
            ScheduledEvent::Arrive(flow) => self.arrive(flow),
            ScheduledEvent::ReachListener(connection) => self.reach_listener(connection),
            ScheduledEvent::ResetAtGateway(descriptor) => self.reset_at_gateway(descriptor),
            ScheduledEvent::ResetAt(Party::Client(client)) => self.client_is_reset(client),
            ScheduledEvent::ResetAt(Party::Speaker(speaker)) => self.speaker_is_reset(speaker),
            ScheduledEvent::ResetAt(_) => unreachable!("only ends of connections are reset"),
            ScheduledEvent::Reach(connection) => self.reach(connection),
            ScheduledEvent::Speaker(speaker) => self.speaker_acts(speaker),
            ScheduledEvent::Datagram(number) => self.datagram_arrives(number),
            ScheduledEvent::DatagramLeft => self.datagram_left(),
            ScheduledEvent::ServerTurns(server) => self.server_turns(server),
            ScheduledEvent::Room(descriptor) => self.room_at_gateway(descriptor),
            ScheduledEvent::Client(client) => self.client_acts(client),
            ScheduledEvent::Patience(client) => self.check_patience(client),
            ScheduledEvent::ProgramStarts(program) => self.program_starts(program),
            ScheduledEvent::Program(program) => self.program_acts(program),
            ScheduledEvent::Signal(program, how) => self.signal(program, how),
            ScheduledEvent::ProgramReported(program) => self.report_exit(program),
            ScheduledEvent::PipesReleased(program) => self.release_pipes(program),
            ScheduledEvent::Ask(number) => self.ask(number),
            ScheduledEvent::SupervisorLost => self.lose_supervisor(),
            ScheduledEvent::Cut if self.http.speaks() => self.cut_speaker(),
            ScheduledEvent::Cut => self.cut_client(),
            ScheduledEvent::Drain => {
                self.note("somebody orders the end", 0, 0);
                self.progress.drain_at.get_or_insert(self.time.now);
                (0..self.loops.len()).for_each(|shard| self.post(shard, ShardMail::Drain));
            }
            ScheduledEvent::Thread(_) | ScheduledEvent::Turn(_) => {
                unreachable!("threads and loops go on outside of the lock")
            }
        }
    }
}
