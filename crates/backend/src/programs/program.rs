//! One program: its phases and the transitions between them.

use std::time::{Duration, Instant};

use event::{Context, Direction, StreamId, StreamLimits, TimerId};
use exchange::Proof;
use exchange::{PoolId, WorkerId};
use settings::ExitMessage;
use spawn::{Exit, Pipes, Status};

use super::audience::Audience;
use super::deadlines::STOP_TIMEOUT_MIN;
use super::fault::{ExitReport, Fault};
use super::pipes::ProgramPipes;
use super::stderr::Stderr;
use super::trouble;
use crate::backend::BackendContext;
use flow::backend_event::{BackendEvent, Trouble};
use flow::payload::Request;
use flow::request_meta::RequestMeta;
use flow::stream_owner::{Pipe, StreamOwner, StreamPurpose, WorkerTimer};

/// The minimum time between two measurements of a program's memory.
const MEMORY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A slot without a process. A process is started for each request.
    Empty,
    Starting,
    Serving,
    /// Its output has ended. Its exit status may arrive shortly.
    Silent,
    /// Its input is closed, and the stop timeout runs.
    Ending,
    /// SIGTERM was sent, and the stop timeout runs again.
    Terminating,
    /// It was killed.
    Killed,
}

pub(super) struct Program {
    pub(super) worker: WorkerId,
    pub(super) pool: PoolId,
    /// Whether the worker is a slot for processes of one request each.
    pub(super) is_slot: bool,
    /// The request that the process is started for.
    pub(super) pending: Option<(Request, RequestMeta)>,
    pub(super) token: u64,
    pub(super) name: String,
    pub(super) pid: Option<u32>,
    /// The time at which it was started.
    pub(super) since: Option<Instant>,
    pub(super) phase: Phase,
    pub(super) pipes: Option<ProgramPipes>,
    pub(super) stderr: Stderr,
    /// The standard output of a program that serves HTTP.
    pub(super) prints: Stderr,
    pub(super) exit: Option<Exit>,
    pub(super) timer: Option<TimerId>,
    /// The fault for which it was killed; `None` if it was not killed for a fault.
    pub(super) killed_for: Option<Fault>,
    /// Whether the daemon decided to end it, and not because of a fault of the program.
    pub(super) expected: bool,
    /// Whether the connection of a session program is gone, and the program was not reset since.
    pub(super) is_orphaned: bool,
    /// The client whose request was sent to it last.
    pub(super) asker: Option<u64>,
    /// Whether it was reported that it has answered a request.
    pub(super) is_proven: bool,
    pub(super) served: u64,
    /// The time of the last memory measurement.
    pub(super) memory_checked_at: Option<Instant>,
    /// What its clients receive when it ends.
    pub(super) last_words: ExitMessage,
    /// Which clients may see its output.
    pub(super) audience: Audience,
}

impl Program {
    /// Starts to accept requests.
    pub(super) fn serve(&mut self, cx: &mut BackendContext<'_, '_>) {
        self.finish_start(cx.io);
        cx.events.push(BackendEvent::Started { worker: self.worker });
    }

    /// Reads the output of a program that serves HTTP. The program is ready when it accepts connections. Its standard
    /// input is at end of file from the start.
    pub(super) fn adopt_log_pipes(&mut self, io: &mut Context<'_>, pipes: Pipes) {
        let Pipes { stdin: _, stdout, stderr } = pipes;
        let mut adopt = |pipe| io.adopt(pipe, Direction::In, StreamLimits::default());
        let (output, error) = (adopt(stdout), adopt(stderr));
        self.prints.open(output);
        self.stderr.open(error);
        self.claim(io, output, Pipe::Output);
        self.claim(io, error, Pipe::Error);
    }

    /// Sets this program as the owner of a stream, which is one of its pipes.
    pub(super) fn claim(&self, io: &mut Context<'_>, stream: StreamId, pipe: Pipe) {
        let purpose = StreamPurpose::Pipe(self.worker, pipe);
        io.set_key(stream, StreamOwner::Worker { pool: self.pool, purpose }.key());
    }

    /// Whether its end harms no client: the daemon decided to end it, or it has no client any more and neither failed
    /// nor violated its framing.
    pub(super) fn is_expected(&self) -> bool {
        let is_well = match self.killed_for {
            Some(fault) => !matches!(fault, Fault::Broken(_) | Fault::BrokenUnattributed(_)),
            None => self.has_exited_well(),
        };
        self.expected || self.is_orphaned && is_well
    }

