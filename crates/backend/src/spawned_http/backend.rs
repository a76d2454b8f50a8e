//! The implementation of [`Backend`] for programs that serve HTTP.

use std::any::Any;

use event::{Address, Context, StreamId, TimerId};
use exchange::{ByWorker, RequestId, WorkerId};

use super::{SpawnedHttp, SpawnedHttpConfig};
use crate::backend::{Backend, BackendContext};
use crate::connection_counts::ConnectionCounts;
use crate::system::System;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::stream_event::StreamEvent;
use flow::stream_owner::{StreamPurpose, WorkerTimer};
use observe::status::WorkerStatus;

impl Backend for SpawnedHttp {
    fn configure(
        &mut self,
        config: Box<dyn Any>,
        _names: &ByWorker<Option<String>>,
        _connections: Option<ConnectionCounts>,
    ) {
        if let Ok(config) = config.downcast::<SpawnedHttpConfig>() {
            self.handle_config(*config);
        }
    }

    fn start(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.start(cx, worker);
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
        self.dispatch(cx, worker, request, meta);
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
        of: (StreamId, StreamPurpose),
        event: StreamEvent<'_, '_>,
    ) {
        self.handle_stream_event(cx, of, event);
    }

    fn on_timer(&mut self, cx: &mut BackendContext<'_, '_>, timer: (TimerId, WorkerTimer)) {
        self.handle_timer(cx, timer);
    }

    fn on_process(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        report: spawn::Report,
    ) {
        self.handle_report(cx, worker, report);
    }

    fn accepts(
        &mut self,
        io: &Context<'_>,
        worker: WorkerId,
        stream: StreamId,
        system: &System,
    ) -> bool {
        self.port_owner(io, worker, stream, system) == spawn::PortOwner::Program
    }

    fn address(&self, worker: WorkerId) -> Option<&Address> {
        self.server_address(worker)
    }

    fn is_starting(&self, worker: WorkerId) -> bool {
        self.is_starting(worker)
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn status(&self) -> Vec<WorkerStatus> {
        self.status()
    }
}
