//! Workers that are programs on pipes.
//!
//! ```text
//!   Starting ───ready───▶ Serving ──stop──▶ Ending: input closed ─grace▶ TERM ─grace▶ KILL
//!      │                     │                 ▲                                     │
//!      └─StartFailed─▶ gone  └── not trusted ──┴────────────────── KILL at once      │
//!                                              gone ◀── exited and its output is read ┘
//! ```
//!
//! One whose output ends in *Serving* is *Silent* for a moment before it is *Ending*: how it exited,
//! and its last words, are told to those who waited for it.
//!
//! Where a process serves one request (`oneshot`), a worker is a slot: *Empty* until a request comes, for
//! which its process is started, and empty again when that has ended.
//!
//! A *Serving* program answers its requests in their order. One that speaks when nothing was asked,
//! says too much or is too late is not trusted with another request: it is killed, and another
//! takes its place. What the kernel has accepted for it ends as unknown; what was still in our own
//! buffer goes back to the head of the queue.

use std::sync::Arc;
use std::time::Duration;

use event::{Calls, Data, DeadlineName, Direction, Fd, StreamLimits};
use exchange::{ByWorker, PoolId, RequestId, WorkerId, WorkerIndex};
use spawn::{Pipes, StartError};

use crate::system::System;
use flow::backend_event::BackendEvent;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::stream_owner::{Pipe, WorkerTimer};
use observe::status::WorkerStatus;

mod audience;
mod backend;
mod config;
mod deadlines;
mod ending;
mod fault;
mod hearing;
mod link;
mod oneshot;
mod program;
mod stderr;
mod trouble;

use audience::Audience;
pub use config::{LaunchPolicy, ProgramConfig, ProgramTimeouts, ReplyStreamConfig};
use deadlines::{ANSWER, FIRST, GAP, SLOW, STALL};
pub(crate) use fault::ExitReport;
use fault::Fault;
use link::{Check, Known, Link, PARTIAL, Said, UNREAD_MAX};
use program::{Phase, Program};
use stderr::Stderr;

/// The programs of one pool.
pub(crate) struct Programs {
    pool: String,
    pool_id: PoolId,
    plan: Arc<ProgramConfig>,
    live: ByWorker<Option<Program>>,
    /// Whether they are in step with their requests.
    known: Known,
    /// How the last one that ended did.
    pub(crate) exit_report: ExitReport,
}

/// What one program is started with beside what all of its pool are.
#[derive(Debug, Default)]
pub(crate) struct LaunchOptions {
    /// In place of the arguments of all.
    pub(crate) arguments: Option<Vec<String>>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) socket: Option<spawn::Socket>,
}

impl Programs {
    pub(crate) fn new((id, pool): (PoolId, &str), plan: Arc<ProgramConfig>) -> Self {
        Self {
            pool: pool.to_owned(),
            pool_id: id,
            plan,
            live: ByWorker::default(),
            known: Known::default(),
            exit_report: ExitReport::default(),
        }
    }

    fn find(&mut self, worker: WorkerId) -> Option<&mut Program> {
        let program = self.live.get_mut(worker)?;
        program.as_mut().filter(|program| program.worker == worker)
    }

    /// Programs that are started from now on are started so.
    pub(crate) fn handle_plan(&mut self, plan: Arc<ProgramConfig>) {
        self.plan = plan;
        self.known.is_strict = false;
        self.tell_alignment();
    }

    /// All that run follow what is known of them.
    fn tell_alignment(&mut self) {
        let links = self.live.values_mut().flatten().filter_map(|program| program.link.as_mut());
        links.for_each(|link| link.handle_alignment(&self.plan, self.known));
    }

