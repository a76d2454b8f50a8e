//! Programs start, read, answer and end.

use std::time::Duration;

use gateway::ShardMail;
use spawn::{Exit, Report, StartError, Status, Stop};
use wire::Framing;

use crate::ids::{DescriptorId, Party};
use crate::net::Kind;
use crate::programs::{Act, Life, Nature, frames};
use crate::scheduled_event::{Moment, ScheduledEvent};
use crate::world::World;

/// Returns one frame. Lines of clients fit into every framing of programs.
fn framed(framing: Framing, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    wire::encode(framing, body, &mut frame).expect("lines of clients can be framed");
    frame
}

/// The maximum time between a surplus line and the reply after it. It is less than the shortest silence that passes a
/// check for surplus output.
const STRAYED_MAX: Duration = Duration::from_millis(8);

const FAULTY: &[Nature] = &[
    Nature::Slow,
    Nature::Twice,
    Nature::Strays,
    Nature::Quits,
    Nature::StopsAnswering,
    Nature::Chatty,
    Nature::ClosesOutput,
    Nature::Refuses,
    Nature::Floods,
    Nature::Stubborn,
    Nature::ExitsAtStart,
    Nature::LeavesChild,
];

impl World {
    pub(crate) fn nature(&mut self) -> Nature {
        let faulty = self.scenario.faulty_programs;
        if self.scenario.programs_stray && !self.progress.calm && self.chance.in_1000(500) {
            return Nature::Strays;
        }
        if self.fault(faulty) { self.chance.pick(FAULTY) } else { Nature::Good }
    }

    /// Completes the start of a program, successfully or not.
    pub(crate) fn program_starts(&mut self, number: usize) {
        let absent = number < self.scenario.programs_absent
            && self.workers.programs[number].serves.is_none();
        let fails = self.fault(40) || absent;
        let program = &mut self.workers.programs[number];
        let (shard, token) = (program.shard, program.token);
        let pipes = program.pipes.take();
        let Some(pipes) = pipes.filter(|_| !fails) else {
            program.life = Life::Reported;
            let serves = program.serves;
            self.note("a program cannot be started: program", number, 0);
            if let Some(server) = serves {
                self.host_has_ended(server, Status::Lost);
            }
            let error = StartError::NotFound { program: "worker".to_owned(), path: None };
            return self.post(shard, ShardMail::Program(Report::StartFailed { token, error }));
        };
        program.life = Life::Running;
        let killed = program.killed_early;
        let born_dead = program.nature == Nature::ExitsAtStart;
        let chatty = program.nature == Nature::Chatty && program.patience.is_multiple_of(2);
        self.note("a program runs: program", number, 0);
        let pid = u32::try_from(1000 + number).unwrap_or(u32::MAX);
        self.post(shard, ShardMail::Program(Report::Started { token, pid, pipes }));
        if killed {
            return self.exit(number, Status::Signal(9));
        }
        if self.workers.programs[number].serves.is_some() {
            return self.host_begins(number);
        }
        if born_dead {
            let delay = self.chance.time(Duration::from_micros(10), Duration::from_millis(50));
            self.plan(number, delay, Act::Exit);
        }
        if chatty {
            let delay = self.chance.time(Duration::from_micros(10), Duration::from_secs(1));
            self.plan(number, delay, Act::Say(framed(self.scenario.framing, b"hello, I am ready")));
        }
        self.wake_program(number, Duration::ZERO);
    }

    /// Starts a program that serves HTTP; it listens later, or never.
    pub(super) fn host_begins(&mut self, number: usize) {
        let nature = self.workers.programs[number].nature;
        if let Some(delay) = self.listens_after(nature) {
            self.plan(number, delay, Act::Listen);
        }
        if self.chance.in_1000(300) {
            self.plan(number, Duration::from_micros(10), Act::Say(b"serves\n".to_vec()));
        }
        match nature {
            Nature::ExitsAtStart => {
                let longest =
                    self.chance.pick(&[Duration::from_millis(50), Duration::from_secs(3)]);
                let delay = self.chance.time(Duration::from_micros(10), longest);
                self.plan(number, delay, Act::Exit);
            }
            Nature::ClosesOutput => self.plan(number, Duration::from_millis(1), Act::CloseOutput),
            _ => {}
        }
        self.wake_program(number, Duration::ZERO);
    }

