//! Workers that are programs on pipes.
//!
//! ```text
//!   Starting ───ready───▶ Serving ──stop──▶ Ending: input closed ─stop_timeout─▶ TERM ─stop_timeout─▶ KILL
//!      │                     │                 ▲                                                         │
//!      └─StartFailed─▶ gone  └── not trusted ──┴──────────────────── KILL immediately                    │
//!                                              gone ◀──────────── exited and its output is read ─────────┘
//! ```
//!
//! When the output of a *Serving* program ends, the program is first *Silent* and then *Ending*. In the short time
//! between, its exit status and last messages may still arrive, so they can be included in the errors for its requests.
//!
//! If a process serves one request (`oneshot`), a worker is a slot. The slot is *Empty* until a request arrives. A
//! process is then started for the request, and the slot is empty again when the process has ended.
//!
//! A *Serving* program answers its requests in order. A program that writes unsolicited output, exceeds a limit or
//! misses a deadline gets no further request: it is killed and replaced. Requests that the kernel has accepted for it
//! end as unknown. Requests that are still in our buffer return to the head of the queue.

use std::sync::Arc;
use std::time::Duration;

use event::{Data, DeadlineName, Direction, StreamLimits};
use exchange::{ByWorker, PoolId, WorkerId, WorkerIndex};
use spawn::{Pipes, StartError};

use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;
use flow::stream_owner::{Pipe, WorkerTimer};
use observe::status::WorkerStatus;

mod audience;
mod backend;
mod config;
mod deadlines;
mod ending;
mod fault;
mod oneshot;
mod pipes;
mod program;
mod stderr;
mod stream_events;
mod trouble;

use audience::Audience;
pub use config::{LaunchPolicy, ProgramConfig, ProgramTimeouts, ReplyStreamConfig};
use deadlines::{ANSWER, FIRST, GAP, SLOW, STALL};
pub(crate) use fault::ExitReport;
use fault::Fault;
use pipes::{Check, PARTIAL, PoolAlignment, ProgramOutput, ProgramPipes, UNREAD_MAX};
use program::{Phase, Program};
use stderr::Stderr;

/// The programs of one pool.
pub(crate) struct Programs {
    pool: String,
    pool_id: PoolId,
    config: Arc<ProgramConfig>,
    live: ByWorker<Option<Program>>,
    /// What is known about the alignment of their replies with their requests.
    known: PoolAlignment,
    /// The exit report of the program that ended last.
    pub(crate) exit_report: ExitReport,
}

/// The launch options of one program, in addition to the configuration of the pool.
#[derive(Debug, Default)]
pub(crate) struct LaunchOptions {
    /// Replaces the arguments of the pool.
    pub(crate) arguments: Option<Vec<String>>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) socket: Option<spawn::Socket>,
}

impl Programs {
    pub(crate) fn new((id, pool): (PoolId, &str), config: Arc<ProgramConfig>) -> Self {
        Self {
            pool: pool.to_owned(),
            pool_id: id,
            config,
            live: ByWorker::default(),
            known: PoolAlignment::default(),
            exit_report: ExitReport::default(),
        }
    }

    fn find(&mut self, worker: WorkerId) -> Option<&mut Program> {
        let program = self.live.get_mut(worker)?;
        program.as_mut().filter(|program| program.worker == worker)
    }

    /// Sets the configuration of programs that are started from now on.
    pub(crate) fn handle_config(&mut self, config: Arc<ProgramConfig>) {
        self.config = config;
        self.known.is_strict = false;
        self.apply_alignment();
    }

    /// Passes what is known about alignment to all running programs.
    fn apply_alignment(&mut self) {
        let pipes_of_workers =
            self.live.values_mut().flatten().filter_map(|program| program.pipes.as_mut());
        pipes_of_workers.for_each(|pipes| pipes.handle_alignment(&self.config, self.known));
    }

