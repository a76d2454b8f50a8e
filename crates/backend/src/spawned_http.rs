//! Workers that are programs which serve HTTP on an assigned socket.
//!
//! What it is: the combination of a program (`programs.rs`), whose pipes carry only its log output, and a server
//! (`upstream.rs`), whose address is assigned at the start and released at the end. What it must never depend on: the
//! content of requests and replies.
//!
//! ```text
//!            program                                server
//!   start ─▶ Starting ── it accepts connections ──▶ Serving ◀── requests
//!   stop  ───────────────────────────────────────▶ retired ── nothing in flight ──▶ gone
//!            SIGTERM ◀───────────────────────────────────────────────────────────────┘
//!            it exits ───────────────────────────▶ retired, connections closed, gone
//! ```

use std::any::Any;
use std::time::Duration;

use event::{Address, Context, StreamId, TimerId};
use exchange::mutant::{Mutant, active};
use exchange::{ByWorker, Cause, PoolId, RequestId, WorkerId};
use spawn::PortOwner;

use crate::backend::{Backend, BackendContext};
use crate::connection_counts::ConnectionCounts;
use crate::programs::{ExitReport, Programs};
use crate::system::System;
use crate::upstream::Upstream;
use flow::backend_event::BackendEvent;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::stream_event::StreamEvent;
use flow::stream_owner::{StreamPurpose, WorkerTimer};
use observe::status::WorkerStatus;

mod config;
mod ports;
mod readiness;
mod socket;

pub use config::SpawnedHttpConfig;
use ports::{Made, Ports};
use readiness::{Readiness, Step};
use socket::ProgramSockets;

/// How long the end of a connection with an outstanding reply is delayed until the exit of the program is reported, so
/// that the outcome can contain its exit status. During this time the program receives no requests.
const EXIT_WAIT: Duration = Duration::from_millis(100);

/// The pause before the next connection to a program with a full listen backlog.
const BACKLOG_PAUSE: Duration = Duration::from_millis(5);
/// The minimum time for which other processes may keep open the connections of a program that has exited.
const STOP_TIMEOUT_MIN: Duration = Duration::from_millis(20);

/// An event that is delayed until it is known whether the program has exited.
struct Delayed {
    worker: WorkerId,
    report: BackendEvent,
}

/// A program that has exited. Its connections may contain unread replies.
struct Exited {
    worker: WorkerId,
    /// The exit message for unanswered requests.
    text: ExitMessage,
    /// The event that reports its end; it is sent later.
    report: BackendEvent,
}

/// The programs of one pool that serve HTTP.
pub(crate) struct SpawnedHttp {
    pool_id: PoolId,
    programs: Programs,
    servers: Upstream,
    sockets: ProgramSockets,
    ports: Ports,
    /// Programs that do not serve yet.
    readiness_checks: Vec<Readiness>,
    delayed: Vec<Delayed>,
    delayed_timer: Option<TimerId>,
    exited: Vec<Exited>,
    exited_timer: Option<TimerId>,
    backlog_timer: Option<TimerId>,
    /// How long other processes may keep open the connections of a program that has exited.
    stop_timeout: Duration,
}

impl SpawnedHttp {
    pub(crate) fn new(pool: (PoolId, &str), config: SpawnedHttpConfig) -> Self {
        let SpawnedHttpConfig { program, servers, socket } = config;
        Self {
            pool_id: pool.0,
            stop_timeout: program.stop_timeout.max(STOP_TIMEOUT_MIN),
            sockets: ProgramSockets::new(socket, program.arguments.clone()),
            ports: Ports::default(),
            programs: Programs::new(pool, program),
            servers: Upstream::new(pool, servers, None),
            readiness_checks: Vec::new(),
            delayed: Vec::new(),
            delayed_timer: None,
            exited: Vec::new(),
            exited_timer: None,
            backlog_timer: None,
        }
    }

    /// Runs `act` on the processes and handles their events.
    fn with_programs<R>(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        act: impl FnOnce(&mut Programs, &mut BackendContext<'_, '_>) -> R,
    ) -> R {
        let mut inner = Vec::new();
        let result = act(&mut self.programs, &mut cx.with_events(&mut inner));
        self.handle_program_events(cx, inner);
        for readiness_check in &mut self.readiness_checks {
            if self.programs.runs(readiness_check.worker) {
                readiness_check.begin(cx.io);
            }
        }
        result
    }

