//! Active health checks.
//!
//! What it is: for each worker of one pool the running check, the time of the next check, and the last result. What it
//! depends on: connections, lines, HTTP, programs of the operator. What it must never depend on: the consequences of a
//! result, which `pool` determines.
//!
//! ```text
//!   Idle ──due──▶ Running ──────result──────▶ Idle
//!                   └──────── timeout, bad ──────┘
//! ```
//!
//! Checks of several workers are spread over the interval. A worker whose checks fail is checked at least every five
//! seconds. At most one check per worker is running; the program of a check counts until its process has ended, also
//! after the timeout. A program receives its check line only while it is idle: a busy
//! program either answers, or is killed at its deadline.

mod config;
mod probe;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use event::{Context, Data, DeadlineName, Direction, Fd, Reason, StreamId, StreamLimits};
use exchange::{ByWorker, Outcome, PoolId, Random, Verdict as Verdicts, WorkerId, WorkerIndex};
use spawn::Stop;

use crate::backend::BackendContext;
use crate::system::System;
use flow::backend_event::BackendEvent;
use flow::stream_event::StreamEvent;
use flow::stream_owner::StreamOwner;

pub use config::{CheckConfig, HttpProbeConfig, ProbeConfig, check_address};
pub use probe::CheckResult;
use probe::{Seen, Verdict};

/// The deadline of the stream of a check.
const CHECK: DeadlineName = DeadlineName(0);
/// The maximum number of unread bytes of a reply.
const HOLD_MAX: usize = 64 << 10;
/// The maximum interval after a failed check, so that a recovery is detected soon.
const FAILING_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// The interval varies by up to one part in `JITTER`.
const JITTER: u64 = 10;

/// The check state of a worker index: its current worker and the results of its checks.
#[derive(Debug, Default)]
struct Target {
    /// The worker to check; `None`: there is none.
    worker: Option<WorkerId>,
    due: Option<Instant>,
    running: Option<Running>,
    /// The worker that is being checked. The result does not apply to another one.
    of: Option<WorkerId>,
    /// The number of a check request without a reply. The check may have timed out already.
    owed: Option<u64>,
    /// The number of consecutive failed checks.
    bad: u32,
    /// The time and the result of the last check.
    last: Option<(Instant, CheckResult)>,
}

/// A running check.
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
    /// A request to a program, with its number.
    Query {
        number: u64,
        until: Instant,
    },
}

impl Running {
    const fn until(&self) -> Option<Instant> {
        match self {
            Self::Stream { .. } => None,
            Self::Program { until, .. } | Self::Query { until, .. } => Some(*until),
        }
    }
}

/// A health check that is sent as a request.
#[derive(Debug)]
pub struct ProbeRequest {
    /// The worker to check.
    pub worker: WorkerId,
    /// The number of the check, unique within its pool.
    pub number: u64,
    /// The body of the request.
    pub line: String,
}

/// The checks of one pool.
#[derive(Debug)]
pub(crate) struct Checks {
    pool: String,
    config: CheckConfig,
    targets: ByWorker<Target>,
    /// The time of the next action, or an earlier time.
    next: Option<Instant>,
    random: Random,
    numbers: u64,
    made: u64,
    failed: u64,
}

impl Checks {
    pub(crate) fn new(pool: &str, config: CheckConfig, seed: u64) -> Self {
        Self {
            pool: pool.to_owned(),
            config,
            targets: ByWorker::default(),
            next: None,
            random: Random::new(seed),
            numbers: 0,
            made: 0,
            failed: 0,
        }
    }

    /// Applies new settings. Running checks continue and count.
    pub(crate) fn handle_config(&mut self, mut config: CheckConfig, now: Instant) {
        let hastened = config.interval < self.config.interval;
        if config.names.as_slice().is_empty() {
            // Workers without names have the addresses that were assigned at their start.
            config.addresses = std::mem::take(&mut self.config.addresses);
        }
        self.config = config;
        if hastened {
            for place in self.targets.indices() {
                let soon = self.below(self.config.interval);
                let target = &mut self.targets[place];
                target.due = target.due.min(target.due.and_then(|_| now.checked_add(soon)));
                self.schedule_by(target_time(&self.targets[place]));
            }
        }
    }

