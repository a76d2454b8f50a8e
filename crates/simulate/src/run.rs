//! One run: a world from a seed, the gateway in it, and the check after it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gateway::Status;

use crate::check::ends::{Ends, Found};
use crate::plants::{Mutant, Planted};
use crate::scenario::{Finish, Scenario};
use crate::scheduled_event::{Moment, ScheduledEvent};
use crate::shards::{Shards, Unfinished};
use crate::transcripts::Transcript;
use crate::world::{Shared, World};
use crate::{check, echo, lockstep};

/// The maximum number of iterations of each loop in one run.
const TURNS_MAX: u64 = 400_000;

/// The maximum duration of the work, in the time of the world.
const WORK_MAX: Duration = Duration::from_secs(900);

/// The maximum time in which a gateway without requests must become idle, and in which it must answer again.
const REST_MAX: Duration = Duration::from_secs(90);

const RECOVER_MAX: Duration = Duration::from_secs(200);

/// The maximum duration of the end of an idle gateway: the last batch, stop timeouts, pipes that other processes hold.
const END_MAX: Duration = Duration::from_secs(25);

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The seed, which determines everything.
    pub seed: u64,
    /// The number of loops of the gateway, at least one. An echo has one.
    pub shards: usize,
    /// A mutant at the interface of the kernel.
    pub mutant: Option<Mutant>,
    /// Whether to print all events to standard output.
    pub trace: bool,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// A digest of all events, and their number.
    pub digest: (u64, u64),
    /// The bytes that the gateway sent to all parties.
    pub transcript: Transcript,
    /// The violations.
    pub violations: Vec<String>,
    /// How requests ended.
    pub ends: Ends,
    /// The number of iterations of all loops.
    pub turns: u64,
    /// The duration of the run, in the time of the world.
    pub lasted: Duration,
    /// The number of programs that were started.
    pub programs: usize,
}

/// The kind of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// The gateway with programs and databases.
    Gateway,
    /// The gateway with HTTP servers.
    Http,
    /// The gateway with spawned HTTP servers.
    Hosts,
    /// The event loop alone, with a handler that sends back what it receives.
    Echo,
}

impl Job {
    /// All kinds.
    pub const ALL: &[Self] = &[Self::Gateway, Self::Http, Self::Hosts, Self::Echo];

    /// Returns the environment variable that selects this kind for a replay; `None` for [`Job::Gateway`].
    #[must_use]
    pub const fn variable(self) -> Option<&'static str> {
        match self {
            Self::Gateway => None,
            Self::Http => Some("SIMULATE_HTTP"),
            Self::Hosts => Some("SIMULATE_HOSTS"),
            Self::Echo => Some("SIMULATE_ECHO"),
        }
    }

    /// Runs the world of a seed to its end.
    #[must_use]
    pub fn run(self, options: Options) -> Report {
        let seed = options.seed;
        match self {
            Self::Gateway => {
                let go = |shared: &Shared, turns: &mut u64| Run::new(shared, seed)?.go(turns);
                run_with(options, go, |world| check::check(world))
            }
            Self::Http | Self::Hosts => {
                let go = |shared: &Shared, turns: &mut u64| {
                    match self {
                        Self::Hosts => shared.lock().turn_to_hosts(),
                        _ => shared.lock().turn_to_http(),
                    }
                    Run::new(shared, seed)?.go_before_servers(turns)
                };
                run_with(options, go, |world| {
                    let is_clean = world.record.is_clean();
                    check::http::check(&mut world.http, &world.scenario, is_clean)
                })
            }
            Self::Echo => {
                let go = |shared: &Shared, turns: &mut u64| echo::run(shared, seed, turns);
                run_with(options, go, |world| echo::check(world))
            }
        }
    }
}

