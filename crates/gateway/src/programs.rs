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
use std::time::{Duration, Instant};

use event::{Calls, Data, DeadlineName, Direction, Fd, StreamId, StreamLimits, TimerId};
use exchange::{Request, RequestId, WorkerId};
use spawn::{Exit, Pipes, StartError, Status};

use crate::core::Word;
use crate::outside::Outside;
use crate::plan::ProgramPlan;
use crate::status::WorkerStatus;
use crate::upward::Upward;

mod fault;
mod link;
mod stderr;

use fault::Fault;
use link::{Link, Said};
use stderr::Stderr;

/// A deadline of a program's output: its oldest request must be answered by then.
const ANSWER: DeadlineName = DeadlineName(0);

/// And the other: silence ends a reply of several frames.
const GAP: DeadlineName = DeadlineName(1);

/// And another: the oldest request has no byte of its reply yet.
const FIRST: DeadlineName = DeadlineName(2);

/// And the last: the oldest request takes long enough for a line in the log.
const SLOW: DeadlineName = DeadlineName(3);

/// The deadline of a program's input: it must have read something by then.
const STALL: DeadlineName = DeadlineName(0);

/// Which pipe of a program a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pipe {
    Input,
    Output,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
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

struct Program {
    worker: WorkerId,
    /// The place of its pool.
    place: usize,
    /// A slot for processes of one request each.
    is_slot: bool,
    /// What the process is started for.
    pending: Option<Request>,
    token: u64,
    name: String,
    pid: Option<u32>,
    phase: Phase,
    link: Option<Link>,
    stderr: Stderr,
    exit: Option<Exit>,
    timer: Option<TimerId>,
    /// It was ended because we wanted it, not because of what it did.
    expected: bool,
    served: u64,
    /// When its memory was last looked at.
    looked_at: Option<Instant>,
}

/// The programs of one pool.
pub(crate) struct Programs {
    pool: String,
    plan: Arc<ProgramPlan>,
    live: Vec<Option<Program>>,
}

impl Programs {
    pub(crate) fn new(pool: &str, plan: Arc<ProgramPlan>) -> Self {
        Self { pool: pool.to_owned(), plan, live: Vec::new() }
    }

    fn find(&mut self, worker: WorkerId) -> Option<&mut Program> {
        let place = self.live.get_mut(worker.index())?;
        place.as_mut().filter(|program| program.worker == worker)
    }

    pub(crate) fn start(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        place: usize,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        let name = format!("{}/{}", self.pool, worker.index());
        let is_slot = self.plan.framing.ends_with_stream();
        if self.live.len() <= worker.index() {
            self.live.resize_with(worker.index() + 1, || None);
        }
        self.live[worker.index()] = Some(Program {
            worker,
            place,
            is_slot,
            pending: None,
            token: 0,
            name,
            pid: None,
            phase: Phase::Empty,
            link: None,
            stderr: Stderr::default(),
            exit: None,
            timer: None,
            expected: false,
            served: 0,
            looked_at: None,
        });
        if is_slot {
            up.push(Upward::Started { worker });
        } else {
            self.launch(calls, worker, outside);
        }
    }

    /// Starts the process of a worker that has none.
    fn launch(&mut self, calls: &mut Calls<'_>, worker: WorkerId, outside: &mut Outside) {
        let plan = Arc::clone(&self.plan);
        let Some(program) = self.find(worker) else { return };
        program.token = outside.token(program.place, worker);
        program.phase = Phase::Starting;
        program.timer = Some(calls.timer(calls.now() + plan.times.start));
        outside.spawner.start(
            program.token,
            spawn::Command {
                program: plan.program.clone(),
                arguments: plan.arguments.clone(),
                cwd: plan.cwd.clone(),
                env: plan.env.clone(),
                env_clear: plan.terms.env_clear,
                name: program.name.clone(),
                wiring: plan.terms.wiring,
                bounds: plan.terms.bounds(worker.index()),
            },
        );
    }

