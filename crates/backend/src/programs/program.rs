//! One program: its phases, and the steps from one to the next.

use std::time::{Duration, Instant};

use event::{Context, Direction, Fd, StreamId, StreamLimits, TimerId};
use exchange::Proof;
use exchange::{PoolId, WorkerId};
use settings::ExitMessage;
use spawn::{Exit, Pipes, Status};

use super::audience::Audience;
use super::deadlines::GRACE_MIN;
use super::fault::{ExitReport, Fault};
use super::pipes::ProgramPipes;
use super::stderr::Stderr;
use super::trouble;
use crate::system::System;
use flow::backend_event::{BackendEvent, Trouble};
use flow::payload::Request;
use flow::request_meta::RequestMeta;
use flow::stream_owner::{Pipe, StreamOwner, StreamPurpose, WorkerTimer};

/// Between two looks at a program's memory.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A slot without a process: one is started for each request.
    Empty,
    Starting,
    Serving,
    /// Its output has ended; how it exited may be told in a moment.
    Silent,
    /// Its input is closed and it is left alone until the grace has passed.
    Ending,
    /// It was told to end and is left alone until the grace has passed again.
    Told,
    /// It was killed.
    Killed,
}

pub(super) struct Program {
    pub(super) worker: WorkerId,
    pub(super) pool: PoolId,
    /// A slot for processes of one request each.
    pub(super) is_slot: bool,
    /// What the process is started for.
    pub(super) pending: Option<(Request, RequestMeta)>,
    pub(super) token: u64,
    pub(super) name: String,
    pub(super) pid: Option<u32>,
    /// When it was started.
    pub(super) since: Option<Instant>,
    pub(super) phase: Phase,
    pub(super) pipes: Option<ProgramPipes>,
    pub(super) stderr: Stderr,
    /// What one prints that serves HTTP.
    pub(super) prints: Stderr,
    pub(super) exit: Option<Exit>,
    pub(super) timer: Option<TimerId>,
    /// Why it was killed, if it was for what it did.
    pub(super) killed_for: Option<Fault>,
    /// It was ended because we wanted it, not because of what it did.
    pub(super) expected: bool,
    /// The connection whose own it was has gone, and it was not told to forget that.
    pub(super) is_left: bool,
    /// Whose request it was given last.
    pub(super) asker: Option<u64>,
    /// It was told that it has answered one.
    pub(super) is_proven: bool,
    pub(super) served: u64,
    /// When its memory was last looked at.
    pub(super) looked_at: Option<Instant>,
    /// What those are told of its end who had asked it something.
    pub(super) last_words: ExitMessage,
    /// To whom what it said is shown.
    pub(super) audience: Audience,
}

impl Program {
    /// It takes requests from now on.
    pub(super) fn serve(&mut self, io: &mut Context<'_>, events: &mut Vec<BackendEvent>) {
        self.settle_in(io);
        events.push(BackendEvent::Started { worker: self.worker });
    }

    /// Takes what one that serves HTTP says of itself; it is ready when it accepts connections.
    /// Standard input is at its end from the start.
    pub(super) fn listen_to(&mut self, io: &mut Context<'_>, pipes: Pipes) {
        let Pipes { stdin: _, stdout, stderr } = pipes;
        let mut adopt = |pipe| io.adopt(Fd::from(pipe), Direction::In, StreamLimits::default());
        let (output, error) = (adopt(stdout), adopt(stderr));
        self.prints.open(output);
        self.stderr.open(error);
        self.claim(io, output, Pipe::Output);
        self.claim(io, error, Pipe::Error);
    }

    /// A stream is one of its pipes.
    pub(super) fn claim(&self, io: &mut Context<'_>, stream: StreamId, pipe: Pipe) {
        let purpose = StreamPurpose::Pipe(self.worker, pipe);
        io.set_key(stream, StreamOwner::Worker { pool: self.pool, purpose }.key());
    }

    /// Whether its end is nobody's loss: we wanted it, or it has no client any more and neither failed
    /// nor broke its framing.
    pub(super) fn is_expected(&self) -> bool {
        let is_well = match self.killed_for {
            Some(fault) => !matches!(fault, Fault::Broken(_) | Fault::BrokenForSomebody(_)),
            None => self.has_exited_well(),
        };
        self.expected || self.is_left && is_well
    }