    pub(crate) fn start(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        options: LaunchOptions,
    ) {
        let name = format!("{}/{}", self.pool, worker.index());
        let is_slot = self.config.framing.ends_with_stream();
        *self.live.at(worker) = Some(Program {
            worker,
            pool: self.pool_id,
            is_slot,
            pending: None,
            token: 0,
            name,
            pid: None,
            since: None,
            phase: Phase::Empty,
            pipes: None,
            stderr: Stderr::default(),
            prints: Stderr::default(),
            exit: None,
            timer: None,
            killed_for: None,
            expected: false,
            is_orphaned: false,
            asker: None,
            is_proven: false,
            served: 0,
            memory_checked_at: None,
            last_words: self.config.last_words,
            audience: Audience::of(&self.config),
        });
        if is_slot {
            cx.events.push(BackendEvent::Started { worker });
        } else {
            self.launch(cx, worker, options);
        }
    }

    /// Starts the process of a worker that has none.
    fn launch(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        options: LaunchOptions,
    ) {
        let config = Arc::clone(&self.config);
        let Some(program) = self.find(worker) else { return };
        program.token = cx.system.token(program.pool, worker);
        program.phase = Phase::Starting;
        let key = WorkerTimer::Program(worker).key(program.pool);
        program.timer = Some(cx.io.timer_of(key, cx.io.now() + config.times.start));
        let LaunchOptions { arguments, env, socket } = options;
        cx.system.spawner.start(
            program.token,
            spawn::Command {
                program: config.program.clone(),
                arguments: arguments.unwrap_or_else(|| config.arguments.clone()),
                cwd: config.cwd.clone(),
                env: config.env.iter().cloned().chain(env).collect(),
                env_clear: config.policy.env_clear,
                name: program.name.clone(),
                wiring: config.policy.wiring,
                socket,
                bounds: config.policy.bounds(worker.into()),
            },
        );
    }

    /// Handles the start of the process.
    fn handle_started(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        pid: u32,
        pipes: Pipes,
    ) {
        let (config, known) = (Arc::clone(&self.config), self.known);
        let Some(program) = self.find(worker) else { return };
        program.pid = Some(pid);
        program.since = Some(cx.io.now());
        if program.phase != Phase::Starting {
            // The program is already being stopped. The pipes are dropped, and so closed, here.
            return;
        }
        if config.is_spawned_http {
            return program.adopt_log_pipes(cx.io, pipes);
        }
        let recv_buffer_max =
            config.framing.recv_buffer_max(config.reply_max).saturating_add(HOLD_SLACK);
        let limits = StreamLimits { recv_buffer_max, ..StreamLimits::default() };
        // The input that waits for a program is already limited by its slots (for a session program: by its client's
        // limit of requests in flight) and the maximum frame size. Messages that need no slot are sent only while the
        // unread input is small.
        let by_slots = StreamLimits {
            send_high: UNREAD_MAX,
            send_low: UNREAD_MAX / 2,
            send_max: usize::MAX,
            ..limits
        };
        let input = cx.io.adopt(pipes.stdin, Direction::Out, by_slots);
        let output = cx.io.adopt(pipes.stdout, Direction::In, limits);
        let error = cx.io.adopt(pipes.stderr, Direction::In, StreamLimits::default());
        program.claim(cx.io, input, Pipe::Input);
        program.claim(cx.io, output, Pipe::Output);
        program.claim(cx.io, error, Pipe::Error);
        let pipes = program.pipes.insert(ProgramPipes::new(input, output, &config, known));
        program.stderr.open(error);
        if let Some(request) = program.pending.take() {
            pipes.send(cx, worker, request, config.deadline);
            program.finish_start(cx.io);
        } else if config.needs_handshake {
            pipes.start_handshake(cx.io);
        } else if !config.says_ready {
            program.serve(cx);
        }
    }

    fn handle_start_failed(
        &mut self,
        worker: WorkerId,
        error: &StartError,
        events: &mut Vec<BackendEvent>,
    ) {
        let Some(program) = self.find(worker) else { return };
        tracing::warn!(worker = program.name, "cannot be started: {error}");
        program.give_back(events);
        let trouble = trouble::from_start(program.last_words, error);
        *self.live.at(worker) = None;
        events.push(BackendEvent::Trouble { trouble: Box::new(trouble) });
        events.push(BackendEvent::StartFailed { worker });
    }