    /// Whether a program that serves HTTP ends at this request.
    pub(crate) fn program_quits(&mut self, number: usize) -> bool {
        let program = &mut self.workers.programs[number];
        let leaves = matches!(program.nature, Nature::Quits | Nature::LeavesChild);
        let wrong = program.patience == 0;
        program.patience = program.patience.saturating_sub(1);
        leaves && wrong
    }

    /// Schedules an action of a program, after its earlier actions.
    pub(super) fn plan(&mut self, number: usize, delay: Duration, act: Act) {
        let program = &mut self.workers.programs[number];
        let behind = program.acts.back().map_or(Moment::ZERO, |(at, _)| *at);
        let at = (self.time.now + delay).max(behind);
        program.acts.push_back((at, act));
        self.call_program(number, at);
    }

    /// Schedules a step of a program at `at`, unless an earlier one is scheduled.
    pub(super) fn call_program(&mut self, number: usize, at: Moment) {
        let program = &mut self.workers.programs[number];
        if program.called.is_none_or(|called| called > at || called < self.time.now) {
            program.called = Some(at);
            self.at(at, ScheduledEvent::Program(number));
        }
    }

    pub(crate) fn wake_program(&mut self, number: usize, delay: Duration) {
        self.call_program(number, self.time.now + delay);
    }

    /// Makes a program read, perform its due actions, and write.
    pub(crate) fn program_acts(&mut self, number: usize) {
        if self.workers.programs[number].called.is_some_and(|called| called <= self.time.now) {
            self.workers.programs[number].called = None;
        }
        if self.workers.programs[number].life != Life::Running {
            return;
        }
        self.program_reads(number);
        while self.workers.programs[number].life == Life::Running {
            let due = self.workers.programs[number].acts.front().map(|(at, _)| *at);
            match due {
                Some(at) if at <= self.time.now => self.do_next(number),
                Some(at) => {
                    self.call_program(number, at);
                    break;
                }
                None => break,
            }
        }
        if self.workers.programs[number].life == Life::Running {
            self.program_writes(number);
        }
    }

    pub(super) fn do_next(&mut self, number: usize) {
        let Some((_, act)) = self.workers.programs[number].acts.pop_front() else { return };
        match act {
            Act::Say(bytes) => self.workers.programs[number].unwritten.extend(bytes),
            Act::Exit => {
                self.program_writes(number);
                if self.workers.programs[number].life == Life::Running {
                    let code = i32::from(self.workers.programs[number].nature != Nature::Good);
                    self.exit(number, Status::Code(code));
                }
            }
            Act::CloseOutput => {
                self.program_writes(number);
                let stdout = self.workers.programs[number].stdout;
                self.end_flow(stdout);
            }
            Act::CloseInput => self.close_stdin(number),
            Act::Listen => {
                let serves = self.workers.programs[number].serves;
                serves.into_iter().for_each(|server| self.host_serves(server));
            }
        }
    }

    pub(super) fn close_stdin(&mut self, number: usize) {
        let stdin = self.workers.programs[number].stdin;
        self.net.flow(stdin).leave();
        if let Party::Gateway(id) = self.net.flow(stdin).writer {
            self.edge(id, crate::net::Edge::End);
        }
    }

    pub(super) fn program_reads(&mut self, number: usize) {
        let stdin = self.workers.programs[number].stdin;
        let is_host = self.workers.programs[number].serves.is_some();
        let flow = self.net.flow(stdin);
        if flow.deaf || is_host {
            return;
        }
        let (ready, ended) = (flow.ready(), flow.ended);
        if ready > 0 {
            let most = if self.chance.in_1000(200) { self.chance.between(1, ready) } else { ready };
            let bytes = self.net.flow(stdin).take_some(most);
            self.note("a program reads: program, bytes", number, bytes.len());
            self.workers.programs[number].begun.extend(bytes);
            self.made_room(stdin);
            if most < ready {
                self.wake_program(number, Duration::from_micros(5));
            }
        }
        let begun = std::mem::take(&mut self.workers.programs[number].begun);
        let (frames, rest) = frames(self.scenario.framing, &begun);
        let rest = rest.to_vec();
        let frames: Vec<Vec<u8>> = frames.into_iter().map(<[u8]>::to_vec).collect();
        for frame in frames {
            self.answer(number, frame);
        }
        self.workers.programs[number].begun = rest;
        let over = ended && self.net.flow(stdin).ready() == 0;
        if over && !std::mem::replace(&mut self.workers.programs[number].input_over, true) {
            self.note("a program sees the end of its input: program", number, 0);
            if !matches!(self.workers.programs[number].nature, Nature::Stubborn) {
                self.plan(number, Duration::from_micros(50), Act::Exit);
            }
        }
    }