    fn with_server(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        act: impl FnOnce(&mut Upstream, &mut BackendContext<'_, '_>),
    ) {
        let mut inner = Vec::new();
        act(&mut self.servers, &mut cx.with_events(&mut inner));
        if self.servers.has_full_backlog() {
            let key = WorkerTimer::FullBacklog.key(self.pool_id);
            let io = &mut *cx.io;
            self.backlog_timer.get_or_insert_with(|| io.timer_of(key, io.now() + BACKLOG_PAUSE));
        }
        self.handle_server_events(cx, worker, inner);
    }

    fn handle_program_events(&mut self, cx: &mut BackendContext<'_, '_>, inner: Vec<BackendEvent>) {
        for report in inner {
            match report {
                BackendEvent::Retired { worker } => {
                    self.with_server(cx, worker, |servers, cx| servers.retire(cx, worker));
                }
                BackendEvent::StartFailed { worker } => {
                    self.end_readiness_check(cx.io, worker);
                    self.sockets.leave(worker);
                    self.ports.leave(worker);
                    cx.events.push(report);
                }
                BackendEvent::Ended { worker, .. } => {
                    self.end_readiness_check(cx.io, worker);
                    self.handle_exit(cx, worker, report);
                }
                report => cx.events.push(report),
            }
        }
    }

    /// Handles the exit of a process. Its unread replies are delivered before its end is reported.
    fn handle_exit(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        report: BackendEvent,
    ) {
        let text = ExitMessage(self.programs.name(worker), self.programs.exit_report.clone());
        self.sockets.leave(worker);
        self.ports.leave(worker);
        let (of_it, others) = self.delayed.drain(..).partition(|delayed| delayed.worker == worker);
        self.delayed = others;
        let of_it: Vec<Delayed> = of_it;
        cx.events.extend(of_it.into_iter().map(|delayed| with_exit_cause(delayed.report, &text)));
        let exited = Exited { worker, text, report };
        if self.servers.load(worker.into()).0 == 0 || active(Mutant::LastWords) {
            return self.report_end(cx, exited);
        }
        self.exited.push(exited);
        let stop_timeout = self.stop_timeout;
        let key = WorkerTimer::Exited.key(self.pool_id);
        self.exited_timer.get_or_insert_with(|| cx.io.timer_of(key, cx.io.now() + stop_timeout));
    }

    /// Reports the end of a program.
    fn report_end(&mut self, cx: &mut BackendContext<'_, '_>, exited: Exited) {
        let Exited { worker, text, report } = exited;
        let mut inner = Vec::new();
        self.servers.mark_gone(&mut cx.with_events(&mut inner), worker);
        let inner =
            inner.into_iter().filter(|report| !matches!(report, BackendEvent::Ended { .. }));
        cx.events.extend(inner.map(|report| with_exit_cause(report, &text)));
        cx.events.push(report);
    }

    /// Removes and returns a program that has exited.
    fn exited(&mut self, worker: WorkerId) -> Option<Exited> {
        let found = self.exited.iter().position(|exited| exited.worker == worker)?;
        Some(self.exited.swap_remove(found))
    }

    /// Reports the end of programs whose connections are kept open by other processes. A program with a reply that
    /// waits for its client is still waited for.
    fn report_all_ends(&mut self, cx: &mut BackendContext<'_, '_>) {
        let (held, silent): (Vec<_>, Vec<_>) = std::mem::take(&mut self.exited)
            .into_iter()
            .partition(|exited| self.servers.is_held(cx.io, exited.worker));
        self.exited = held;
        silent.into_iter().for_each(|exited| self.report_end(cx, exited));
        if !self.exited.is_empty() {
            let key = WorkerTimer::Exited.key(self.pool_id);
            self.exited_timer = Some(cx.io.timer_of(key, cx.io.now() + self.stop_timeout));
        }
    }

    fn handle_server_events(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        inner: Vec<BackendEvent>,
    ) {
        let (mut died, mut late) = (false, false);
        for report in inner {
            match report {
                BackendEvent::Started { .. } => {}
                BackendEvent::Ended { worker, expected, reached: _ } => match self.exited(worker) {
                    Some(exited) => self.report_end(cx, exited),
                    None => self.programs.drain(cx, worker, expected),
                },
                BackendEvent::Answered { ref outcome, .. }
                    if outcome.end().cause == Cause::Died =>
                {
                    let gone = self.exited.iter().find(|exited| exited.worker == worker);
                    if let Some(exited) = gone {
                        cx.events.push(with_exit_cause(report, &exited.text));
                        continue;
                    }
                    died = true;
                    self.delay(cx.io, worker, report);
                }
                BackendEvent::Released { .. } if died => self.delay(cx.io, worker, report),
                BackendEvent::Answered { ref outcome, .. } => {
                    late |= outcome.end().cause == Cause::Deadline;
                    self.programs.check_memory(cx, worker);
                    cx.events.push(report);
                }
                report => cx.events.push(report),
            }
        }
        if late {
            // A program that exceeds a timeout receives no more requests, and ends when the other requests in flight
            // are answered.
            self.retire(cx, worker);
        }
    }

