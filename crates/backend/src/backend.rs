//! The [`Backend`] trait, which all kinds of workers implement.

use std::any::Any;
use std::net::SocketAddr;

use event::{Address, Context, StreamId, TimerId};
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

/// The context of a backend for one call.
#[derive(Debug)]
pub struct BackendContext<'a, 'b> {
    /// The loop.
    pub io: &'a mut Context<'b>,
    /// Processes and threads.
    pub system: &'a mut System,
    /// Receives the events of the backend. The engine handles them in order after the call.
    pub events: &'a mut Vec<BackendEvent>,
}

impl<'b> BackendContext<'_, 'b> {
    /// Returns the same context with another receiver of the events.
    pub(crate) const fn with_events<'c>(
        &'c mut self,
        events: &'c mut Vec<BackendEvent>,
    ) -> BackendContext<'c, 'b> {
        BackendContext { io: self.io, system: self.system, events }
    }
}

/// The workers of one pool. The engine decides which worker starts, stops or receives a request. A backend carries out
/// these decisions and reports the results as [`BackendEvent`]s.
///
/// A kind of worker implements the methods that it needs. By default the other methods do nothing.
pub trait Backend: Send {
    /// Applies a reload. `config` has the type that [`OpenBackend::into_config`] returns, because a reload never
    /// changes the kind of workers. `names` are the names of the workers. `connections` counts the connections of all
    /// shards, if several shards connect to the same servers.
    fn configure(
        &mut self,
        config: Box<dyn Any>,
        names: &ByWorker<Option<String>>,
        connections: Option<ConnectionCounts>,
    );

    /// Starts a worker. The result is reported as an event.
    fn start(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId);

    /// Stops a worker that has no request in flight.
    fn stop(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId);

    /// Stops a worker as soon as it has no request in flight. It receives no further requests.
    fn retire(&mut self, _cx: &mut BackendContext<'_, '_>, _worker: WorkerId) {}

    /// Sends a request to a worker. `more_follow`: further requests of the same batch follow in this turn.
    fn dispatch(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        request: Request,
        meta: RequestMeta,
        more_follow: bool,
    );

    /// Passes a control message for a request in flight.
    fn control(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        id: RequestId,
        control: RequestControl,
    );

    /// Handles an event on a stream of one of the workers.
    fn on_stream(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        _of: (StreamId, StreamPurpose),
        _event: StreamEvent<'_, '_>,
    ) {
    }

    /// Handles a timer of one of the workers.
    fn on_timer(&mut self, _cx: &mut BackendContext<'_, '_>, _timer: (TimerId, WorkerTimer)) {}

    /// Handles a report of the process supervisor about a worker.
    fn on_process(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        _worker: WorkerId,
        _report: spawn::Report,
    ) {
    }

    /// Handles a report of the thread of a worker.
    fn on_report(
        &mut self,
        _cx: &mut BackendContext<'_, '_>,
        _worker: WorkerId,
        _report: HandlerReport,
    ) {
    }

    /// Applies a new address of a named server.
    fn on_moved(&mut self, _cx: &mut BackendContext<'_, '_>, _name: &str, _to: SocketAddr) {}

    /// Whether a connection to the address of a worker was accepted by this worker and not by another process.
    fn accepts(
        &mut self,
        _calls: &Context<'_>,
        _worker: WorkerId,
        _stream: StreamId,
        _system: &System,
    ) -> bool {
        true
    }

    /// Returns the address that was assigned to a worker at its start.
    fn address(&self, _worker: WorkerId) -> Option<&Address> {
        None
    }

    /// Whether a worker was started and does not listen on its address yet.
    fn is_starting(&self, _worker: WorkerId) -> bool {
        false
    }

    /// Closes an idle connection to a worker, so that another shard can open one.
    fn release_idle(&mut self, _calls: &mut Context<'_>, _worker: WorkerIndex) {}

    /// Closes any idle connection. Returns `false` if there is none.
    fn close_one_idle(&mut self, _calls: &mut Context<'_>) -> bool {
        false
    }

    /// Sets whether the connection that owns a worker receives its unsolicited messages.
    fn set_heard(&mut self, _worker: WorkerId, _heard: bool) {}

    /// Pauses or resumes the output of a worker for the connection that owns it.
    fn pause_program(&mut self, _calls: &mut Context<'_>, _worker: WorkerId, _paused: bool) {}

    /// Handles that the connection which owns a worker sends no further requests or is closed (`gone`). `replaced`: the
    /// worker must not serve another connection.
    fn leave(&mut self, _worker: WorkerId, _gone: bool, _replaced: bool) {}

    /// Requests the abort of work in progress, because the daemon stops.
    fn interrupt(&self) {}

    /// Whether no worker is running.
    fn is_empty(&self) -> bool;

    /// Returns the status of the workers.
    fn status(&self) -> Vec<WorkerStatus>;
}

/// The configuration of workers whose kind is implemented outside of this crate.
pub trait OpenBackend: Send {
    /// Creates the workers of a pool. `pool` is its id and name.
    fn open(self: Box<Self>, pool: (PoolId, &str)) -> Box<dyn Backend>;

    /// Returns the value for [`Backend::configure`] after a reload.
    fn into_config(self: Box<Self>) -> Box<dyn Any>;

    /// Returns the properties of the kind of worker that affect the requests of a pool.
    fn traits(&self) -> WorkerTraits;
}