    /// Schedules the reaction to a line.
    pub(super) fn answer(&mut self, number: usize, line: Vec<u8>) {
        let most = self.scenario.work_max;
        let mut delay = self.chance.time(Duration::from_micros(5), most);
        let refuses = self.chance.in_1000(self.scenario.refusals);
        let reply = if refuses { [b"!no ", &line[..]].concat() } else { line.clone() };
        let framing = self.scenario.framing;
        let mut reply = framed(framing, &reply);
        let program = &mut self.workers.programs[number];
        program.heard.push(line);
        let wrong = program.patience == 0;
        program.patience = program.patience.saturating_sub(1);
        let nature = if wrong { program.nature } else { Nature::Good };
        if self.chance.in_1000(20) {
            self.workers.programs[number].complaint += 200;
        }
        match nature {
            Nature::Good | Nature::Stubborn | Nature::ExitsAtStart => {}
            Nature::StopsAnswering => {
                if self.chance.in_1000(500) {
                    let kept = self.chance.below(reply.len());
                    reply.truncate(kept);
                    self.plan(number, delay, Act::Say(reply));
                }
                return;
            }
            Nature::Slow => {
                if self.chance.in_1000(400) {
                    let deadline = self.scenario.deadline;
                    delay = self.chance.time(deadline / 8, deadline * 2);
                }
            }
            Nature::Twice => {
                if self.chance.in_1000(500) {
                    reply = reply.repeat(2);
                }
            }
            Nature::Strays => {
                self.plan(number, delay, Act::Say(framed(framing, b"cache miss")));
                delay += self.chance.time(Duration::from_micros(1), STRAYED_MAX);
            }
            Nature::Quits => {
                let kept = self.chance.below(reply.len());
                reply.truncate(if self.chance.in_1000(500) { 0 } else { kept });
                self.plan(number, delay, Act::Say(reply));
                return self.plan(number, Duration::ZERO, Act::Exit);
            }
            Nature::Chatty => {
                self.plan(number, delay, Act::Say(reply));
                let later = self.chance.time(Duration::from_micros(1), Duration::from_millis(500));
                return self.plan(number, later, Act::Say(framed(framing, b"by the way")));
            }
            Nature::ClosesOutput => {
                self.plan(number, delay, Act::Say(reply));
                return self.plan(number, Duration::ZERO, Act::CloseOutput);
            }
            Nature::Refuses => {
                self.plan(number, delay, Act::CloseInput);
            }
            Nature::Floods => {
                let size = self.scenario.reply_max * 2 + 100;
                reply = vec![b'x'; size];
                self.workers.programs[number].complaint += 5000;
            }
            Nature::LeavesChild => {
                self.plan(number, delay, Act::Say(reply));
                return self.plan(number, Duration::ZERO, Act::Exit);
            }
        }
        self.plan(number, delay, Act::Say(reply));
    }

    pub(super) fn program_writes(&mut self, number: usize) {
        let (stdout, stderr) =
            (self.workers.programs[number].stdout, self.workers.programs[number].stderr);
        let out = self.net.flow(stdout);
        let (space, gone, ended) = (out.space(), out.deaf, out.end_sent);
        if ended {
            self.workers.programs[number].unwritten.clear();
        }
        let count = space.min(self.workers.programs[number].unwritten.len());
        if gone && !self.workers.programs[number].unwritten.is_empty() {
            self.note("a program writes to nobody: program", number, 0);
            return self.exit(number, Status::Signal(13));
        }
        if count > 0 {
            let whole = !self.chance.in_1000(200);
            let count = if whole { count } else { self.chance.between(1, count) };
            let bytes: Vec<u8> = self.workers.programs[number].unwritten.drain(..count).collect();
            self.workers.programs[number].said.extend(&bytes);
            self.note("a program writes: program, bytes", number, bytes.len());
            let delay = self.chance.time(Duration::from_nanos(500), Duration::from_micros(200));
            self.put(stdout, bytes, delay);
            if !whole {
                self.wake_program(number, Duration::from_micros(30));
            }
        }
        let complaint = self.workers.programs[number].complaint;
        let err = self.net.flow(stderr);
        let count = complaint.min(err.space());
        if count > 0 && !err.end_sent && !err.deaf {
            self.workers.programs[number].complaint -= count;
            let line: Vec<u8> = b"something is odd\n".iter().copied().cycle().take(count).collect();
            self.put(stderr, line, Duration::from_micros(5));
        }
    }

