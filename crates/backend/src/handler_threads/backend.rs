//! The implementation of [`Backend`] for handlers on threads.

use std::any::Any;

use event::TimerId;
use exchange::{ByWorker, RequestId, WorkerId};

use super::{HandlerThreadsConfig, Handlers};
use crate::backend::{Backend, BackendContext};
use crate::connection_counts::ConnectionCounts;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::stream_owner::WorkerTimer;
use flow::worker_report::HandlerReport;
use observe::status::WorkerStatus;

impl Backend for Handlers {
    fn configure(
        &mut self,
        config: Box<dyn Any>,
        _names: &ByWorker<Option<String>>,
        _connections: Option<ConnectionCounts>,
    ) {
        if let Ok(config) = config.downcast::<HandlerThreadsConfig>() {
            self.handle_config(config.deadline, config.shape);
        }
    }

    fn start(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.start(worker, cx);
    }

    fn stop(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.stop(worker, cx.system);
    }

    fn dispatch(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        request: Request,
        meta: RequestMeta,
        more_follow: bool,
    ) {
        self.dispatch(cx, worker, (request, meta, more_follow));
    }

    fn control(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        id: RequestId,
        control: RequestControl,
    ) {
        self.control(worker, id, &control);
    }

    fn on_timer(&mut self, cx: &mut BackendContext<'_, '_>, (timer, of): (TimerId, WorkerTimer)) {
        if let WorkerTimer::Batch(worker) = of {
            self.handle_timer(timer, worker, cx.events);
        }
    }

    fn on_report(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        report: HandlerReport,
    ) {
        self.handle_report(cx, worker, report);
    }

    fn interrupt(&self) {
        self.interrupt();
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn status(&self) -> Vec<WorkerStatus> {
        self.status()
    }
}