    pub(super) fn has_exited_well(&self) -> bool {
        self.exit.is_some_and(|exit| exit.status == Status::Code(0))
    }

    /// Reports that it has answered the first request of its session's connection. Its slot stays in use.
    pub(super) fn prove(&mut self, events: &mut Vec<BackendEvent>) {
        let answers = self.pipes.as_ref().is_some_and(ProgramPipes::has_answered_its_own);
        if answers && !std::mem::replace(&mut self.is_proven, true) {
            events.push(BackendEvent::Proven { worker: self.worker, proof: Proof::Answered });
        }
    }

    /// Ends the start phase.
    pub(super) fn finish_start(&mut self, io: &mut Context<'_>) {
        self.phase = Phase::Serving;
        if let Some(timer) = self.timer.take() {
            io.cancel_timer(timer);
        }
    }

    /// Closes the input and gives the program time to exit.
    pub(super) fn end(&mut self, io: &mut Context<'_>, stop_timeout: Duration) {
        self.phase = Phase::Ending;
        if let Some(pipes) = self.pipes.as_mut() {
            pipes.finish(io);
        }
        self.arm(io, stop_timeout);
    }

    pub(super) fn check_memory(&mut self, now: Instant, cx: &mut BackendContext<'_, '_>) {
        if self.memory_checked_at.is_some_and(|at| now.duration_since(at) < MEMORY_INTERVAL) {
            return;
        }
        if let Some(bytes) = self.pid.and_then(|pid| cx.system.spawner.resident(pid)) {
            self.memory_checked_at = Some(now);
            cx.events.push(BackendEvent::Memory { worker: self.worker, bytes });
        }
    }

    pub(super) fn arm(&mut self, io: &mut Context<'_>, stop_timeout: Duration) {
        let at = io.now() + stop_timeout.max(STOP_TIMEOUT_MIN);
        match self.timer {
            Some(timer) => io.set_timer(timer, at),
            None => {
                let key = WorkerTimer::Program(self.worker).key(self.pool);
                self.timer = Some(io.timer_of(key, at));
            }
        }
    }

    /// Kills the program. Its requests end, and it gets no other request.
    pub(super) fn kill(&mut self, cx: &mut BackendContext<'_, '_>, fault: Fault) {
        if self.phase == Phase::Serving && !self.is_slot {
            cx.events.push(BackendEvent::Retired { worker: self.worker });
        }
        self.killed_for.get_or_insert(fault);
        self.fail_requests(cx, fault);
        if let Some(pipes) = self.pipes.as_mut() {
            pipes.close(cx.io);
        }
        self.phase = Phase::Killed;
        cx.system.spawner.stop(self.token, spawn::Stop::Kill);
    }

    pub(super) fn fail_requests(&mut self, cx: &mut BackendContext<'_, '_>, fault: Fault) {
        if self.pipes.as_ref().is_none_or(ProgramPipes::is_idle) {
            return;
        }
        let exit_report = self.exit_report();
        if let Some(pipes) = self.pipes.as_mut() {
            pipes.fail(cx, fault, &self.name, &exit_report);
        }
    }

    /// Returns the exit status and the last output, for clients whose requests were in flight.
    pub(super) fn exit_report(&mut self) -> ExitReport {
        let told = match self.audience {
            Audience::One { after, .. } => self.stderr.tail_after(after),
            Audience::Several if self.last_words == ExitMessage::Auto => String::new(),
            Audience::Several | Audience::Whole => self.tail(),
        };
        ExitReport::new(self.last_words, &self.exit_text(), &told)
    }

    /// Returns the end of its output, for the log.
    fn tail(&mut self) -> String {
        match self.stderr.tail() {
            nothing if nothing.is_empty() => self.prints.tail(),
            tail => tail,
        }
    }

    /// Returns why it must be replaced.
    pub(super) fn trouble(&mut self, now: Instant) -> Trouble {
        let tail = self.tail();
        let ran = self.since.map(|since| now.saturating_duration_since(since));
        let killed_for = self.killed_for.map(Fault::as_str);
        trouble::from_exit(self.last_words, ran, (&self.exit_text(), killed_for), &tail)
    }

    /// Returns its exit status as text, if that is known.
    pub(super) fn exit_text(&self) -> String {
        match &self.exit {
            Some(exit) => exit.to_string(),
            None => "its output ended".to_owned(),
        }
    }
}