fn run_with(
    options: Options,
    go: impl FnOnce(&Shared, &mut u64) -> Result<(), String>,
    check: fn(&mut World) -> Found,
) -> Report {
    let scenario = Scenario::new(options.seed, options.shards);
    let planted = Planted {
        mutant: options.mutant,
        chances: usize::try_from(options.seed % 23).unwrap_or_default(),
        ..Planted::default()
    };
    let world = World::new(options.seed, scenario, planted, options.trace);
    let shared = Shared::new(world);
    let mut turns = 0;
    let ran = catch_unwind(AssertUnwindSafe(|| go(&shared, &mut turns)));
    lockstep::end_all(&shared);
    let mut world = shared.lock();
    match ran {
        Ok(Ok(())) => {}
        Ok(Err(text)) => world.violation(text),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            world.violation(format!("a panic: {}", text.unwrap_or_default()));
        }
    }
    let Found { ends, violations } = check(&mut world);
    for text in violations {
        world.violation(text);
    }
    Report {
        seed: options.seed,
        digest: world.record.digest(),
        transcript: world.record.transcripts.transcript(),
        violations: std::mem::take(&mut world.record.violations),
        ends,
        turns,
        lasted: world.time.now,
        programs: world.workers.programs.len(),
    }
}

struct Run {
    shared: Shared,
    shards: Shards,
    turns: u64,
    turns_max: u64,
}

impl Run {
    fn new(shared: &Shared, seed: u64) -> Result<Self, String> {
        let shards = Shards::new(shared, seed)?;
        let turns_max = TURNS_MAX * shared.lock().scenario.shards as u64;
        Ok(Self { shared: shared.clone(), shards, turns: 0, turns_max })
    }

    fn go(mut self, turns: &mut u64) -> Result<(), String> {
        self.populate();
        let finish = self.shared.lock().scenario.finish;
        let ran = match finish {
            Finish::Calm => self.go_calmly(),
            Finish::Early(at) => self.turn_until(at).and_then(|()| self.drain()),
            Finish::Crash(at) => self.turn_until(at).and_then(|()| self.crash()),
        };
        *turns = self.turns;
        ran
    }

    fn go_before_servers(mut self, turns: &mut u64) -> Result<(), String> {
        self.shared.lock().populate_http();
        let ran = self.serve_visitors();
        *turns = self.turns;
        ran.and_then(|()| self.drain())
    }

    /// Runs until all visitors are done, and one more visitor was answered after the last fault.
    fn serve_visitors(&mut self) -> Result<(), String> {
        while !self.shared.lock().http.visitors_are_done() {
            if self.now() > WORK_MAX {
                return Err("the visitors are not done".to_owned());
            }
            self.turn(Some(Duration::from_secs(1)))?;
        }
        self.shared.lock().progress.calm = true;
        self.wait_until_idle()?;
        let begun = self.now();
        loop {
            let visitor = self.shared.lock().visit_calmly();
            let answered = loop {
                if let Some(answered) = self.shared.lock().was_answered(visitor) {
                    break answered;
                }
                if self.now() - begun > RECOVER_MAX * 2 {
                    return Err("a visitor of calm times is not done".to_owned());
                }
                self.turn(Some(Duration::from_secs(1)))?;
            };
            if answered {
                return self.wait_until_idle();
            }
            if self.now() - begun > RECOVER_MAX {
                return Err(format!("{RECOVER_MAX:?} after the last fault nobody is answered"));
            }
            let at = self.now() + Duration::from_secs(2);
            self.turn_until(at)?;
        }
    }

    /// Schedules all clients and faults.
    fn populate(&self) {
        let mut world = self.shared.lock();
        let (clients, listeners) = (world.scenario.clients, world.scenario.listeners.len());
        for _ in 0..clients {
            let listener = world.chance.below(listeners);
            let after = world.chance.time(Duration::from_micros(100), Duration::from_secs(5));
            world.add_client(listener, after, false);
        }
        for _ in 0..world.scenario.asks {
            let at = world.chance.time(Duration::from_micros(100), Duration::from_secs(8));
            world.add_ask(at);
        }
        for _ in 0..world.scenario.cuts {
            let after = world.chance.time(Duration::from_millis(1), Duration::from_secs(10));
            world.after(after, ScheduledEvent::Cut);
        }
        if world.scenario.supervisor_lost {
            let after = world.chance.time(Duration::from_millis(1), Duration::from_secs(10));
            world.after(after, ScheduledEvent::SupervisorLost);
        }
    }