    fn delay(&mut self, io: &mut Context<'_>, worker: WorkerId, report: BackendEvent) {
        self.delayed.push(Delayed { worker, report });
        let key = WorkerTimer::Delayed.key(self.pool_id);
        self.delayed_timer.get_or_insert_with(|| io.timer_of(key, io.now() + EXIT_WAIT));
    }

    /// Ends the readiness check of a program.
    fn end_readiness_check(&mut self, io: &mut Context<'_>, worker: WorkerId) {
        if let Some(found) = self
            .readiness_checks
            .iter()
            .position(|readiness_check| readiness_check.worker == worker)
        {
            self.readiness_checks.swap_remove(found).end(io);
        }
    }

    /// Handles an established connection of the readiness check.
    fn handle_connected(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        stream: StreamId,
    ) {
        let owner = self.port_owner(cx.io, worker, stream, cx.system);
        let Some(readiness_check) = self
            .readiness_checks
            .iter_mut()
            .find(|readiness_check| readiness_check.worker == worker)
        else {
            return cx.io.close(stream);
        };
        if readiness_check.handle_connected(cx.io, stream, owner) == Step::Accepts {
            self.end_readiness_check(cx.io, worker);
            self.with_server(cx, worker, |servers, cx| servers.start(cx, worker));
            self.programs.accepts(cx, worker);
        }
    }

    /// Returns which process accepts a connection to the address of a program.
    pub(crate) fn port_owner(
        &mut self,
        io: &Context<'_>,
        worker: WorkerId,
        stream: StreamId,
        system: &System,
    ) -> PortOwner {
        let Some(address) = self.servers.server_address(worker) else { return PortOwner::Nobody };
        let (name, pid) = (self.programs.name(worker), self.programs.pid(worker));
        let made = Made { stream, worker, name: &name, pid, address };
        self.ports.look(io, &made, system)
    }

    /// Handles a failed or ended connection of the readiness check.
    fn handle_closed(&mut self, io: &mut Context<'_>, worker: WorkerId, stream: StreamId) {
        let mut checks = self.readiness_checks.iter_mut();
        if let Some(check) = checks.find(|check| check.worker == worker) {
            check.handle_closed(io, stream);
        }
    }
}

impl Backend for SpawnedHttp {
    /// Applies new settings. Settings of processes apply to processes started from now on, and settings of requests
    /// apply immediately.
    fn configure(
        &mut self,
        config: Box<dyn Any>,
        _names: &ByWorker<Option<String>>,
        _connections: Option<ConnectionCounts>,
    ) {
        let Ok(config) = config.downcast::<SpawnedHttpConfig>() else { return };
        let SpawnedHttpConfig { program, servers, socket } = *config;
        self.stop_timeout = program.stop_timeout.max(STOP_TIMEOUT_MIN);
        self.sockets.handle_config(socket, program.arguments.clone());
        self.programs.handle_config(program);
        self.servers.handle_tuning(servers);
    }

    fn start(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        let (address, options) = match self.sockets.make(worker, &mut *cx.system.spawner) {
            Ok(made) => made,
            Err(error) => {
                let name = self.programs.name(worker);
                tracing::warn!(worker = name, "has no socket to serve on: {error}");
                return cx.events.push(BackendEvent::StartFailed { worker });
            }
        };
        self.readiness_checks.push(Readiness::new(
            (self.pool_id, worker),
            address.clone(),
            options.socket.clone(),
        ));
        self.servers.set_address(worker, address, &self.programs.name(worker));
        self.with_programs(cx, |programs, cx| programs.start(cx, worker, options));
    }

    /// Stops an idle program.
    fn stop(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        if self.is_starting(worker) {
            return self.with_programs(cx, |programs, cx| programs.stop(cx, worker));
        }
        self.with_server(cx, worker, |servers, cx| servers.stop(cx, worker));
    }

    /// Stops a program as soon as its requests in flight are answered.
    fn retire(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.with_server(cx, worker, |servers, cx| servers.drain(cx, worker));
    }

    fn dispatch(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        request: Request,
        meta: RequestMeta,
        more_follow: bool,
    ) {
        self.servers.dispatch(cx, worker, request, meta, more_follow);
    }

    fn control(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        id: RequestId,
        word: RequestControl,
    ) {
        self.with_server(cx, worker, |servers, cx| servers.control(cx, worker, id, word));
    }

