//! The implementation of [`Backend`] for programs on pipes.

use std::any::Any;
use std::sync::Arc;

use event::{Context, StreamId, TimerId};
use exchange::{ByWorker, RequestId, WorkerId};

use super::{LaunchOptions, ProgramConfig, Programs};
use crate::backend::{Backend, BackendContext};
use crate::connection_counts::ConnectionCounts;
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

    fn dispatch(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        request: Request,
        meta: RequestMeta,
        _more_follow: bool,
    ) {
        self.dispatch(cx, worker, (request, meta));
    }

    fn control(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        id: RequestId,
        control: RequestControl,
    ) {
        self.control(cx, worker, id, control);
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

    fn on_process(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        report: spawn::Report,
    ) {
        self.handle_report(cx, worker, report);
    }

    fn set_heard(&mut self, worker: WorkerId, heard: bool) {
        self.set_heard(worker, heard);
    }

    fn pause_program(&mut self, io: &mut Context<'_>, worker: WorkerId, paused: bool) {
        self.pause_program(io, worker, paused);
    }

    fn leave(&mut self, worker: WorkerId, gone: bool, replaced: bool) {
        self.leave(worker, gone, replaced);
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn status(&self) -> Vec<WorkerStatus> {
        self.status()
    }
}
