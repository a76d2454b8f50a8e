//! The implementation of [`Backend`] for servers.

use std::any::Any;
use std::net::SocketAddr;

use event::{Context, StreamId};
use exchange::{ByWorker, RequestId, WorkerId, WorkerIndex};

use super::{Upstream, UpstreamConfig};
use crate::backend::{Backend, BackendContext};
use crate::connection_counts::ConnectionCounts;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::stream_event::StreamEvent;
use flow::stream_owner::StreamPurpose;
use observe::status::WorkerStatus;

impl Backend for Upstream {
    fn configure(
        &mut self,
        config: Box<dyn Any>,
        names: &ByWorker<Option<String>>,
        connections: Option<ConnectionCounts>,
    ) {
        if let Ok(config) = config.downcast::<UpstreamConfig>() {
            self.handle_config(*config, names, connections);
        }
    }

    fn start(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.start(worker, cx.events);
    }

    fn stop(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.stop(cx, worker);
    }

    fn retire(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.stop_using(cx, worker);
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

    /// Servers have no timers: their timeouts are deadlines of connections.
    fn on_stream(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        (_, purpose): (StreamId, StreamPurpose),
        event: StreamEvent<'_, '_>,
    ) {
        if let StreamPurpose::Connection(connection) = purpose {
            self.handle_stream_event(cx, connection, event);
        }
    }

    fn on_moved(&mut self, cx: &mut BackendContext<'_, '_>, name: &str, to: SocketAddr) {
        self.handle_moved(cx, name, to);
    }

    fn release_idle(&mut self, io: &mut Context<'_>, worker: WorkerIndex) {
        self.close_idle_for_shard(io, worker);
    }

    fn close_one_idle(&mut self, io: &mut Context<'_>) -> bool {
        self.close_one_idle(io)
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn status(&self) -> Vec<WorkerStatus> {
        self.status()
    }
}