    /// Applies a new address of a named server.
    pub(crate) fn handle_moved(&mut self, name: &str, to: SocketAddr) {
        let CheckConfig { addresses, names, port, .. } = &mut self.config;
        let named = addresses.values_mut().zip(names.values());
        for (address, _) in named.filter(|(_, it)| *it == name) {
            *address = check_address(&event::Address::Internet(to), *port);
        }
    }

    /// Ends all running checks.
    pub(crate) fn end_all(&mut self, io: &mut Context<'_>, system: &mut System) {
        for target in self.targets.values_mut() {
            match target.running.take() {
                Some(Running::Stream { stream, .. }) => io.close(stream),
                Some(Running::Program { token, .. }) => system.spawner.stop(token, Stop::Kill),
                Some(Running::Query { .. }) | None => {}
            }
        }
    }

    /// Returns the number of checks, and how many of them failed.
    pub(crate) const fn counts(&self) -> (u64, u64) {
        (self.made, self.failed)
    }

    /// Returns the result of the last check of a worker, and how long ago it was.
    pub(crate) fn last(&self, place: WorkerIndex, now: Instant) -> Option<CheckResult> {
        let (at, CheckResult { text, kind }) = self.targets.get(place)?.last.as_ref()?;
        let ago = now.saturating_duration_since(*at).as_secs_f64();
        let dated = |said: &str| format!("{said}, {ago:.1}s ago");
        Some(CheckResult { text: dated(text), kind: dated(kind) })
    }

    /// Handles that a worker has started.
    pub(crate) fn handle_started(&mut self, now: Instant, worker: WorkerId) {
        let first = self.below(self.config.interval);
        let target = self.targets.at(worker);
        target.worker = Some(worker);
        target.bad = 0;
        target.owed = None;
        target.due = now.checked_add(first);
        self.schedule_by(target_time(&self.targets[worker]));
    }

    /// Handles the address that was assigned to a worker at its start.
    pub(crate) fn handle_address(&mut self, worker: WorkerId, address: &event::Address) {
        *self.config.addresses.at_with(worker, || address.clone()) = address.clone();
    }

    /// Handles that a worker has ended or is retiring.
    pub(crate) fn handle_gone(&mut self, worker: WorkerId) {
        if let Some(target) = self.target(worker) {
            target.worker = None;
            target.due = None;
        }
    }

    /// Handles that a request could not be delivered to this worker: it is checked now.
    pub(crate) fn check_now(&mut self, now: Instant, worker: WorkerId) {
        if let Some(target) = self.target(worker).filter(|target| target.running.is_none()) {
            target.due = Some(now);
            self.schedule_by(Some(now));
        }
    }

    fn target(&mut self, worker: WorkerId) -> Option<&mut Target> {
        let target = self.targets.get_mut(worker)?;
        (target.worker == Some(worker)).then_some(target)
    }

    pub(crate) const fn next_time(&self) -> Option<Instant> {
        self.next
    }

    fn schedule_by(&mut self, at: Option<Instant>) {
        self.next = [self.next, at].into_iter().flatten().min();
    }

    /// Starts due checks and ends those that have timed out. Returns the checks that must be sent as requests.
    pub(crate) fn run(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        pool: PoolId,
    ) -> Vec<ProbeRequest> {
        let now = cx.io.now();
        let mut requests = Vec::new();
        if self.next.is_none_or(|next| next > now) {
            return requests;
        }
        for place in self.targets.indices() {
            let target = &mut self.targets[place];
            if target.running.as_ref().and_then(Running::until).is_some_and(|until| until <= now) {
                if let Some(Running::Program { token, .. }) = &target.running {
                    cx.system.spawner.stop(*token, Stop::Kill);
                }
                self.end(now, place, Err("it did not end in time".into()), cx.events);
            }
            let target = &mut self.targets[place];
            if target.running.is_none() && target.due.is_some_and(|due| due <= now) {
                target.due = None;
                self.begin(cx, pool, place, &mut requests);
            }
        }
        self.next = self.targets.values().filter_map(target_time).min();
        requests
    }