    pub(crate) fn start(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        options: LaunchOptions,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        let name = format!("{}/{}", self.pool, worker.index());
        let is_slot = self.plan.framing.ends_with_stream();
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
            link: None,
            stderr: Stderr::default(),
            prints: Stderr::default(),
            exit: None,
            timer: None,
            killed_for: None,
            expected: false,
            is_left: false,
            asker: None,
            is_proven: false,
            served: 0,
            looked_at: None,
            last_words: self.plan.last_words,
            audience: Audience::of(&self.plan),
        });
        if is_slot {
            up.push(BackendEvent::Started { worker });
        } else {
            self.launch(calls, worker, options, system);
        }
    }

    /// Starts the process of a worker that has none.
    fn launch(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        options: LaunchOptions,
        system: &mut System,
    ) {
        let plan = Arc::clone(&self.plan);
        let Some(program) = self.find(worker) else { return };
        program.token = system.token(program.pool, worker);
        program.phase = Phase::Starting;
        let key = WorkerTimer::Program(worker).key(program.pool);
        program.timer = Some(calls.timer_of(key, calls.now() + plan.times.start));
        let LaunchOptions { arguments, env, socket } = options;
        system.spawner.start(
            program.token,
            spawn::Command {
                program: plan.program.clone(),
                arguments: arguments.unwrap_or_else(|| plan.arguments.clone()),
                cwd: plan.cwd.clone(),
                env: plan.env.iter().cloned().chain(env).collect(),
                env_clear: plan.policy.env_clear,
                name: program.name.clone(),
                wiring: plan.policy.wiring,
                socket,
                bounds: plan.policy.bounds(worker.into()),
            },
        );
    }

    /// It runs.
    fn handle_started(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        pid: u32,
        pipes: Pipes,
        up: &mut Vec<BackendEvent>,
    ) {
        let (plan, known) = (Arc::clone(&self.plan), self.known);
        let Some(program) = self.find(worker) else { return };
        program.pid = Some(pid);
        program.since = Some(calls.now());
        if program.phase != Phase::Starting {
            // It is to end already: without its pipes, which close here.
            return;
        }
        if plan.is_hosted {
            return program.listen_to(calls, pipes);
        }
        let hold_max = plan.framing.hold_max(plan.reply_max).saturating_add(HOLD_SLACK);
        let limits = StreamLimits { hold_max, ..StreamLimits::default() };
        // What waits for a program is bounded already, by its slots (for one that is a connection's own:
        // by what that may ask at once) and the longest frame. What has none counts while it is little.
        let by_slots = StreamLimits {
            send_high: UNREAD_MAX,
            send_low: UNREAD_MAX / 2,
            send_max: usize::MAX,
            ..limits
        };
        let input = calls.adopt(Fd::from(pipes.stdin), Direction::Out, by_slots);
        let output = calls.adopt(Fd::from(pipes.stdout), Direction::In, limits);
        let error = calls.adopt(Fd::from(pipes.stderr), Direction::In, StreamLimits::default());
        program.claim(calls, input, Pipe::Input);
        program.claim(calls, output, Pipe::Output);
        program.claim(calls, error, Pipe::Error);
        let link = program.link.insert(Link::new(input, output, &plan, known));
        program.stderr.open(error);
        if let Some(request) = program.pending.take() {
            link.send(calls, worker, request, plan.deadline, up);
            program.settle_in(calls);
        } else if plan.greets {
            link.greet(calls);
        } else if !plan.says_ready {
            program.serve(calls, up);
        }
    }

    fn handle_start_failed(
        &mut self,
        worker: WorkerId,
        error: &StartError,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(program) = self.find(worker) else { return };
        tracing::warn!(worker = program.name, "cannot be started: {error}");
        program.give_back(up);
        let trouble = trouble::of_start(program.last_words, error);
        *self.live.at(worker) = None;
        up.push(BackendEvent::Trouble { trouble: Box::new(trouble) });
        up.push(BackendEvent::StartFailed { worker });
    }

    /// Sends it a request. One that was found out in the same turn gets none: the request goes back.
    pub(crate) fn dispatch(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        (request, meta): (Request, RequestMeta),
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        let deadline = self.plan.deadline;
        let ready = [Phase::Serving, Phase::Empty];
        let ready = self.find(worker).filter(|program| ready.contains(&program.phase));
        let Some(program) = ready else {
            return up.push(BackendEvent::Retry {
                id: request.id,
                payload: request.payload,
                meta,
                failed: None,
            });
        };
        if program.phase == Phase::Empty {
            program.pending = Some((request, meta));
            return self.launch(calls, worker, LaunchOptions::default(), system);
        }
        program.asker = Some(meta.asker.client);
        program.is_left &= !meta.is_reset;
        program.audience.handle_sent(meta.asker.client, meta.is_reset, program.stderr.said());
        match program.link.as_mut() {
            Some(link) => link.send(calls, worker, (request, meta), deadline, up),
            None => {
                let Request { id, payload, .. } = request;
                up.push(BackendEvent::Retry { id, payload, meta, failed: None });
            }
        }
    }

    /// That connection takes nothing of what it says, or takes it again.
    pub(crate) fn hush(&mut self, calls: &mut Calls<'_>, worker: WorkerId, hush: bool) {
        let deadline = self.plan.deadline;
        if let Some(link) = self.find(worker).and_then(|program| program.link.as_mut()) {
            if hush { link.hush(calls) } else { link.unhush(calls, deadline) }
        }
    }

    /// Something is said of a request that it has.
    pub(crate) fn tell(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        id: RequestId,
        word: RequestControl,
        up: &mut Vec<BackendEvent>,
    ) {
        let (is_shared, deadline) = (self.plan.is_shared, self.plan.deadline);
        let Some(link) = self.find(worker).and_then(|program| program.link.as_mut()) else {
            return;
        };
        match word {
            // Others' replies come through the same pipe.
            RequestControl::Pause if is_shared => {}
            RequestControl::Pause => link.hold(calls, id),
            RequestControl::Resume => link.go_on(calls, id, deadline),
            // A frame is whole from the start.
            RequestControl::Body(..) | RequestControl::BodyEnd | RequestControl::Splice(_) => {}
            RequestControl::Abandoned => {
                link.go_on(calls, id, deadline);
                link.cancel(calls, worker, id, up);
                link.arm(calls, deadline);
            }
        }
    }

    /// Bytes from a program's output or error.
    fn handle_data(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        pipe: Pipe,
        data: &mut Data<'_>,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        let (deadline, watches_memory) = (self.plan.deadline, self.plan.watches_memory);
        let Some(program) = self.find(worker) else {
            data.consume(data.bytes().len());
            return;
        };
        let Some(link) = program.link.as_mut().filter(|_| pipe == Pipe::Output) else {
            let words = match pipe {
                Pipe::Output => &mut program.prints,
                Pipe::Input | Pipe::Error => &mut program.stderr,
            };
            words.handle_data(calls.now(), &program.name, data, up);
            return;
        };
        let before = link.answers;
        let said = link.handle_data(calls, worker, data, up);
        link.tell_unreadable(calls, &program.name);
        let answers = link.answers - before;
        program.served += answers;
        program.prove(up);
        let has_answered = answers > 0;
        if watches_memory && has_answered {
            program.look_at_memory(calls.now(), system, up);
        }
        self.known.has_spoken |= has_answered;
        let Some(program) = self.find(worker) else { return };
        let Some(link) = program.link.as_mut() else { return };
        match said {
            // Most often nothing else is asked, and the deadline only moves on.
            Said::Fine => link.arm(calls, deadline),
            Said::Ready => {
                link.arm(calls, deadline);
                if program.phase == Phase::Starting {
                    program.serve(calls, up);
                }
            }
            said => self.condemn(calls, worker, &said, system, up),
        }
    }

    /// A pipe came to its end.
    fn handle_closed(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        pipe: Pipe,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        let (grace, framing) = (self.plan.grace, self.plan.framing);
        let is_hosted = self.plan.is_hosted;
        let Some(program) = self.find(worker) else { return };
        match pipe {
            Pipe::Error => program.stderr.close(),
            Pipe::Output if is_hosted => program.prints.close(),
            Pipe::Input | Pipe::Output => {
                if program.phase == Phase::Serving && !program.is_slot {
                    up.push(BackendEvent::Retired { worker });
                } else if program.phase == Phase::Starting {
                    tracing::warn!(worker = program.name, "closed a pipe before it had greeted");
                    program.kill(calls, system, Fault::Ended, up);
                }
                if let Some(link) = program.link.as_mut() {
                    link.handle_closed(calls, pipe);
                    link.give_back(calls, up);
                }
                if framing.ends_with_stream() {
                    // The reply is whole once it has exited well; what it does not read is its own
                    // affair.
                    if pipe == Pipe::Output {
                        program.end(calls, grace);
                    }
                    return self.try_finish(calls, worker, system, up);
                }
                if pipe == Pipe::Output {
                    // Without an output it is asked nothing more: what was given back must not
                    // reach it after all.
                    if let Some(link) = program.link.as_mut() {
                        link.close(calls);
                    }
                    if matches!(program.phase, Phase::Serving | Phase::Ending) {
                        program.phase = Phase::Silent;
                        program.arm(calls, EXIT_WAIT);
                    }
                } else if program.phase == Phase::Serving {
                    program.end(calls, grace);
                }
            }
        }
        self.try_finish(calls, worker, system, up);
    }

    /// The oldest request was not answered in time, or not heeded at all, or a reply has come to
    /// its end.
    fn handle_deadline(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        pipe: Pipe,
        name: DeadlineName,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        let (deadline, times) = (self.plan.deadline, self.plan.times);
        let Some(program) = self.find(worker) else { return };
        let (name_of, pid) = (program.name.clone(), program.pid);
        let Some(link) = program.link.as_mut() else { return };
        if (pipe, name) == (Pipe::Output, ANSWER) {
            link.open_in_time(calls.now(), worker, up);
        }
        let fault = match (pipe, name) {
            (Pipe::Input, STALL) => {
                if !link.is_stalled(calls, deadline) {
                    return;
                }
                Fault::Stalled(link.reading_limit(deadline).unwrap_or_default())
            }
            (Pipe::Output, ANSWER) if !link.is_owing() => {
                match link.handle_silent(calls, worker, up) {
                    Check::Waits => link.arm(calls, deadline),
                    Check::Passed => self.known.has_passed = true,
                    Check::Failed => {
                        let said = Said::Unasked(PARTIAL.to_owned());
                        self.condemn(calls, worker, &said, system, up);
                    }
                }
                return;
            }
            (Pipe::Output, GAP) => {
                let said = link.handle_gap(calls, worker, up);
                link.arm(calls, deadline);
                program.prove(up);
                return self.condemn(calls, worker, &said, system, up);
            }
            (Pipe::Output, SLOW) => {
                if link.handle_mute(calls) && !std::mem::replace(&mut self.known.has_spoken, true) {
                    let command = &self.plan.program;
                    tracing::warn!(
                        worker = name_of,
                        pid,
                        "nothing came within 2 s; perhaps its output is buffered: try `roadstead doctor -- {command} …`"
                    );
                }
                let Some(program) = self.find(worker) else { return };
                let Some(link) = program.link.as_mut() else { return };
                if let Some(so_long) = link.handle_slow(calls) {
                    tracing::warn!(worker = name_of, pid, "has had a request for {so_long:?}");
                }
                return link.arm(calls, deadline);
            }
            (Pipe::Output, FIRST) => {
                let limit = times.first_byte.unwrap_or_default();
                let late = (limit, Fault::Mute(limit));
                match link.handle_late(calls, worker, late, &name_of, up) {
                    Some(fault) => fault,
                    None => return link.arm(calls, deadline),
                }
            }
            _ => {
                let late = (deadline, Fault::Late(deadline));
                match link.handle_late(calls, worker, late, &name_of, up) {
                    Some(fault) => fault,
                    None => return link.arm(calls, deadline),
                }
            }
        };
        // Where nothing is owed, one that does not read would stand in the way of what comes.
        let is_deaf = matches!(fault, Fault::Stalled(_)) && program.phase == Phase::Serving;
        if is_deaf || link.is_owing() {
            tracing::warn!(worker = name_of, "{}, and is killed", fault.text());
            program.kill(calls, system, fault, up);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.values().all(Option::is_none)
    }

    /// One that serves HTTP accepts connections.
    pub(crate) fn accepts(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        up: &mut Vec<BackendEvent>,
    ) {
        let starting = self.find(worker).filter(|program| program.phase == Phase::Starting);
        if let Some(program) = starting {
            program.serve(calls, up);
        }
    }

    /// Its process is there, whether it serves yet or not.
    pub(crate) fn runs(&mut self, worker: WorkerId) -> bool {
        self.find(worker).is_some_and(|program| program.pid.is_some())
    }

    /// The process of one that runs.
    pub(crate) fn pid(&mut self, worker: WorkerId) -> Option<u32> {
        self.find(worker)?.pid
    }

    /// What a program that serves HTTP is called.
    pub(crate) fn name(&self, worker: WorkerId) -> String {
        format!("{}/{}", self.pool, worker.index())
    }

    /// It has answered something.
    pub(crate) fn look_at_memory(
        &mut self,
        calls: &Calls<'_>,
        worker: WorkerId,
        system: &System,
        up: &mut Vec<BackendEvent>,
    ) {
        if self.plan.watches_memory
            && let Some(program) = self.find(worker)
        {
            program.look_at_memory(calls.now(), system, up);
        }
    }

    pub(crate) fn status(&self) -> Vec<WorkerStatus> {
        self.status_with(|worker| match self.live.get(worker).and_then(Option::as_ref) {
            Some(program) => (program.link.as_ref().map_or(0, Link::in_flight), program.served),
            None => (0, 0),
        })
    }

    /// The same of programs that are asked otherwise: what each has in flight, and has served.
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
                    Phase::Silent | Phase::Ending | Phase::Told | Phase::Killed => "ending",
                },
                in_flight,
                served,
            }
        })
        .collect()
    }
}

/// How long the end of a program's output waits for how it exited.
const EXIT_WAIT: Duration = Duration::from_millis(250);
/// Replies that are held beyond one, while they come.
const HOLD_SLACK: usize = 512 << 10;
