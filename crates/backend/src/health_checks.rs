//! Looks at workers while nobody asks them.
//!
//! What it is: for each worker of one pool the check that is on its way, when the next one is due, and
//! what the last one came to. What it knows: connections, lines, HTTP, programs of the operator. What
//! it must never know: what follows from a check; that is for `pool` to say.
//!
//! ```text
//!   Resting ──due──▶ Running ──what it came to──▶ Resting
//!                       └──── timeout, bad ───────┘
//! ```
//!
//! Checks of several workers are spread over the interval. A worker whose checks fail is checked at least every
//! five seconds. Only one check of a worker is on its way at a time. A program is asked its line
//! while it has nothing else to do: one that works shows that it lives, or is ended by its deadline.

mod config;
mod probe;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use event::{Calls, Data, DeadlineName, Direction, Fd, Reason, StreamId, StreamLimits};
use exchange::{Outcome, PoolId, Verdict as Verdicts, WorkerId};
use spawn::Stop;

use crate::system::System;
use flow::backend_event::BackendEvent;
use flow::stream_event::StreamEvent;
use flow::stream_owner::StreamOwner;

pub use config::{CheckConfig, HttpProbeConfig, ProbeConfig, check_address};
pub use probe::Remark;
use probe::{Seen, Verdict};

/// The deadline of a check's stream.
const CHECK: DeadlineName = DeadlineName(0);
/// Bytes of an answer that may wait to be looked at.
const HOLD_MAX: usize = 64 << 10;
/// A worker whose last check failed is checked again at least this soon, so that it is soon found to be back.
const FAILING_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// A check comes earlier or later than its interval by up to this part of it.
const JITTER: u64 = 10;

/// Of one place: the worker that has it, and what its checks say.
#[derive(Debug, Default)]
struct Target {
    /// None: nobody is there to be checked.
    worker: Option<WorkerId>,
    due: Option<Instant>,
    running: Option<Running>,
    /// Whom it looks at: what comes of it says nothing of another.
    of: Option<WorkerId>,
    /// The number of a line that it was asked and has not answered, perhaps too late already.
    owed: Option<u64>,
    /// Bad checks in a row.
    bad: u32,
    /// What the last one came to, and when.
    last: Option<(Instant, Remark)>,
}

/// A check on its way.
#[derive(Debug)]
enum Running {
    Stream {
        stream: StreamId,
        seen: Box<Seen>,
    },
    /// A program of the operator.
    Program {
        token: u64,
        until: Instant,
    },
    /// A line that a program was asked, under a number of its own.
    Asked {
        number: u64,
        until: Instant,
    },
}

impl Running {
    const fn until(&self) -> Option<Instant> {
        match self {
            Self::Stream { .. } => None,
            Self::Program { until, .. } | Self::Asked { until, .. } => Some(*until),
        }
    }
}

/// A line to be asked of a worker, as a request like others.
#[derive(Debug)]
pub struct ProbeRequest {
    pub worker: WorkerId,
    pub number: u64,
    pub line: String,
}

/// The checks of one pool.
#[derive(Debug)]
pub struct Checks {
    pool: String,
    plan: CheckConfig,
    targets: Vec<Target>,
    /// When something is to be done, or earlier.
    next: Option<Instant>,
    random: u64,
    numbers: u64,
    made: u64,
    failed: u64,
}

impl Checks {
    pub fn new(pool: &str, plan: CheckConfig, seed: u64) -> Self {
        Self {
            pool: pool.to_owned(),
            plan,
            targets: Vec::new(),
            next: None,
            random: seed,
            numbers: 0,
            made: 0,
            failed: 0,
        }
    }