    fn begin(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        pool: PoolId,
        place: WorkerIndex,
        requests: &mut Vec<ProbeRequest>,
    ) {
        let Some(worker) = self.targets[place].worker else { return };
        let until = cx.io.now() + self.config.timeout;
        self.numbers += 1;
        let running = match (&self.config.probe, self.config.addresses.get(place)) {
            // No signal has ended it yet. Processes of further checks could accumulate without limit.
            (ProbeConfig::Program(_), _)
                if cx.system.checks.values().any(|it| *it == (pool, place)) =>
            {
                let said = Err("the program of the last check has not ended".into());
                self.targets[place].of = Some(worker);
                return self.end(cx.io.now(), place, said, cx.events);
            }
            (ProbeConfig::Program(command), _) => {
                let name = self.config.names.get(place).cloned();
                let name = name.unwrap_or_else(|| format!("{}/{}", self.pool, worker.index()));
                let token = cx.system.check_token(pool, place);
                cx.system.spawner.start(token, spawn::Command { name, ..(**command).clone() });
                Running::Program { token, until }
            }
            (ProbeConfig::Line { .. }, None) if self.targets[place].owed.is_some() => {
                let said = Err("it owes an answer to the last check".into());
                self.targets[place].of = Some(worker);
                return self.end(cx.io.now(), place, said, cx.events);
            }
            (ProbeConfig::Line { send, .. }, None) => {
                let number = self.numbers;
                self.targets[place].owed = Some(number);
                requests.push(ProbeRequest { worker, number, line: send.clone() });
                Running::Query { number, until }
            }
            (probe, Some(address)) => {
                let limits = StreamLimits { recv_buffer_max: HOLD_MAX, ..StreamLimits::default() };
                let stream = cx.io.connect(address, limits);
                cx.io.deadline(stream, CHECK, Some(until));
                cx.io.set_key(stream, StreamOwner::Check { pool, target: place }.key());
                let shown = self.config.names.get(place).map_or("localhost", String::as_str);
                let (seen, bytes) = Seen::new(probe, shown);
                cx.io.send_bytes(stream, &bytes);
                Running::Stream { stream, seen: Box::new(seen) }
            }
            // A program on pipes has no address, and the validation of the configuration rejects such a check.
            (ProbeConfig::Tcp | ProbeConfig::Http(_), None) => return,
        };
        self.targets[place].running = Some(running);
        self.targets[place].of = Some(worker);
    }

    /// Records the result of a check.
    fn end(
        &mut self,
        now: Instant,
        place: WorkerIndex,
        said: Verdict,
        events: &mut Vec<BackendEvent>,
    ) {
        let target = &mut self.targets[place];
        target.running = None;
        if target.of.take() != target.worker {
            // The check was started for a worker that is gone.
            return self.schedule_next(now, place);
        }
        let good = said.is_ok();
        let (Ok(said) | Err(said)) = said;
        target.bad = if good { 0 } else { target.bad.saturating_add(1) };
        let text = said.text.clone();
        target.last = Some((now, said));
        self.made += 1;
        self.failed += u64::from(!good);
        let worker = target.worker;
        self.schedule_next(now, place);
        events.extend(worker.map(|worker| BackendEvent::Checked { worker, good, text }));
    }