    /// Handles bytes from the standard output or standard error of a program.
    fn handle_data(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        pipe: Pipe,
        data: &mut Data<'_>,
    ) {
        let (deadline, watches_memory) = (self.config.deadline, self.config.watches_memory);
        let Some(program) = self.find(worker) else {
            data.consume(data.bytes().len());
            return;
        };
        let Some(pipes) = program.pipes.as_mut().filter(|_| pipe == Pipe::Output) else {
            let words = match pipe {
                Pipe::Output => &mut program.prints,
                Pipe::Input | Pipe::Error => &mut program.stderr,
            };
            words.handle_data(cx.io.now(), &program.name, data, cx.events);
            return;
        };
        let before = pipes.answers;
        let said = pipes.handle_data(cx, worker, data);
        pipes.report_unreadable(cx.io, &program.name);
        let answers = pipes.answers - before;
        program.served += answers;
        program.prove(cx.events);
        let has_answered = answers > 0;
        if watches_memory && has_answered {
            program.check_memory(cx.io.now(), cx);
        }
        self.known.output_seen |= has_answered;
        let Some(program) = self.find(worker) else { return };
        let Some(pipes) = program.pipes.as_mut() else { return };
        match said {
            // Usually no other request is in flight, and only the deadline changes.
            ProgramOutput::Fine => pipes.arm(cx.io, deadline),
            ProgramOutput::Ready => {
                pipes.arm(cx.io, deadline);
                if program.phase == Phase::Starting {
                    program.serve(cx);
                }
            }
            said => self.kill_for_output(cx, worker, &said),
        }
    }

    /// Handles the end of a pipe.
    fn handle_closed(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId, pipe: Pipe) {
        let (stop_timeout, framing) = (self.config.stop_timeout, self.config.framing);
        let is_spawned_http = self.config.is_spawned_http;
        let Some(program) = self.find(worker) else { return };
        match pipe {
            Pipe::Error => program.stderr.close(),
            Pipe::Output if is_spawned_http => program.prints.close(),
            Pipe::Input | Pipe::Output => {
                if program.phase == Phase::Serving && !program.is_slot {
                    cx.events.push(BackendEvent::Retired { worker });
                } else if program.phase == Phase::Starting {
                    tracing::warn!(worker = program.name, "closed a pipe before it had greeted");
                    program.kill(cx, Fault::Ended);
                }
                if let Some(pipes) = program.pipes.as_mut() {
                    pipes.handle_closed(cx.io, pipe);
                    pipes.give_back(cx);
                }
                if framing.ends_with_stream() {
                    // The reply is complete once the program has exited with code 0. Whether it reads all of its input
                    // does not matter.
                    if pipe == Pipe::Output {
                        program.end(cx.io, stop_timeout);
                    }
                    return self.try_finish(cx, worker);
                }
                if pipe == Pipe::Output {
                    // Without its output the program gets no further input: requests that were given back must not
                    // reach it.
                    if let Some(pipes) = program.pipes.as_mut() {
                        pipes.close(cx.io);
                    }
                    if matches!(program.phase, Phase::Serving | Phase::Ending) {
                        program.phase = Phase::Silent;
                        program.arm(cx.io, EXIT_WAIT);
                    }
                } else if program.phase == Phase::Serving {
                    program.end(cx.io, stop_timeout);
                }
            }
        }
        self.try_finish(cx, worker);
    }