    /// Checks as this plan says from now on. What runs is carried through, and counts.
    pub(crate) fn handle_plan(&mut self, mut plan: CheckConfig, now: Instant) {
        let hastened = plan.interval < self.plan.interval;
        if plan.names.is_empty() {
            // Workers without names have their addresses from their starts.
            plan.addresses = std::mem::take(&mut self.plan.addresses);
        }
        self.plan = plan;
        if hastened {
            for place in 0..self.targets.len() {
                let soon = self.below(self.plan.interval);
                let target = &mut self.targets[place];
                target.due = target.due.min(target.due.and_then(|_| now.checked_add(soon)));
                self.hasten(target_time(&self.targets[place]));
            }
        }
    }

    /// A server that has a name has another address: it is looked at there from now on.
    pub fn handle_moved(&mut self, name: &str, to: SocketAddr) {
        let CheckConfig { addresses, names, port, .. } = &mut self.plan;
        for (address, _) in addresses.iter_mut().zip(names).filter(|(_, it)| *it == name) {
            *address = check_address(&event::Address::Internet(to), *port);
        }
    }

    /// There are no checks any more: those that run are ended.
    pub fn end_all(&mut self, calls: &mut Calls<'_>, system: &mut System) {
        for target in &mut self.targets {
            match target.running.take() {
                Some(Running::Stream { stream, .. }) => calls.close(stream),
                Some(Running::Program { token, .. }) => system.spawner.stop(token, Stop::Kill),
                Some(Running::Asked { .. }) | None => {}
            }
        }
    }

    /// Checks made, and how many of them were bad.
    pub const fn counts(&self) -> (u64, u64) {
        (self.made, self.failed)
    }

    /// What the last check of the worker at a place came to, and how long ago.
    pub fn last(&self, place: usize, now: Instant) -> Option<Remark> {
        let (at, Remark { text, kind }) = self.targets.get(place)?.last.as_ref()?;
        let ago = now.saturating_duration_since(*at).as_secs_f64();
        let dated = |said: &str| format!("{said}, {ago:.1}s ago");
        Some(Remark { text: dated(text), kind: dated(kind) })
    }

    /// A worker runs.
    pub fn handle_started(&mut self, now: Instant, worker: WorkerId) {
        if self.targets.len() <= worker.index() {
            self.targets.resize_with(worker.index() + 1, Target::default);
        }
        let first = self.below(self.plan.interval);
        let target = &mut self.targets[worker.index()];
        target.worker = Some(worker);
        target.bad = 0;
        target.owed = None;
        target.due = now.checked_add(first);
        self.hasten(target_time(&self.targets[worker.index()]));
    }

    /// A worker serves at an address that it has from its start.
    pub(crate) fn handle_home(&mut self, worker: WorkerId, address: &event::Address) {
        let addresses = &mut self.plan.addresses;
        if addresses.len() <= worker.index() {
            addresses.resize(worker.index() + 1, address.clone());
        }
        addresses[worker.index()] = address.clone();
    }

    /// A worker is gone, or serves nobody any more.
    pub fn handle_gone(&mut self, worker: WorkerId) {
        if let Some(target) = self.target(worker) {
            target.worker = None;
            target.due = None;
        }
    }

    /// A request could not be brought to this worker: it is looked at now.
    pub(crate) fn handle_doubt(&mut self, now: Instant, worker: WorkerId) {
        if let Some(target) = self.target(worker).filter(|target| target.running.is_none()) {
            target.due = Some(now);
            self.hasten(Some(now));
        }
    }

    fn target(&mut self, worker: WorkerId) -> Option<&mut Target> {
        let target = self.targets.get_mut(worker.index())?;
        (target.worker == Some(worker)).then_some(target)
    }

    pub const fn next_time(&self) -> Option<Instant> {
        self.next
    }

    fn hasten(&mut self, at: Option<Instant>) {
        self.next = [self.next, at].into_iter().flatten().min();
    }