    /// Delivers a signal.
    pub(crate) fn signal(&mut self, number: usize, how: Stop) {
        let program = &mut self.workers.programs[number];
        match (program.life, how) {
            (Life::Starting, _) => program.killed_early = true,
            (Life::Running, Stop::Term) if program.nature == Nature::Stubborn => {}
            (Life::Running, Stop::Term) => self.exit(number, Status::Signal(15)),
            (Life::Running, Stop::Kill) => self.exit(number, Status::Signal(9)),
            (Life::Exited | Life::Reported, _) => {}
        }
    }

    /// Ends a program. Its pipes close, unless a child of it holds them.
    pub(crate) fn exit(&mut self, number: usize, status: Status) {
        if self.workers.programs[number].life != Life::Running {
            return;
        }
        self.note("a program exits: program", number, 0);
        let program = &mut self.workers.programs[number];
        program.life = Life::Exited;
        program.status = status;
        program.acts.clear();
        program.unwritten.clear();
        let serves = program.serves;
        let held = program.nature == Nature::LeavesChild && status != Status::Lost;
        let release = if held { Duration::from_secs(8) } else { Duration::ZERO };
        self.close_stdin(number);
        if held {
            self.after(release, ScheduledEvent::PipesReleased(number));
        } else {
            self.release_pipes(number);
        }
        if let Some(server) = serves {
            self.host_has_ended(server, status);
        }
        let delay = self.chance.time(Duration::from_micros(1), Duration::from_millis(10));
        self.after(delay, ScheduledEvent::ProgramReported(number));
    }

    /// Closes its output, which no process holds open any more.
    pub(crate) fn release_pipes(&mut self, number: usize) {
        let (stdout, stderr) =
            (self.workers.programs[number].stdout, self.workers.programs[number].stderr);
        self.end_flow(stdout);
        self.end_flow(stderr);
    }

    /// Reports its end.
    pub(crate) fn report_exit(&mut self, number: usize) {
        let program = &mut self.workers.programs[number];
        if program.life != Life::Exited {
            return;
        }
        program.life = Life::Reported;
        let (shard, token, status) = (program.shard, program.token, program.status);
        let exit =
            Exit { status, core: false, user: Duration::ZERO, system: Duration::ZERO, rss_max: 0 };
        self.note("the end of a program is reported: program", number, 0);
        self.post(shard, ShardMail::Program(Report::Exited { token, exit }));
    }

    /// Simulates the loss of the supervisor, which ends all programs.
    pub(crate) fn lose_supervisor(&mut self) {
        self.note("the supervisor is lost", 0, 0);
        // The first shard counts the loss. Each shard receives the reports of its own programs.
        self.post(0, ShardMail::Program(Report::SupervisorLost));
        for number in 0..self.workers.programs.len() {
            match self.workers.programs[number].life {
                Life::Running => self.exit(number, Status::Lost),
                Life::Exited => {}
                Life::Starting | Life::Reported => continue,
            }
            self.report_exit(number);
        }
        self.post(0, ShardMail::Program(Report::SupervisorReplaced));
    }

    /// Records bytes that the kernel accepted from the gateway for a program.
    pub(crate) fn gateway_wrote(&mut self, id: DescriptorId, bytes: &[u8]) {
        let Kind::PipeOut(flow) = self.net.descriptor(id).kind else { return };
        if let Party::Program(number) = self.net.flow(flow).reader {
            self.workers.programs[number].given.extend_from_slice(bytes);
        }
    }
}