    /// Handles an event on a stream to a program.
    fn on_stream(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        (stream, purpose): (StreamId, StreamPurpose),
        heard: StreamEvent<'_, '_>,
    ) {
        match (purpose, heard) {
            (StreamPurpose::Connection(link), heard) => match self.servers.worker_of(link) {
                Some(worker) => {
                    let owner = match heard {
                        StreamEvent::Connected => self.port_owner(cx.io, worker, stream, cx.system),
                        _ => PortOwner::Program,
                    };
                    self.with_server(cx, worker, |servers, cx| match owner {
                        PortOwner::Program => servers.handle_stream_event(cx, link, heard),
                        PortOwner::Nobody | PortOwner::Other(_) => servers.refuse(cx, link),
                    });
                }
                None => self.servers.handle_stream_event(cx, link, heard),
            },
            (StreamPurpose::Pipe(worker, pipe), heard) => {
                self.with_programs(cx, |programs, cx| {
                    programs.handle_stream_event(cx, (worker, pipe), heard);
                });
            }
            (StreamPurpose::ReadinessCheck(worker), StreamEvent::Connected) => {
                self.handle_connected(cx, worker, stream);
            }
            (StreamPurpose::ReadinessCheck(worker), StreamEvent::Closed(_)) => {
                self.handle_closed(cx.io, worker, stream);
            }
            // No request is sent on this stream.
            (StreamPurpose::ReadinessCheck(_), StreamEvent::Data(data)) => {
                data.consume(data.bytes().len());
            }
            (StreamPurpose::ReadinessCheck(_), _) => {}
        }
    }

    /// Handles a timer.
    fn on_timer(&mut self, cx: &mut BackendContext<'_, '_>, (timer, of): (TimerId, WorkerTimer)) {
        match of {
            WorkerTimer::FullBacklog if self.backlog_timer == Some(timer) => {
                cx.io.cancel_timer(timer);
                self.backlog_timer = None;
                while let Some(worker) = self.servers.next_full_backlog() {
                    self.with_server(cx, worker, |servers, cx| {
                        servers.retry_full_backlog(worker, cx.events);
                    });
                }
            }
            WorkerTimer::Exited if self.exited_timer == Some(timer) => {
                cx.io.cancel_timer(timer);
                self.exited_timer = None;
                self.report_all_ends(cx);
            }
            WorkerTimer::Delayed if self.delayed_timer == Some(timer) => {
                cx.io.cancel_timer(timer);
                self.delayed_timer = None;
                cx.events.extend(self.delayed.drain(..).map(|delayed| delayed.report));
            }
            WorkerTimer::ReadinessCheck(worker) => {
                let mut readiness_checks = self.readiness_checks.iter_mut();
                let readiness_check = readiness_checks.find(|readiness_check| {
                    readiness_check.worker == worker && readiness_check.is_timer(timer)
                });
                if let Some(readiness_check) = readiness_check {
                    readiness_check.handle_timer(cx.io);
                }
            }
            WorkerTimer::Program(worker) => {
                self.with_programs(cx, |programs, cx| programs.handle_timer(cx, (timer, worker)));
            }
            // The timer is stale.
            _ => {}
        }
    }

    /// Handles a report of the process supervisor.
    fn on_process(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        report: spawn::Report,
    ) {
        self.with_programs(cx, |programs, cx| programs.on_process(cx, worker, report));
    }

    fn accepts(
        &mut self,
        io: &Context<'_>,
        worker: WorkerId,
        stream: StreamId,
        system: &System,
    ) -> bool {
        self.port_owner(io, worker, stream, system) == PortOwner::Program
    }

    /// Returns the address of a program.
    fn address(&self, worker: WorkerId) -> Option<&Address> {
        self.servers.server_address(worker)
    }

    fn is_starting(&self, worker: WorkerId) -> bool {
        self.readiness_checks.iter().any(|readiness_check| readiness_check.worker == worker)
    }

    fn is_empty(&self) -> bool {
        self.programs.is_empty() && self.delayed.is_empty() && self.exited.is_empty()
    }

    fn status(&self) -> Vec<WorkerStatus> {
        self.programs.status_with(|worker| self.servers.load(worker))
    }
}

/// The name and the exit report of a program.
#[derive(Debug)]
struct ExitMessage(String, ExitReport);

/// Returns the event. If the exit of the program is its cause, the event contains the exit report.
fn with_exit_cause(
    report: BackendEvent,
    ExitMessage(name, exit_report): &ExitMessage,
) -> BackendEvent {
    match report {
        BackendEvent::Answered { id, outcome } if outcome.end().cause == Cause::Died => {
            BackendEvent::Answered { id, outcome: exit_report.outcome(outcome.end().phase, name) }
        }
        report => report,
    }
}