    /// Begins what is due, and ends what takes too long. Gives the lines that workers are to be
    /// asked.
    pub fn run(
        &mut self,
        calls: &mut Calls<'_>,
        pool: PoolId,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) -> Vec<ProbeRequest> {
        let now = calls.now();
        let mut questions = Vec::new();
        if self.next.is_none_or(|next| next > now) {
            return questions;
        }
        for place in 0..self.targets.len() {
            let target = &mut self.targets[place];
            if target.running.as_ref().and_then(Running::until).is_some_and(|until| until <= now) {
                if let Some(Running::Program { token, .. }) = &target.running {
                    system.spawner.stop(*token, Stop::Kill);
                }
                self.end(now, place, Err("it did not end in time".into()), up);
            }
            let target = &mut self.targets[place];
            if target.running.is_none() && target.due.is_some_and(|due| due <= now) {
                target.due = None;
                self.begin(calls, pool, place, system, &mut questions, up);
            }
        }
        self.next = self.targets.iter().filter_map(target_time).min();
        questions
    }

    fn begin(
        &mut self,
        calls: &mut Calls<'_>,
        pool: PoolId,
        place: usize,
        system: &mut System,
        questions: &mut Vec<ProbeRequest>,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(worker) = self.targets[place].worker else { return };
        let until = calls.now() + self.plan.timeout;
        self.numbers += 1;
        let running = match (&self.plan.probe, self.plan.addresses.get(place)) {
            (ProbeConfig::Program(command), _) => {
                let name = self.plan.names.get(place).cloned();
                let name = name.unwrap_or_else(|| format!("{}/{}", self.pool, worker.index()));
                let token = system.check_token(pool, place);
                system.spawner.start(token, spawn::Command { name, ..(**command).clone() });
                Running::Program { token, until }
            }
            (ProbeConfig::Line { .. }, None) if self.targets[place].owed.is_some() => {
                let said = Err("it owes an answer to the last check".into());
                self.targets[place].of = Some(worker);
                return self.end(calls.now(), place, said, up);
            }
            (ProbeConfig::Line { send, .. }, None) => {
                let number = self.numbers;
                self.targets[place].owed = Some(number);
                questions.push(ProbeRequest { worker, number, line: send.clone() });
                Running::Asked { number, until }
            }
            (probe, Some(address)) => {
                let limits = StreamLimits { hold_max: HOLD_MAX, ..StreamLimits::default() };
                let stream = calls.connect(address, limits);
                calls.deadline(stream, CHECK, Some(until));
                calls.set_key(stream, StreamOwner::Check { pool, target: place }.key());
                let shown = self.plan.names.get(place).map_or("localhost", String::as_str);
                let (seen, bytes) = Seen::new(probe, shown);
                calls.send_bytes(stream, &bytes);
                Running::Stream { stream, seen: Box::new(seen) }
            }
            // A program on pipes has no address: the settings do not allow such a check.
            (ProbeConfig::Tcp | ProbeConfig::Http(_), None) => return,
        };
        self.targets[place].running = Some(running);
        self.targets[place].of = Some(worker);
    }

    /// A check has come to its end.
    fn end(&mut self, now: Instant, place: usize, said: Verdict, up: &mut Vec<BackendEvent>) {
        let target = &mut self.targets[place];
        target.running = None;
        if target.of.take() != target.worker {
            // It was begun for one that is gone.
            return self.rest(now, place);
        }
        let good = said.is_ok();
        let (Ok(said) | Err(said)) = said;
        target.bad = if good { 0 } else { target.bad.saturating_add(1) };
        let text = said.text.clone();
        target.last = Some((now, said));
        self.made += 1;
        self.failed += u64::from(!good);
        let worker = target.worker;
        self.rest(now, place);
        up.extend(worker.map(|worker| BackendEvent::Checked { worker, good, text }));
    }

    /// The next check of a worker comes after a pause.
    fn rest(&mut self, now: Instant, place: usize) {
        let target = &self.targets[place];
        if target.worker.is_none() {
            return;
        }
        let pause = match target.bad {
            0 => self.plan.interval,
            _ => self.plan.interval.min(FAILING_INTERVAL_MAX),
        };
        let pause = self.jitter(pause);
        self.targets[place].due = now.checked_add(pause);
        self.hasten(self.targets[place].due);
    }