    /// It runs. Returns the streams of its pipes, for the shard to know whose they are.
    pub(crate) fn handle_started(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        pid: u32,
        pipes: Pipes,
        up: &mut Vec<Upward>,
    ) -> Vec<(StreamId, Pipe)> {
        let plan = Arc::clone(&self.plan);
        let Some(program) = self.find(worker) else { return Vec::new() };
        program.pid = Some(pid);
        if program.phase != Phase::Starting {
            // It is to end already: without its pipes, which close here.
            return Vec::new();
        }
        let hold_max = plan.framing.hold_max(plan.reply_max).saturating_add(HOLD_SLACK);
        let limits = StreamLimits { hold_max, ..StreamLimits::default() };
        // What waits for a program is bounded already, by its pipeline and the longest line.
        let unbounded = StreamLimits { send_max: usize::MAX, ..limits };
        let input = calls.adopt(Fd::from(pipes.stdin), Direction::Out, unbounded);
        let output = calls.adopt(Fd::from(pipes.stdout), Direction::In, limits);
        let error = calls.adopt(Fd::from(pipes.stderr), Direction::In, StreamLimits::default());
        let link = program.link.insert(Link::new(input, output, &plan));
        program.stderr.open(error);
        if let Some(request) = program.pending.take() {
            link.send(calls, worker, request, plan.deadline, up);
            program.settle_in(calls);
        } else if plan.greets {
            link.greet(calls);
        } else if !plan.says_ready {
            program.serve(calls, up);
        }
        vec![(input, Pipe::Input), (output, Pipe::Output), (error, Pipe::Error)]
    }

    pub(crate) fn handle_start_failed(
        &mut self,
        worker: WorkerId,
        error: &StartError,
        up: &mut Vec<Upward>,
    ) {
        let Some(program) = self.find(worker) else { return };
        tracing::warn!(worker = program.name, "cannot be started: {error}");
        program.give_back(up);
        self.live[worker.index()] = None;
        up.push(Upward::StartFailed { worker });
    }

    /// Sends it a request. One that was found out in the same turn gets none: the request goes back.
    pub(crate) fn dispatch(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        request: Request,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        let deadline = self.plan.deadline;
        let ready = [Phase::Serving, Phase::Empty];
        let ready = self.find(worker).filter(|program| ready.contains(&program.phase));
        let Some(program) = ready else {
            return up.push(Upward::Returned { id: request.id, body: request.body });
        };
        if program.phase == Phase::Empty {
            program.pending = Some(request);
            return self.launch(calls, worker, outside);
        }
        match program.link.as_mut() {
            Some(link) => link.send(calls, worker, request, deadline, up),
            None => up.push(Upward::Returned { id: request.id, body: request.body }),
        }
    }

    /// Something is said of a request that it has.
    pub(crate) fn tell(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        id: RequestId,
        word: Word,
        up: &mut Vec<Upward>,
    ) {
        let (is_shared, deadline) = (self.plan.is_shared, self.plan.deadline);
        let Some(link) = self.find(worker).and_then(|program| program.link.as_mut()) else {
            return;
        };
        match word {
            // Others' replies come through the same pipe.
            Word::Hold if is_shared => {}
            Word::Hold => link.hold(calls, id),
            Word::GoOn => link.go_on(calls, id, deadline),
            // A frame is whole from the start.
            Word::More(_) | Word::Whole => {}
            Word::Abandoned => {
                link.go_on(calls, id, deadline);
                link.cancel(calls, worker, id, up);
                link.arm(calls, deadline);
            }
        }
    }

