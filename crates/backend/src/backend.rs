//! What a shard asks of the workers of a pool, of whatever kind they are.

use std::any::Any;
use std::net::SocketAddr;

use event::{Address, Calls, StreamId, TimerId};
use exchange::{ByWorker, PoolId, RequestId, WorkerId, WorkerIndex};

use crate::connection_counts::ConnectionCounts;
use crate::system::System;
use flow::backend_event::BackendEvent;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::stream_event::StreamEvent;
use flow::stream_owner::{StreamPurpose, WorkerTimer};
use flow::worker_report::HandlerReport;
use flow::worker_traits::WorkerTraits;
use observe::status::WorkerStatus;

/// What a backend works with during one call.
#[derive(Debug)]
pub struct BackendContext<'a, 'b> {
    /// The loop.
    pub calls: &'a mut Calls<'b>,
    /// Processes and threads.
    pub system: &'a mut System,
    /// What the backend reports. The engine takes the events in their order after the call.
    pub events: &'a mut Vec<BackendEvent>,
}

/// The workers of one pool. The engine decides which of them starts, ends and gets a request; a backend
/// carries that out and reports what becomes of it as [`BackendEvent`]s.
///
/// A kind of worker implements what concerns it: by default a call does nothing.
pub trait Backend: Send {
    /// The configuration was reloaded. `plan` is what [`Self`] was made from, with other values: no pool gets
    /// workers of another kind. `names` are those of the workers; `connections` are counted for all shards,
    /// where several connect to the same servers.
    fn configure(
        &mut self,
        plan: Box<dyn Any>,
        names: &ByWorker<Option<String>>,
        connections: Option<ConnectionCounts>,
    );

    /// Starts a worker. It is reported as started, or as failed to start.
    fn start(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId);

    /// Ends a worker that has no request in flight.
    fn stop(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId);

    /// Ends a worker that gets no further request, as soon as it has none in flight.
    fn retire(&mut self, _cx: &mut BackendContext<'_, '_>, _worker: WorkerId) {}

    /// Gives a request to a worker. `more_follow`: other requests of the same batch follow in this turn.
    fn dispatch(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        request: Request,
        meta: RequestMeta,
        more_follow: bool,
    );

    /// Tells a worker something about a request that it has.
    fn control(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        id: RequestId,
        control: RequestControl,
    );

    /// An event of a stream that belongs to one of the workers.
    fn on_stream(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        _of: (StreamId, StreamPurpose),
        _event: StreamEvent<'_, '_>,
    ) {
    }

    /// A timer of one of the workers fired.
    fn on_timer(&mut self, _cx: &mut BackendContext<'_, '_>, _timer: (TimerId, WorkerTimer)) {}

    /// The supervisor reports something about the process of a worker.
    fn on_process(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        _worker: WorkerId,
        _report: spawn::Report,
    ) {
    }

    /// The thread of a worker reports something.
    fn on_report(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        _worker: WorkerId,
        _report: HandlerReport,
    ) {
    }

    /// The name of a server resolves to another address.
    fn on_moved(&mut self, _cx: &mut BackendContext<'_, '_>, _name: &str, _to: SocketAddr) {}

    /// Whether the process that accepted a connection to the address of a worker is this worker.
    fn accepts(
        &mut self,
        _calls: &Calls<'_>,
        _worker: WorkerId,
        _stream: StreamId,
        _system: &System,
    ) -> bool {
        true
    }

    /// The address that a worker got when it started.
    fn address(&self, _worker: WorkerId) -> Option<&Address> {
        None
    }

    /// Whether a worker was started and does not listen at its address yet.
    fn is_starting(&self, _worker: WorkerId) -> bool {
        false
    }

    /// Closes an idle connection to a worker, so that another shard can open one.
    fn release_idle(&mut self, _calls: &mut Calls<'_>, _worker: WorkerIndex) {}

    /// Closes any idle connection. False when there is none.
    fn close_one_idle(&mut self, _calls: &mut Calls<'_>) -> bool {
        false
    }

    /// Whether the connection that owns a worker receives what the worker sends without a request.
    fn set_heard(&mut self, _worker: WorkerId, _heard: bool) {}

    /// The connection that owns a worker accepts nothing for now (`paused`), or accepts again.
    fn throttle(&mut self, _calls: &mut Calls<'_>, _worker: WorkerId, _paused: bool) {}

    /// The connection that owns a worker sends no further request, or has closed (`gone`). `replaced`: the
    /// worker is to serve no other.
    fn leave(&mut self, _worker: WorkerId, _gone: bool, _replaced: bool) {}

    /// The daemon ends: work in progress is asked to end.
    fn interrupt(&self) {}

    /// Whether no worker runs.
    fn is_empty(&self) -> bool;

    /// The workers at this moment.
    fn status(&self) -> Vec<WorkerStatus>;
}

/// What a pool of another kind of worker is configured with, so that a kind can be added outside of this crate.
pub trait OpenBackend: Send {
    /// The workers of this pool.
    fn open(self: Box<Self>, pool: (PoolId, &str)) -> Box<dyn Backend>;

    /// What [`Backend::configure`] is given after a reload.
    fn into_plan(self: Box<Self>) -> Box<dyn Any>;

    /// What the kind of worker means for the requests of a pool.
    fn traits(&self) -> WorkerTraits;
}