    fn end_stream(
        &mut self,
        calls: &mut Calls<'_>,
        place: usize,
        said: Verdict,
        up: &mut Vec<BackendEvent>,
    ) {
        if let Some(Running::Stream { stream, .. }) = self.targets[place].running {
            calls.close(stream);
            self.end(calls.now(), place, said, up);
        }
    }

    fn seen(&mut self, place: usize, of: StreamId) -> Option<&mut Seen> {
        match self.targets.get_mut(place)?.running.as_mut()? {
            Running::Stream { stream, seen } if *stream == of => Some(seen),
            _ => None,
        }
    }

    /// Something is heard on the stream of the check of a place. Who made its connection is known to
    /// whoever calls [`Self::handle_connected`].
    pub fn hear(
        &mut self,
        calls: &mut Calls<'_>,
        place: usize,
        stream: StreamId,
        heard: StreamEvent<'_, '_>,
        up: &mut Vec<BackendEvent>,
    ) {
        match heard {
            StreamEvent::Data(data) => self.handle_data(calls, place, stream, data, up),
            StreamEvent::Eof => self.handle_eof(calls, place, stream, up),
            StreamEvent::Closed(reason) => {
                self.handle_closed(calls.now(), place, stream, reason, up);
            }
            StreamEvent::Deadline(_) => self.handle_deadline(calls, place, stream, up),
            StreamEvent::Connected | StreamEvent::Drained | StreamEvent::Relayed(..) => {}
        }
    }

    pub(crate) fn handle_connected(
        &mut self,
        calls: &mut Calls<'_>,
        place: usize,
        stream: StreamId,
        up: &mut Vec<BackendEvent>,
    ) {
        if self.seen(place, stream).is_some_and(|seen| seen.is_connection_alone()) {
            self.end_stream(calls, place, Ok("it takes connections".into()), up);
        }
    }

    /// Whom the check that is on its way looks at.
    pub fn looks_at(&self, place: usize) -> Option<WorkerId> {
        self.targets.get(place)?.of
    }

    /// Somebody else took the connection.
    pub(crate) fn handle_taken(
        &mut self,
        calls: &mut Calls<'_>,
        place: usize,
        stream: StreamId,
        up: &mut Vec<BackendEvent>,
    ) {
        if self.seen(place, stream).is_some() {
            let said = "it does not listen on its port any more".to_owned();
            self.end_stream(calls, place, Err(said.into()), up);
        }
    }