    /// Runs one iteration of a shard, or waits for `wait_max` without any.
    fn turn(&mut self, wait_max: Option<Duration>) -> Result<(), String> {
        self.turns += 1;
        if self.turns > self.turns_max {
            return Err(format!("more than {} turns", self.turns_max));
        }
        let until = wait_max.map(|wait_max| self.now() + wait_max);
        self.shards.turn(until)?;
        let world = self.shared.lock();
        if world.progress.at_rest && !world.record.is_clean() {
            return Err("the run cannot go on".to_owned());
        }
        Ok(())
    }

    fn now(&self) -> Moment {
        self.shared.lock().time.now
    }

    fn turn_until(&mut self, at: Moment) -> Result<(), String> {
        while self.now() < at && !self.shards.has_ended() {
            let left = at - self.now();
            self.turn(Some(left))?;
        }
        Ok(())
    }

    fn go_calmly(&mut self) -> Result<(), String> {
        while !self.clients_are_done() {
            if self.now() > WORK_MAX {
                return Err("the clients are not done".to_owned());
            }
            self.turn(Some(Duration::from_secs(1)))?;
        }
        self.shared.lock().progress.calm = true;
        self.wait_until_idle()?;
        self.recover()?;
        self.wait_until_idle()?;
        self.drain()
    }

    fn clients_are_done(&self) -> bool {
        let world = self.shared.lock();
        world.users.clients.iter().all(crate::clients::Client::is_done)
    }

    /// Waits until the gateway is idle after the last request: no exchange, no slot in use, no connection.
    fn wait_until_idle(&mut self) -> Result<(), String> {
        let begun = self.now();
        loop {
            let status = self.status()?;
            let connections: u32 = status.listeners.iter().map(|it| it.connections).sum();
            let queued: u32 = status.pools.iter().map(|pool| pool.queued).sum();
            let workers = status.pools.iter().flat_map(|pool| &pool.workers);
            let in_flight: usize = workers.map(|worker| worker.in_flight).sum();
            if connections == 0 && queued == 0 && in_flight == 0 && status.exchanges == 0 {
                return Ok(());
            }
            if self.now() - begun > REST_MAX {
                return Err(format!("after {REST_MAX:?} without any client: {status:?}"));
            }
            let at = self.now() + Duration::from_millis(500);
            self.turn_until(at)?;
        }
    }