    /// Handles a deadline: the oldest request was not answered in time, the program did not read its input, or a reply
    /// of several frames has ended.
    fn handle_deadline(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        pipe: Pipe,
        name: DeadlineName,
    ) {
        let (deadline, times) = (self.config.deadline, self.config.times);
        let Some(program) = self.find(worker) else { return };
        let (name_of, pid) = (program.name.clone(), program.pid);
        let Some(pipes) = program.pipes.as_mut() else { return };
        if (pipe, name) == (Pipe::Output, ANSWER) {
            pipes.open_in_time(cx.io.now(), worker, cx.events);
        }
        let fault = match (pipe, name) {
            (Pipe::Input, STALL) => {
                if !pipes.is_stalled(cx.io, deadline) {
                    return;
                }
                Fault::Stalled(pipes.reading_limit(deadline).unwrap_or_default())
            }
            (Pipe::Output, ANSWER) if !pipes.owes_reply() => {
                match pipes.handle_silent(cx, worker) {
                    Check::Waits => pipes.arm(cx.io, deadline),
                    Check::Passed => self.known.has_passed = true,
                    Check::Failed => {
                        let said = ProgramOutput::Unsolicited(PARTIAL.to_owned());
                        self.kill_for_output(cx, worker, &said);
                    }
                }
                return;
            }
            (Pipe::Output, GAP) => {
                let said = pipes.handle_gap(cx, worker);
                pipes.arm(cx.io, deadline);
                program.prove(cx.events);
                return self.kill_for_output(cx, worker, &said);
            }
            (Pipe::Output, SLOW) => {
                if pipes.handle_mute(cx.io) && !std::mem::replace(&mut self.known.output_seen, true)
                {
                    let command = &self.config.program;
                    tracing::warn!(
                        worker = name_of,
                        pid,
                        "nothing came within 2 s; perhaps its output is buffered: try `roadstead doctor -- {command} …`"
                    );
                }
                let Some(program) = self.find(worker) else { return };
                let Some(pipes) = program.pipes.as_mut() else { return };
                if let Some(so_long) = pipes.handle_slow(cx.io) {
                    tracing::warn!(worker = name_of, pid, "has had a request for {so_long:?}");
                }
                return pipes.arm(cx.io, deadline);
            }
            (Pipe::Output, FIRST) => {
                let limit = times.first_byte.unwrap_or_default();
                let late = (limit, Fault::Mute(limit));
                match pipes.handle_late(cx, worker, late, &name_of) {
                    Some(fault) => fault,
                    None => return pipes.arm(cx.io, deadline),
                }
            }
            _ => {
                let late = (deadline, Fault::Late(deadline));
                match pipes.handle_late(cx, worker, late, &name_of) {
                    Some(fault) => fault,
                    None => return pipes.arm(cx.io, deadline),
                }
            }
        };
        // If no request is in flight, a program that does not read would block the following requests.
        let is_deaf = matches!(fault, Fault::Stalled(_)) && program.phase == Phase::Serving;
        if is_deaf || pipes.owes_reply() {
            tracing::warn!(worker = name_of, "{}, and is killed", fault.message());
            program.kill(cx, fault);
        }
    }

    /// Handles that a program that serves HTTP accepts connections.
    pub(crate) fn accepts(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        let starting = self.find(worker).filter(|program| program.phase == Phase::Starting);
        if let Some(program) = starting {
            program.serve(cx);
        }
    }

    /// Whether the process of the worker runs, even if it does not serve yet.
    pub(crate) fn runs(&mut self, worker: WorkerId) -> bool {
        self.find(worker).is_some_and(|program| program.pid.is_some())
    }

    /// Returns the process id of a running worker.
    pub(crate) fn pid(&mut self, worker: WorkerId) -> Option<u32> {
        self.find(worker)?.pid
    }

    /// Returns the name of a program that serves HTTP.
    pub(crate) fn name(&self, worker: WorkerId) -> String {
        format!("{}/{}", self.pool, worker.index())
    }

    /// Measures the memory of the program after a reply.
    pub(crate) fn check_memory(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        if self.config.watches_memory
            && let Some(program) = self.find(worker)
        {
            program.check_memory(cx.io.now(), cx);
        }
    }

    /// Returns the status of programs that receive requests by other means; `load` returns the requests in flight and
    /// the served requests of each.
    pub(crate) fn status_with(
        &self,
        load: impl Fn(WorkerIndex) -> (usize, u64),
    ) -> Vec<WorkerStatus> {
        let live = self.live.iter();
        let live = live.filter_map(|(worker, program)| Some((worker, program.as_ref()?)));
        live.map(|(worker, program)| {
            let (in_flight, served) = load(worker);
            WorkerStatus {
                name: program.name.clone(),
                pid: program.pid,
                state: match program.phase {
                    Phase::Starting => "starting",
                    Phase::Serving | Phase::Empty => "serving",
                    Phase::Silent | Phase::Ending | Phase::Terminating | Phase::Killed => "ending",
                },
                in_flight,
                served,
            }
        })
        .collect()
    }
}

/// How long to wait for the exit status after the end of a program's output.
const EXIT_WAIT: Duration = Duration::from_millis(250);
/// Bytes of further replies that are buffered beyond one reply while they arrive.
const HOLD_SLACK: usize = 512 << 10;
