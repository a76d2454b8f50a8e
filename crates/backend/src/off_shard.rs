//! Workers of a pool that another shard serves.

use std::any::Any;

use exchange::{ByWorker, RequestId, WorkerId};

use crate::backend::{Backend, BackendContext};
use crate::connection_counts::ConnectionCounts;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use observe::status::WorkerStatus;

/// A backend without workers: they run on another shard.
#[derive(Debug)]
pub(crate) struct OffShard;

impl Backend for OffShard {
    fn configure(
        &mut self,
        _plan: Box<dyn Any>,
        _names: &ByWorker<Option<String>>,
        _connections: Option<ConnectionCounts>,
    ) {
    }

    fn start(&mut self, _cx: &mut BackendContext<'_, '_>, _worker: WorkerId) {}

    fn stop(&mut self, _cx: &mut BackendContext<'_, '_>, _worker: WorkerId) {}

    fn dispatch(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        _worker: WorkerId,
        _request: Request,
        _meta: RequestMeta,
        _more_follow: bool,
    ) {
    }

    fn control(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        _worker: WorkerId,
        _id: RequestId,
        _control: RequestControl,
    ) {
    }

    fn is_empty(&self) -> bool {
        true
    }

    fn status(&self) -> Vec<WorkerStatus> {
        Vec::new()
    }
}