    fn status(&mut self) -> Result<Status, String> {
        let place = Arc::new(Mutex::new(None));
        let told = Arc::clone(&place);
        let reply = move |status| {
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
        };
        self.shards.access.status(reply);
        for _ in 0..10_000 {
            self.turn(Some(Duration::from_millis(1)))?;
            if let Some(status) = place.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Ok(status);
            }
        }
        Err("nobody answers the question for the status".to_owned())
    }

    /// Checks that a request is answered within a limited time after the last fault.
    fn recover(&mut self) -> Result<(), String> {
        let begun = self.now();
        loop {
            let client = self.shared.lock().add_client(0, Duration::from_millis(1), true);
            while !self.shared.lock().users.clients[client].is_done() {
                if self.now() - begun > RECOVER_MAX * 2 {
                    return Err("a client of calm times is not done".to_owned());
                }
                self.turn(Some(Duration::from_secs(1)))?;
            }
            let (reply, answered) = {
                let world = self.shared.lock();
                let reply =
                    String::from_utf8_lossy(&world.users.clients[client].received).into_owned();
                let answered = !reply.starts_with(['!', '-']) && reply.ends_with('\n');
                (reply, answered)
            };
            if answered {
                return Ok(());
            }
            if self.now() - begun > RECOVER_MAX {
                return Err(format!("{RECOVER_MAX:?} after the last fault still: {reply:?}"));
            }
            let at = self.now() + Duration::from_secs(2);
            self.turn_until(at)?;
        }
    }

    /// Drains the gateway. After a drain within its time limit nothing may be left.
    fn drain(&mut self) -> Result<(), String> {
        let begun = self.now();
        let within = {
            let mut world = self.shared.lock();
            world.execute(ScheduledEvent::Drain);
            if let (Some(again), false) = (world.scenario.drain_again, world.progress.calm) {
                world.after(again, ScheduledEvent::Drain);
            }
            world.scenario.drain
        };
        while !self.shards.has_ended() {
            if self.now() - begun > within + Duration::from_secs(30) {
                return Err(format!("not at its end {:?} after the drain", self.now() - begun));
            }
            self.turn(None)?;
            if self.shared.lock().progress.at_rest && !self.shards.has_ended() {
                return Err("a loop sleeps for ever in its drain".to_owned());
            }
        }
        // The clock of the loop is read once per iteration and has a resolution of one millisecond. After a second
        // order the gateway ends immediately and leaves unfinished work.
        let again = {
            let world = self.shared.lock();
            !world.progress.calm && world.scenario.drain_again.is_some()
        };
        let in_time = !again && self.now() - begun + Duration::from_millis(10) < within;
        if in_time {
            self.expect_nothing(self.shards.left)?;
        }
        let took = self.now() - begun;
        let calm = self.shared.lock().progress.calm;
        if calm && took > END_MAX {
            return Err(format!("the end of a gateway at rest took {took:?}"));
        }
        self.close_all();
        Ok(())
    }

    fn expect_nothing(
        &self,
        Unfinished { cut, streams, program_sockets }: Unfinished,
    ) -> Result<(), String> {
        let world = self.shared.lock();
        let alive = world.workers.programs.iter().filter(|program| program.is_alive()).count();
        let threads = world.workers.threads.running();
        let open = world.open_at_gateway().len();
        // A rejected connection is not waited for.
        let refuses = world.scenario.listeners.iter().any(|it| it.connections_max < 100);
        let checks = world.http.may_be_checks(&world.net);
        let left = if refuses { 0 } else { (streams + open).saturating_sub(2 * checks) };
        if cut + alive + threads + left + program_sockets == 0 {
            return Ok(());
        }
        Err(format!(
            "a drain in good time leaves {cut} requests, {streams} streams, {alive} programs, \
             {threads} threads, {open} descriptors, {program_sockets} places to serve"
        ))
    }

    /// Ends the daemon abruptly. Bytes that it had sent still arrive.
    fn crash(&mut self) -> Result<(), String> {
        self.shared.lock().note("the daemon crashes", 0, 0);
        self.shared.crash();
        self.shards.end_abruptly();
        lockstep::end_all(&self.shared);
        self.close_all();
        Ok(())
    }

    /// Closes the descriptors of the ended process and delivers everything in transit.
    fn close_all(&self) {
        let mut world = self.shared.lock();
        world.end_loops();
        for id in world.open_at_gateway() {
            world.close(id);
        }
        let until = world.time.now + Duration::from_secs(60);
        while let Some(scheduled_event) = world.time.next(Some(until)) {
            match scheduled_event {
                ScheduledEvent::Thread(_) | ScheduledEvent::Turn(_) => {}
                scheduled_event => world.execute(scheduled_event),
            }
        }
    }
}

/// Returns the command line that replays a run.
#[must_use]
pub fn replay(Options { seed, shards, mutant, .. }: Options, job: Job) -> String {
    let mutant =
        mutant.map_or_else(String::new, |mutant| format!("SIMULATE_PLANT={} ", mutant.as_str()));
    let job = job.variable().map_or_else(String::new, |name| format!("{name}=1 "));
    let shards = if shards == 1 { String::new() } else { format!("SIMULATE_SHARDS={shards} ") };
    format!(
        "SIMULATE_SEED={seed} {shards}{job}{mutant}cargo test -p roadstead-simulate -- --nocapture replay"
    )
}