    /// Schedules the next check of a worker.
    fn schedule_next(&mut self, now: Instant, place: WorkerIndex) {
        let target = &self.targets[place];
        if target.worker.is_none() {
            return;
        }
        let pause = match target.bad {
            0 => self.config.interval,
            _ => self.config.interval.min(FAILING_INTERVAL_MAX),
        };
        let pause = self.jitter(pause);
        self.targets[place].due = now.checked_add(pause);
        self.schedule_by(self.targets[place].due);
    }

    fn end_stream(&mut self, cx: &mut BackendContext<'_, '_>, place: WorkerIndex, said: Verdict) {
        if let Some(Running::Stream { stream, .. }) = self.targets[place].running {
            cx.io.close(stream);
            self.end(cx.io.now(), place, said, cx.events);
        }
    }

    fn seen(&mut self, place: WorkerIndex, of: StreamId) -> Option<&mut Seen> {
        match self.targets.get_mut(place)?.running.as_mut()? {
            Running::Stream { stream, seen } if *stream == of => Some(seen),
            _ => None,
        }
    }

    /// Handles an event on the stream of a check. When a connection was accepted, the caller verifies the accepting
    /// process and then calls [`Self::handle_connected`].
    pub(crate) fn handle_stream_event(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        place: WorkerIndex,
        stream: StreamId,
        heard: StreamEvent<'_, '_>,
    ) {
        match heard {
            StreamEvent::Data(data) => self.handle_data(cx, place, stream, data),
            StreamEvent::Eof => self.handle_eof(cx, place, stream),
            StreamEvent::Closed(reason) => {
                self.handle_closed(cx.io.now(), place, stream, reason, cx.events);
            }
            StreamEvent::Deadline(_) => self.handle_deadline(cx, place, stream),
            StreamEvent::Connected | StreamEvent::Drained | StreamEvent::Relayed(..) => {}
        }
    }

    pub(crate) fn handle_connected(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        place: WorkerIndex,
        stream: StreamId,
    ) {
        if self.seen(place, stream).is_some_and(|seen| seen.is_connection_alone()) {
            self.end_stream(cx, place, Ok("it takes connections".into()));
        }
    }

    /// Returns the worker that the running check of an index applies to.
    pub(crate) fn checked_worker(&self, place: WorkerIndex) -> Option<WorkerId> {
        self.targets.get(place)?.of
    }

    /// Handles that another process accepted the connection.
    pub(crate) fn handle_foreign_accept(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        place: WorkerIndex,
        stream: StreamId,
    ) {
        if self.seen(place, stream).is_some() {
            let said = "it does not listen on its port any more".to_owned();
            self.end_stream(cx, place, Err(said.into()));
        }
    }

    fn handle_data(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        place: WorkerIndex,
        stream: StreamId,
        data: &mut Data<'_>,
    ) {
        let Some(seen) = self.seen(place, stream) else {
            return data.consume(data.bytes().len());
        };
        if let Some(said) = seen.receive(data) {
            data.consume(data.bytes().len());
            self.end_stream(cx, place, said);
        }
    }

    fn handle_eof(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        place: WorkerIndex,
        stream: StreamId,
    ) {
        if let Some(seen) = self.seen(place, stream) {
            let said = seen.ended();
            self.end_stream(cx, place, said);
        }
    }

    fn handle_closed(
        &mut self,
        now: Instant,
        place: WorkerIndex,
        stream: StreamId,
        reason: Reason,
        events: &mut Vec<BackendEvent>,
    ) {
        if self.seen(place, stream).is_some() {
            if let Reason::ConnectFailed(why) = reason
                && why.kind() == std::io::ErrorKind::QuotaExceeded
            {
                // This is not a result for the worker. It is checked again after a pause.
                let target = &mut self.targets[place];
                (target.running, target.of) = (None, None);
                return self.schedule_next(now, place);
            }
            let said = match reason {
                // The address was refused before the system was asked: see `paths::SocketFile`.
                Reason::ConnectFailed(why)
                    if why.kind() == std::io::ErrorKind::PermissionDenied
                        && why.raw_os_error().is_none() =>
                {
                    "no connection: another user can have chosen the Unix socket; `roadstead check --connect` names the reason"
                        .to_owned()
                }
                Reason::ConnectFailed(why) => format!("no connection: {}", why.kind()),
                _ => "it ended the connection before its answer was whole".to_owned(),
            };
            self.end(now, place, Err(said.into()), events);
        }
    }