    pub(super) fn has_exited_well(&self) -> bool {
        self.exit.is_some_and(|exit| exit.status == Status::Code(0))
    }

    /// Tells that it has answered the first request of the connection whose own it is: its slot stays
    /// in use.
    pub(super) fn prove(&mut self, events: &mut Vec<BackendEvent>) {
        let answers = self.pipes.as_ref().is_some_and(ProgramPipes::has_answered_its_own);
        if answers && !std::mem::replace(&mut self.is_proven, true) {
            events.push(BackendEvent::Proven { worker: self.worker, proof: Proof::Answered });
        }
    }

    /// Its start is over.
    pub(super) fn settle_in(&mut self, io: &mut Context<'_>) {
        self.phase = Phase::Serving;
        if let Some(timer) = self.timer.take() {
            io.cancel_timer(timer);
        }
    }

    /// Closes its input and gives it time to end by itself.
    pub(super) fn end(&mut self, io: &mut Context<'_>, grace: Duration) {
        self.phase = Phase::Ending;
        if let Some(pipes) = self.pipes.as_mut() {
            pipes.finish(io);
        }
        self.arm(io, grace);
    }

    pub(super) fn look_at_memory(
        &mut self,
        now: Instant,
        system: &System,
        events: &mut Vec<BackendEvent>,
    ) {
        if self.looked_at.is_some_and(|at| now.duration_since(at) < LOOK) {
            return;
        }
        self.looked_at = Some(now);
        if let Some(bytes) = self.pid.and_then(|pid| system.spawner.resident(pid)) {
            events.push(BackendEvent::Memory { worker: self.worker, bytes });
        }
    }

    pub(super) fn arm(&mut self, io: &mut Context<'_>, grace: Duration) {
        let at = io.now() + grace.max(GRACE_MIN);
        match self.timer {
            Some(timer) => io.set_timer(timer, at),
            None => {
                let key = WorkerTimer::Program(self.worker).key(self.pool);
                self.timer = Some(io.timer_of(key, at));
            }
        }
    }

    /// It gets no other request: what it has ends, and it is killed.
    pub(super) fn kill(
        &mut self,
        io: &mut Context<'_>,
        system: &mut System,
        fault: Fault,
        events: &mut Vec<BackendEvent>,
    ) {
        if self.phase == Phase::Serving && !self.is_slot {
            events.push(BackendEvent::Retired { worker: self.worker });
        }
        self.killed_for.get_or_insert(fault);
        self.fail_requests(io, fault, events);
        if let Some(pipes) = self.pipes.as_mut() {
            pipes.close(io);
        }
        self.phase = Phase::Killed;
        system.spawner.stop(self.token, spawn::Stop::Kill);
    }

    pub(super) fn fail_requests(
        &mut self,
        io: &mut Context<'_>,
        fault: Fault,
        events: &mut Vec<BackendEvent>,
    ) {
        if self.pipes.as_ref().is_none_or(ProgramPipes::is_idle) {
            return;
        }
        let exit_report = self.exit_report();
        if let Some(pipes) = self.pipes.as_mut() {
            pipes.fail(io, fault, &self.name, &exit_report, events);
        }
    }

    /// How it ended, and what it said last, for those who had asked it something.
    pub(super) fn exit_report(&mut self) -> ExitReport {
        let told = match self.audience {
            Audience::One { after, .. } => self.stderr.tail_after(after),
            Audience::Several if self.last_words == ExitMessage::Auto => String::new(),
            Audience::Several | Audience::Whole => self.tail(),
        };
        ExitReport::new(self.last_words, &self.exit_text(), &told)
    }

    /// The end of what it said, for the log.
    fn tail(&mut self) -> String {
        match self.stderr.tail() {
            nothing if nothing.is_empty() => self.prints.tail(),
            tail => tail,
        }
    }

    /// Why another is to be started in its place.
    pub(super) fn trouble(&mut self, now: Instant) -> Trouble {
        let tail = self.tail();
        let ran = self.since.map(|since| now.saturating_duration_since(since));
        let killed_for = self.killed_for.map(Fault::as_str);
        trouble::of_end(self.last_words, ran, (&self.exit_text(), killed_for), &tail)
    }

    /// How it exited, if that is known.
    pub(super) fn exit_text(&self) -> String {
        match &self.exit {
            Some(exit) => exit.to_string(),
            None => "its output ended".to_owned(),
        }
    }
}
