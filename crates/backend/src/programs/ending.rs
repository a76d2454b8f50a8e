//! How programs end: their input is closed, they receive SIGTERM, they are killed, or they exit by themselves.

use event::TimerId;
use exchange::Proof;
use exchange::WorkerId;
use spawn::Exit;

use super::deadlines::STOP_TIMEOUT_MIN;
use super::pipes::ProgramPipes;
use super::program::Phase;
use super::{Fault, Programs};
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;

impl Programs {
    /// Handles the timer of a program: a stop timeout has passed.
    pub(crate) fn handle_timer(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        (timer, worker): (TimerId, WorkerId),
    ) {
        let stop_timeout = self.config.stop_timeout;
        let found = self.find(worker).filter(|program| program.timer == Some(timer));
        let Some(program) = found else { return };
        match program.phase {
            Phase::Ending => {
                program.phase = Phase::Terminating;
                cx.system.spawner.stop(program.token, spawn::Stop::Term);
            }
            Phase::Terminating => {
                tracing::warn!(worker = program.name, "does not end on SIGTERM, and is killed");
                program.phase = Phase::Killed;
                cx.system.spawner.stop(program.token, spawn::Stop::Kill);
            }
            Phase::Starting => {
                tracing::warn!(worker = program.name, "was not ready in time, and is killed");
                program.kill(cx, Fault::Ended);
            }
            Phase::Silent => {
                program.fail_requests(cx, Fault::Ended);
                program.phase = Phase::Ending;
            }
            // The remaining output is read as soon as the client reads.
            Phase::Killed if program.pipes.as_ref().is_some_and(ProgramPipes::is_held) => {}
            Phase::Killed | Phase::Serving | Phase::Empty => {
                // The program has exited or will exit. Other processes that hold its pipes open are not waited for.
                if let Some(pipes) = program.pipes.as_mut() {
                    pipes.close(cx.io);
                }
                program.stderr.abandon(cx.io);
                program.prints.abandon(cx.io);
                program.fail_requests(cx, Fault::Ended);
            }
        }
        cx.io.set_timer(timer, cx.io.now() + stop_timeout.max(STOP_TIMEOUT_MIN));
        self.try_finish(cx, worker);
    }

    /// Handles the supervisor's report that the program exited.
    pub(super) fn handle_exited(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        exit: Exit,
    ) {
        let stop_timeout = self.config.stop_timeout;
        let Some(program) = self.find(worker) else { return };
        if program.phase == Phase::Serving && !program.is_slot {
            cx.events.push(BackendEvent::Retired { worker });
        }
        program.exit = Some(exit);
        program.phase = Phase::Killed;
        program.arm(cx.io, stop_timeout);
        self.try_finish(cx, worker);
    }

    /// Removes a program that has exited and whose output is read completely.
    pub(super) fn try_finish(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        let (is_own, says_ready) =
            (self.config.is_own, self.config.says_ready || self.config.needs_handshake);
        let Some(program) = self.find(worker) else { return };
        let read = program.pipes.as_ref().is_none_or(ProgramPipes::is_read)
            && program.stderr.is_closed()
            && program.prints.is_closed();
        if program.exit.is_none() || !read {
            return;
        }
        let well = program.has_exited_well();
        if let Some(pipes) = program.pipes.as_mut().filter(|_| well) {
            let before = pipes.answers;
            pipes.conclude(cx.events);
            program.served += pipes.answers - before;
        }
        if !(program.is_expected() || program.is_slot && well) {
            let (exit, tail) = (program.exit_text(), program.stderr.tail());
            let tail =
                if tail.is_empty() { String::new() } else { format!("; it said last: {tail:?}") };
            match program.killed_for {
                Some(fault) => {
                    let why = fault.as_str();
                    tracing::warn!(worker = program.name, "was killed by us ({why}){tail}");
                }
                None => tracing::warn!(worker = program.name, "ended by itself: {exit}{tail}"),
            }
        }
        if well && program.pipes.as_ref().is_some_and(ProgramPipes::is_own_raw) {
            // This event precedes the outcomes of the requests: on a connection of raw bytes no error replies are sent
            // for them.
            cx.events.push(BackendEvent::Finished { worker });
        }
        program.fail_requests(cx, Fault::Ended);
        let exit_report = program.exit_report();
        if let Some(pipes) = program.pipes.as_mut() {
            pipes.close(cx.io);
        }
        if let Some(timer) = program.timer.take() {
            cx.io.cancel_timer(timer);
        }
        cx.system.tokens.remove(&program.token);
        program.give_back(cx.events);
        if program.is_slot && !program.expected {
            program.empty();
            return cx.events.push(BackendEvent::Released { worker });
        }
        // A program that sends no ready message may have failed before it read anything.
        let has_started = says_ready || program.killed_for.is_some() || is_own && well;
        if let (Some(client), Some(pipes)) = (program.asker, &program.pipes)
            && pipes.has_received_request(has_started)
        {
            cx.events.push(BackendEvent::Proven { worker, proof: Proof::Given { client } });
        }
        let expected = program.is_expected();
        let trouble = (!expected).then(|| program.trouble(cx.io.now()));
        cx.events
            .extend(trouble.map(|trouble| BackendEvent::Trouble { trouble: Box::new(trouble) }));
        cx.events.push(BackendEvent::Ended { worker, expected, reached: true });
        self.exit_report = exit_report;
        *self.live.at(worker) = None;
    }

    /// Ends a program without requests in flight.
    pub(crate) fn stop(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        let stop_timeout = self.config.stop_timeout;
        let Some(program) = self.find(worker) else { return };
        program.expected = true;
        if program.phase == Phase::Empty {
            *self.live.at(worker) = None;
            cx.events.push(BackendEvent::Ended { worker, expected: true, reached: true });
        } else if program.phase == Phase::Starting {
            // The start order is on its way to the supervisor; this order follows it.
            cx.system.spawner.stop(program.token, spawn::Stop::Kill);
            program.phase = Phase::Killed;
        } else {
            program.end(cx.io, stop_timeout);
        }
    }

    /// Sends SIGTERM to a program that serves HTTP and has no requests in flight. `expected`: the daemon decided to end
    /// it, and no fault of the program is the reason.
    pub(crate) fn drain(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        expected: bool,
    ) {
        let stop_timeout = self.config.stop_timeout;
        let serving = self.find(worker).filter(|program| program.phase == Phase::Serving);
        if let Some(program) = serving {
            program.expected = expected;
            program.phase = Phase::Terminating;
            cx.system.spawner.stop(program.token, spawn::Stop::Term);
            program.arm(cx.io, stop_timeout);
        }
    }

    /// Ends a program without requests in flight that must not serve another client. It is replaced.
    pub(crate) fn retire(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        let stop_timeout = self.config.stop_timeout;
        let serving = self.find(worker).filter(|program| program.phase == Phase::Serving);
        if let Some(program) = serving {
            program.expected = true;
            cx.events.push(BackendEvent::Retired { worker });
            program.end(cx.io, stop_timeout);
        }
    }
}