    fn handle_data(
        &mut self,
        calls: &mut Calls<'_>,
        place: usize,
        stream: StreamId,
        data: &mut Data<'_>,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(seen) = self.seen(place, stream) else {
            return data.consume(data.bytes().len());
        };
        if let Some(said) = seen.receive(data) {
            data.consume(data.bytes().len());
            self.end_stream(calls, place, said, up);
        }
    }

    fn handle_eof(
        &mut self,
        calls: &mut Calls<'_>,
        place: usize,
        stream: StreamId,
        up: &mut Vec<BackendEvent>,
    ) {
        if let Some(seen) = self.seen(place, stream) {
            let said = seen.ended();
            self.end_stream(calls, place, said, up);
        }
    }

    fn handle_closed(
        &mut self,
        now: Instant,
        place: usize,
        stream: StreamId,
        reason: Reason,
        up: &mut Vec<BackendEvent>,
    ) {
        if self.seen(place, stream).is_some() {
            if reason == Reason::ConnectFailed(std::io::ErrorKind::QuotaExceeded) {
                // That says nothing of the worker: it is asked again after a pause.
                let target = &mut self.targets[place];
                (target.running, target.of) = (None, None);
                return self.rest(now, place);
            }
            let said = match reason {
                Reason::ConnectFailed(why) => format!("no connection: {why}"),
                _ => "it ended the connection before its answer was whole".to_owned(),
            };
            self.end(now, place, Err(said.into()), up);
        }
    }

    fn handle_deadline(
        &mut self,
        calls: &mut Calls<'_>,
        place: usize,
        stream: StreamId,
        up: &mut Vec<BackendEvent>,
    ) {
        if self.seen(place, stream).is_some() {
            self.end_stream(calls, place, Err("no answer in time".into()), up);
        }
    }

    /// What the report of the keeper means for the check that a program of the operator makes; none as
    /// long as it runs. What that writes is read and thrown away.
    pub(crate) fn read_report(
        calls: &mut Calls<'_>,
        report: spawn::Report,
    ) -> Option<Result<String, String>> {
        match report {
            spawn::Report::Started { pipes, .. } => {
                for pipe in [pipes.stdout, pipes.stderr] {
                    let pipe = Fd::from(pipe);
                    calls.adopt(pipe, Direction::In, StreamLimits::default());
                }
                None
            }
            spawn::Report::StartFailed { error, .. } => {
                Some(Err(format!("it cannot be started: {error}")))
            }
            spawn::Report::Exited { exit, .. } => Some(match exit.status {
                spawn::Status::Code(0) => Ok(exit.to_string()),
                _ => Err(exit.to_string()),
            }),
            spawn::Report::KeeperLost | spawn::Report::KeeperBack => None,
        }
    }

    /// A program of the operator has come to its end.
    pub(crate) fn handle_program(
        &mut self,
        now: Instant,
        place: usize,
        of: u64,
        said: Result<String, String>,
        up: &mut Vec<BackendEvent>,
    ) {
        let said = said.map(Remark::from).map_err(Remark::from);
        let running = self.targets.get(place).and_then(|target| target.running.as_ref());
        if matches!(running, Some(Running::Program { token, .. }) if *token == of) {
            self.end(now, place, said, up);
        }
    }

    /// A line was not asked, or never came to its worker: that says nothing of the worker.
    pub fn handle_unasked(&mut self, now: Instant, number: u64) {
        let owes = |target: &Target| target.owed == Some(number);
        let Some(place) = self.targets.iter().position(owes) else { return };
        self.targets[place].owed = None;
        if matches!(self.targets[place].running, Some(Running::Asked { .. })) {
            self.targets[place].running = None;
            self.rest(now, place);
        }
    }

    /// A worker answered the line that it was asked.
    pub fn handle_answer(
        &mut self,
        now: Instant,
        of: u64,
        outcome: &Outcome,
        up: &mut Vec<BackendEvent>,
    ) {
        let owes = |target: &Target| target.owed == Some(of);
        let Some(place) = self.targets.iter().position(owes) else { return };
        let said = match (outcome, &self.plan.probe) {
            (Outcome::Reply(line), ProbeConfig::Line { expect, .. }) => probe::line(line, expect),
            (outcome, _) => match outcome.end().cause.verdict() {
                Verdicts::Failed | Verdicts::Unknown => {
                    Err(format!("no answer: {}", outcome.end().cause.word()).into())
                }
                Verdicts::Answered | Verdicts::Refused | Verdicts::Left => {
                    return self.handle_unasked(now, of);
                }
            },
        };
        self.targets[place].owed = None;
        // One that comes too late was counted when its time was over.
        if matches!(self.targets[place].running, Some(Running::Asked { number, .. }) if number == of)
        {
            self.end(now, place, said, up);
        }
    }

    /// A time below `limit`.
    fn below(&mut self, limit: Duration) -> Duration {
        let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX).max(1);
        Duration::from_micros(self.draw() % limit)
    }

    fn jitter(&mut self, pause: Duration) -> Duration {
        let part = pause / u32::try_from(JITTER).unwrap_or(1);
        pause.saturating_sub(part) + self.below(part.saturating_mul(2))
    }

    /// The next number of a sequence (SplitMix64) that begins at the seed.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn target_time(target: &Target) -> Option<Instant> {
    let until = target.running.as_ref().and_then(Running::until);
    until.or_else(|| target.due.filter(|_| target.running.is_none()))
}
