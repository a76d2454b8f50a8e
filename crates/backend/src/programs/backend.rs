//! The implementation of [`Backend`] for programs on pipes.

use std::any::Any;
use std::sync::Arc;

use event::{Context, StreamId, TimerId};
use exchange::{ByWorker, RequestId, WorkerId};
use spawn::Report;

use super::pipes::ProgramPipes;
use super::program::Phase;
use super::{LaunchOptions, ProgramConfig, Programs};
use crate::backend::{Backend, BackendContext};
use crate::connection_counts::ConnectionCounts;
use flow::backend_event::BackendEvent;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::stream_event::StreamEvent;
use flow::stream_owner::{StreamPurpose, WorkerTimer};
use observe::status::WorkerStatus;

impl Backend for Programs {
    fn configure(
        &mut self,
        config: Box<dyn Any>,
        _names: &ByWorker<Option<String>>,
        _connections: Option<ConnectionCounts>,
    ) {
        if let Ok(config) = config.downcast::<Arc<ProgramConfig>>() {
            self.handle_config(*config);
        }
    }

    fn start(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.start(cx, worker, LaunchOptions::default());
    }

    fn stop(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.stop(cx, worker);
    }

    fn retire(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.retire(cx, worker);
    }

    /// Sends a request to the program. If the program was found to be faulty in the same turn, the request is returned.
    fn dispatch(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        request: Request,
        meta: RequestMeta,
        _more_follow: bool,
    ) {
        let deadline = self.config.deadline;
        let ready = [Phase::Serving, Phase::Empty];
        let ready = self.find(worker).filter(|program| ready.contains(&program.phase));
        let Some(program) = ready else {
            return cx.events.push(BackendEvent::Retry {
                id: request.id,
                payload: request.payload,
                meta,
                failed: None,
            });
        };
        if program.phase == Phase::Empty {
            program.pending = Some((request, meta));
            return self.launch(cx, worker, LaunchOptions::default());
        }
        program.asker = Some(meta.asker.client);
        program.is_orphaned &= !meta.is_reset;
        program.audience.handle_sent(meta.asker.client, meta.is_reset, program.stderr.received());
        match program.pipes.as_mut() {
            Some(pipes) => pipes.send(cx, worker, (request, meta), deadline),
            None => {
                let Request { id, payload, .. } = request;
                cx.events.push(BackendEvent::Retry { id, payload, meta, failed: None });
            }
        }
    }

    /// Handles a control message about a request in flight.
    fn control(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        id: RequestId,
        word: RequestControl,
    ) {
        let (is_shared, deadline) = (self.config.is_shared, self.config.deadline);
        let Some(pipes) = self.find(worker).and_then(|program| program.pipes.as_mut()) else {
            return;
        };
        match word {
            // Replies to other clients arrive through the same pipe.
            RequestControl::Pause if is_shared => {}
            RequestControl::Pause => pipes.pause_reply(cx.io, id),
            RequestControl::Resume => pipes.resume_reply(cx.io, id, deadline),
            // A frame is complete when it is dispatched.
            RequestControl::Body(..) | RequestControl::BodyEnd | RequestControl::Splice(_) => {}
            RequestControl::Abandoned => {
                pipes.resume_reply(cx.io, id, deadline);
                pipes.cancel(cx, worker, id);
                pipes.arm(cx.io, deadline);
            }
        }
    }

    fn on_stream(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        (_, purpose): (StreamId, StreamPurpose),
        event: StreamEvent<'_, '_>,
    ) {
        if let StreamPurpose::Pipe(worker, pipe) = purpose {
            self.handle_stream_event(cx, (worker, pipe), event);
        }
    }

    fn on_timer(&mut self, cx: &mut BackendContext<'_, '_>, (timer, of): (TimerId, WorkerTimer)) {
        if let WorkerTimer::Program(worker) = of {
            self.handle_timer(cx, (timer, worker));
        }
    }

    /// Handles a report of the supervisor about the process of a worker.
    fn on_process(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId, report: Report) {
        match report {
            Report::Started { pid, pipes, .. } => {
                self.handle_started(cx, worker, pid, pipes);
            }
            Report::StartFailed { token, error } => {
                cx.system.tokens.remove(&token);
                self.handle_start_failed(worker, &error, cx.events);
            }
            Report::Exited { exit, .. } => self.handle_exited(cx, worker, exit),
            // These reports do not concern a single process.
            Report::SupervisorLost | Report::SupervisorReplaced => {}
        }
    }

    /// Sets whether the connection of a session program receives its unsolicited output.
    fn set_heard(&mut self, worker: WorkerId, heard: bool) {
        if let Some(pipes) = self.find(worker).and_then(|program| program.pipes.as_mut()) {
            pipes.set_heard(heard);
        }
    }

    /// Stops or resumes reading the output of a session program, because its connection stopped or resumed reading.
    fn pause_program(&mut self, io: &mut Context<'_>, worker: WorkerId, paused: bool) {
        let deadline = self.config.deadline;
        if let Some(pipes) = self.find(worker).and_then(|program| program.pipes.as_mut()) {
            if paused { pipes.pause_program(io) } else { pipes.resume_program(io, deadline) }
        }
    }

    /// Handles that the connection of a session program sends no more requests or is `gone`. With `replaced`, the
    /// program must not serve another connection. Once the connection is gone, the exit of the program counts as
    /// expected unless it fails, until the program is reset.
    fn leave(&mut self, worker: WorkerId, gone: bool, replaced: bool) {
        let Some(program) = self.find(worker) else { return };
        program.is_orphaned |= gone;
        if let Some(pipes) = program.pipes.as_mut() {
            pipes.leave(replaced);
        }
    }

    fn is_empty(&self) -> bool {
        self.live.values().all(Option::is_none)
    }

    fn status(&self) -> Vec<WorkerStatus> {
        self.status_with(|worker| match self.live.get(worker).and_then(Option::as_ref) {
            Some(program) => {
                (program.pipes.as_ref().map_or(0, ProgramPipes::in_flight), program.served)
            }
            None => (0, 0),
        })
    }
}