    /// Bytes from a program's output or error.
    pub(crate) fn handle_data(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        pipe: Pipe,
        data: &mut Data<'_>,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        let (deadline, watches_memory) = (self.plan.deadline, self.plan.watches_memory);
        let Some(program) = self.find(worker) else {
            data.consume(data.bytes().len());
            return;
        };
        let Some(link) = program.link.as_mut().filter(|_| pipe == Pipe::Output) else {
            program.stderr.handle_data(calls.now(), &program.name, data, up);
            return;
        };
        let before = link.answers;
        let said = link.handle_data(calls, worker, data, up);
        let answers = link.answers - before;
        program.served += answers;
        if watches_memory && answers > 0 {
            program.look_at_memory(calls.now(), outside, up);
        }
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
            Said::Unasked(ref frame) => {
                let name = &program.name;
                tracing::warn!(worker = name, "spoke though nothing was asked: {frame}");
                up.push(Upward::Discarded);
                program.distrust(calls, outside, Fault::Ended, up);
            }
            Said::Broken(text) => {
                tracing::warn!(worker = program.name, "does not keep to its framing: {text}");
                program.distrust(calls, outside, Fault::Broken(text), up);
            }
            Said::TooLong => {
                tracing::warn!(worker = program.name, "its reply is longer than reply_max");
                program.distrust(calls, outside, Fault::TooLong, up);
            }
        }
    }

    /// A pipe came to its end.
    pub(crate) fn handle_closed(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        pipe: Pipe,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        let (grace, framing) = (self.plan.grace, self.plan.framing);
        let Some(program) = self.find(worker) else { return };
        match pipe {
            Pipe::Error => program.stderr.close(),
            Pipe::Input | Pipe::Output => {
                if program.phase == Phase::Serving && !program.is_slot {
                    up.push(Upward::Retired { worker });
                } else if program.phase == Phase::Starting {
                    tracing::warn!(worker = program.name, "closed a pipe before it had greeted");
                    program.distrust(calls, outside, Fault::Ended, up);
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
                    return self.try_finish(calls, worker, outside, up);
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
        self.try_finish(calls, worker, outside, up);
    }

    /// The oldest request was not answered in time, or not heeded at all, or a reply has come to
    /// its end.
    pub(crate) fn handle_deadline(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        pipe: Pipe,
        name: DeadlineName,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        let (deadline, times) = (self.plan.deadline, self.plan.times);
        let Some(program) = self.find(worker) else { return };
        let (name_of, pid) = (program.name.clone(), program.pid);
        let Some(link) = program.link.as_mut() else { return };
        let fault = match (pipe, name) {
            (Pipe::Input, STALL) => {
                if !link.is_stalled(calls) {
                    return;
                }
                Fault::Stalled(times.write_stall.unwrap_or_default())
            }
            (Pipe::Output, GAP) => {
                link.handle_gap(calls, worker, up);
                return link.arm(calls, deadline);
            }
            (Pipe::Output, SLOW) => {
                if let Some(so_long) = link.handle_slow(calls) {
                    tracing::warn!(worker = name_of, pid, "has had a request for {so_long:?}");
                }
                return link.arm(calls, deadline);
            }
            (Pipe::Output, FIRST) => Fault::Mute(times.first_byte.unwrap_or_default()),
            _ => Fault::Late(deadline),
        };
        if link.is_owing() {
            tracing::warn!(worker = name_of, "{}, and is killed", fault.text());
            program.distrust(calls, outside, fault, up);
        }
    }

    /// Which of its programs a timer belongs to; its grace has passed.
    pub(crate) fn handle_timer(
        &mut self,
        calls: &mut Calls<'_>,
        timer: TimerId,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) -> bool {
        let grace = self.plan.grace;
        let mut live = self.live.iter_mut().flatten();
        let Some(program) = live.find(|program| program.timer == Some(timer)) else {
            return false;
        };
        match program.phase {
            Phase::Ending => {
                program.phase = Phase::Told;
                outside.spawner.stop(program.token, spawn::Stop::Term);
            }
            Phase::Told => {
                tracing::warn!(worker = program.name, "does not end when told to, and is killed");
                program.phase = Phase::Killed;
                outside.spawner.stop(program.token, spawn::Stop::Kill);
            }
            Phase::Starting => {
                tracing::warn!(worker = program.name, "was not ready in time, and is killed");
                program.distrust(calls, outside, Fault::Ended, up);
            }
            Phase::Silent => {
                program.fail_flights(calls, Fault::Ended, up);
                program.phase = Phase::Ending;
            }
            // What it said is read as soon as its client takes it.
            Phase::Killed if program.link.as_ref().is_some_and(Link::is_held) => {}
            Phase::Killed | Phase::Serving | Phase::Empty => {
                // It has exited, or will; whoever still holds its pipes open is not waited for.
                if let Some(link) = program.link.as_mut() {
                    link.close(calls);
                }
                program.stderr.abandon(calls);
                program.fail_flights(calls, Fault::Ended, up);
            }
        }
        calls.set_timer(timer, calls.now() + grace.max(GRACE_MIN));
        let worker = program.worker;
        self.try_finish(calls, worker, outside, up);
        true
    }

    /// The keeper saw it exit.
    pub(crate) fn handle_exited(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        exit: Exit,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        let grace = self.plan.grace;
        let Some(program) = self.find(worker) else { return };
        if program.phase == Phase::Serving && !program.is_slot {
            up.push(Upward::Retired { worker });
        }
        program.exit = Some(exit);
        program.phase = Phase::Killed;
        program.arm(calls, grace);
        self.try_finish(calls, worker, outside, up);
    }

    /// A program is gone when it has exited and all that it said is read.
    fn try_finish(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        let Some(program) = self.find(worker) else { return };
        let read = program.link.as_ref().is_none_or(Link::is_read) && program.stderr.is_closed();
        if program.exit.is_none() || !read {
            return;
        }
        if let (Some(exit), Some(link)) = (&program.exit, program.link.as_mut())
            && exit.status == Status::Code(0)
        {
            let before = link.answers;
            link.conclude(up);
            program.served += link.answers - before;
        }
        let well = program.exit.is_some_and(|exit| exit.status == Status::Code(0));
        if !(program.expected || program.is_slot && well) {
            let (exit, tail) = (program.exit_text(), program.stderr.tail());
            let tail =
                if tail.is_empty() { String::new() } else { format!("; it said last: {tail:?}") };
            tracing::warn!(worker = program.name, "ended by itself: {exit}{tail}");
        }
        program.fail_flights(calls, Fault::Ended, up);
        if let Some(link) = program.link.as_mut() {
            link.close(calls);
        }
        if let Some(timer) = program.timer.take() {
            calls.cancel_timer(timer);
        }
        outside.tokens.remove(&program.token);
        program.give_back(up);
        if program.is_slot && !program.expected {
            program.empty();
            return up.push(Upward::Released { worker });
        }
        up.push(Upward::Ended { worker, expected: program.expected });
        self.live[worker.index()] = None;
    }

    /// Ends a program that has nothing to do.
    pub(crate) fn stop(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        outside: &mut Outside,
        up: &mut Vec<Upward>,
    ) {
        let grace = self.plan.grace;
        let Some(program) = self.find(worker) else { return };
        program.expected = true;
        if program.phase == Phase::Empty {
            self.live[worker.index()] = None;
            up.push(Upward::Ended { worker, expected: true });
        } else if program.phase == Phase::Starting {
            // Its start is on the way to the keeper, and so is this.
            outside.spawner.stop(program.token, spawn::Stop::Kill);
            program.phase = Phase::Killed;
        } else {
            program.end(calls, grace);
        }
    }

    /// Ends a program that has nothing to do and is to serve nobody else. Another takes its place.
    pub(crate) fn retire(&mut self, calls: &mut Calls<'_>, worker: WorkerId, up: &mut Vec<Upward>) {
        let grace = self.plan.grace;
        let serving = self.find(worker).filter(|program| program.phase == Phase::Serving);
        if let Some(program) = serving {
            program.expected = true;
            up.push(Upward::Retired { worker });
            program.end(calls, grace);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.iter().all(Option::is_none)
    }

    pub(crate) fn status(&self) -> Vec<WorkerStatus> {
        let live = self.live.iter().flatten();
        live.map(|program| WorkerStatus {
            name: program.name.clone(),
            pid: program.pid,
            state: match program.phase {
                Phase::Starting => "starting",
                Phase::Serving | Phase::Empty => "serving",
                Phase::Silent | Phase::Ending | Phase::Told | Phase::Killed => "ending",
            },
            in_flight: program.link.as_ref().map_or(0, Link::in_flight),
            served: program.served,
        })
        .collect()
    }
}

/// The shortest time between two looks at a program that is to end.
const GRACE_MIN: Duration = Duration::from_millis(20);
/// How long the end of a program's output waits for how it exited.
const EXIT_WAIT: Duration = Duration::from_millis(250);
/// Between two looks at a program's memory.
const LOOK: Duration = Duration::from_secs(1);
/// Replies that are held beyond one, while they come.
const HOLD_SLACK: usize = 512 << 10;

impl Program {
    /// It takes requests from now on.
    fn serve(&mut self, calls: &mut Calls<'_>, up: &mut Vec<Upward>) {
        self.settle_in(calls);
        up.push(Upward::Started { worker: self.worker });
    }

    /// Its start is over.
    fn settle_in(&mut self, calls: &mut Calls<'_>) {
        self.phase = Phase::Serving;
        if let Some(timer) = self.timer.take() {
            calls.cancel_timer(timer);
        }
    }

    /// What its process was started for and never got.
    fn give_back(&mut self, up: &mut Vec<Upward>) {
        if let Some(request) = self.pending.take() {
            up.push(Upward::Returned { id: request.id, body: request.body });
        }
    }

    /// Its process has gone, and another may be started for the next request.
    fn empty(&mut self) {
        self.phase = Phase::Empty;
        self.pid = None;
        self.link = None;
        self.stderr = Stderr::default();
        self.exit = None;
    }

    /// Closes its input and gives it time to end by itself.
    fn end(&mut self, calls: &mut Calls<'_>, grace: Duration) {
        self.phase = Phase::Ending;
        if let Some(link) = self.link.as_mut() {
            link.finish(calls);
        }
        self.arm(calls, grace);
    }

    fn look_at_memory(&mut self, now: Instant, outside: &Outside, up: &mut Vec<Upward>) {
        if self.looked_at.is_some_and(|at| now.duration_since(at) < LOOK) {
            return;
        }
        self.looked_at = Some(now);
        if let Some(bytes) = self.pid.and_then(|pid| outside.spawner.resident(pid)) {
            up.push(Upward::Memory { worker: self.worker, bytes });
        }
    }

    fn arm(&mut self, calls: &mut Calls<'_>, grace: Duration) {
        let at = calls.now() + grace.max(GRACE_MIN);
        match self.timer {
            Some(timer) => calls.set_timer(timer, at),
            None => self.timer = Some(calls.timer(at)),
        }
    }

    /// It gets no other request: what it has ends, and it is killed.
    fn distrust(
        &mut self,
        calls: &mut Calls<'_>,
        outside: &mut Outside,
        fault: Fault,
        up: &mut Vec<Upward>,
    ) {
        if self.phase == Phase::Serving && !self.is_slot {
            up.push(Upward::Retired { worker: self.worker });
        }
        self.fail_flights(calls, fault, up);
        if let Some(link) = self.link.as_mut() {
            link.close(calls);
        }
        self.phase = Phase::Killed;
        outside.spawner.stop(self.token, spawn::Stop::Kill);
    }

    fn fail_flights(&mut self, calls: &mut Calls<'_>, fault: Fault, up: &mut Vec<Upward>) {
        if !self.link.as_ref().is_some_and(Link::is_owing) {
            return;
        }
        let mut how = self.exit_text();
        if let Some(line) = self.stderr.last_line() {
            how = format!("{how}; it said last: {line}");
        }
        if let Some(link) = self.link.as_mut() {
            link.fail(calls, fault, &self.name, &how, up);
        }
    }

    /// How it exited, if that is known.
    fn exit_text(&self) -> String {
        match &self.exit {
            Some(exit) => exit.to_string(),
            None => "its output ended".to_owned(),
        }
    }
}

fn answer_by(now: Instant, deadline: Duration) -> Option<Instant> {
    (!deadline.is_zero()).then(|| now + deadline)
}