    fn handle_deadline(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        place: WorkerIndex,
        stream: StreamId,
    ) {
        if self.seen(place, stream).is_some() {
            self.end_stream(cx, place, Err("no answer in time".into()));
        }
    }

    /// Converts a report about a check program to a result; `None`: the program is still running. Its output is
    /// discarded.
    pub(crate) fn read_report(
        io: &mut Context<'_>,
        report: spawn::Report,
    ) -> Option<Result<String, String>> {
        match report {
            spawn::Report::Started { pipes, .. } => {
                for pipe in [pipes.stdout, pipes.stderr] {
                    let pipe = Fd::from(pipe);
                    io.adopt(pipe, Direction::In, StreamLimits::default());
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
            spawn::Report::SupervisorLost | spawn::Report::SupervisorReplaced => None,
        }
    }

    /// Handles the end of a check program.
    pub(crate) fn handle_program(
        &mut self,
        now: Instant,
        place: WorkerIndex,
        of: u64,
        said: Result<String, String>,
        events: &mut Vec<BackendEvent>,
    ) {
        let said = said.map(CheckResult::from).map_err(CheckResult::from);
        let running = self.targets.get(place).and_then(|target| target.running.as_ref());
        if matches!(running, Some(Running::Program { token, .. }) if *token == of) {
            self.end(now, place, said, events);
        }
    }

    /// Handles that a check request was not sent or not delivered. This is not a result for the worker.
    pub(crate) fn handle_not_sent(&mut self, now: Instant, number: u64) {
        let owes = |target: &Target| target.owed == Some(number);
        let found = self.targets.iter().find(|(_, target)| owes(target));
        let Some((place, _)) = found else { return };
        self.targets[place].owed = None;
        if matches!(self.targets[place].running, Some(Running::Query { .. })) {
            self.targets[place].running = None;
            self.schedule_next(now, place);
        }
    }

    /// Handles the outcome of a check request.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        of: u64,
        outcome: &Outcome,
        events: &mut Vec<BackendEvent>,
    ) {
        let owes = |target: &Target| target.owed == Some(of);
        let found = self.targets.iter().find(|(_, target)| owes(target));
        let Some((place, _)) = found else { return };
        let said = match (outcome, &self.config.probe) {
            (Outcome::Reply(line), ProbeConfig::Line { expect, .. }) => probe::line(line, expect),
            (outcome, _) => match outcome.end().cause.verdict() {
                Verdicts::Failed | Verdicts::Unknown => {
                    Err(format!("no answer: {}", outcome.end().cause.as_str()).into())
                }
                Verdicts::Answered | Verdicts::Refused | Verdicts::Left => {
                    return self.handle_not_sent(now, of);
                }
            },
        };
        self.targets[place].owed = None;
        // A late reply was already counted at the timeout.
        if matches!(self.targets[place].running, Some(Running::Query { number, .. }) if number == of)
        {
            self.end(now, place, said, events);
        }
    }

    /// Returns a random duration below `limit`.
    fn below(&mut self, limit: Duration) -> Duration {
        let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX).max(1);
        Duration::from_micros(self.random.draw() % limit)
    }

    fn jitter(&mut self, pause: Duration) -> Duration {
        let part = pause / u32::try_from(JITTER).unwrap_or(1);
        pause.saturating_sub(part) + self.below(part.saturating_mul(2))
    }
}

fn target_time(target: &Target) -> Option<Instant> {
    let until = target.running.as_ref().and_then(Running::until);
    until.or_else(|| target.due.filter(|_| target.running.is_none()))
}
