//! The workers of a pool, of whatever kind. This is the one place of a shard that knows which kinds
//! there are: each answers for what is asked of it here, and nobody else asks what it is.

use std::net::SocketAddr;

use event::{Calls, StreamId, TimerId};
use exchange::{ByWorker, PoolId, RequestId, WorkerId, WorkerIndex};

use crate::connection_counts::ConnectionCounts;
use crate::handler_threads::Handlers;
use crate::programs::{LaunchOptions, Programs};
use crate::spawned_http::SpawnedHttp;
use crate::system::System;
use crate::upstream::Upstream;
use flow::backend_event::BackendEvent;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::stream_event::StreamEvent;
use flow::stream_owner::{StreamPurpose, WorkerTimer};
use flow::worker_report::HandlerReport;
use observe::status::WorkerStatus;

mod config;

pub use config::WorkersConfig;

/// The workers of one pool.
pub enum Workers {
    Programs(Programs),
    Handlers(Handlers),
    Upstream(Box<Upstream>),
    SpawnedHttp(Box<SpawnedHttp>),
    /// On another shard: none of the calls below is ever made for them.
    OffShard,
}

impl Workers {
    /// `room`: where other shards have links to the same servers.
    pub fn new(pool: (PoolId, &str), plan: WorkersConfig, room: Option<ConnectionCounts>) -> Self {
        match plan {
            WorkersConfig::Upstream(plan) => {
                Self::Upstream(Box::new(Upstream::new(pool, *plan, room)))
            }
            WorkersConfig::Programs(plan) => Self::Programs(Programs::new(pool, plan)),
            WorkersConfig::SpawnedHttp(plan) => {
                Self::SpawnedHttp(Box::new(SpawnedHttp::new(pool, *plan)))
            }
            WorkersConfig::Handlers { factory, deadline, shape } => {
                Self::Handlers(Handlers::new(pool, factory, deadline, shape))
            }
            WorkersConfig::OffShard => Self::OffShard,
        }
    }

    /// Other settings from now on; `names` are those of the workers, and `room` is as it was
    /// for [`Self::new`].
    pub(crate) fn handle_plan(
        &mut self,
        plan: WorkersConfig,
        names: &ByWorker<Option<String>>,
        room: Option<ConnectionCounts>,
    ) {
        match (self, plan) {
            (Self::Upstream(servers), WorkersConfig::Upstream(plan)) => {
                servers.handle_plan(*plan, names, room);
            }
            (Self::Programs(programs), WorkersConfig::Programs(plan)) => programs.handle_plan(plan),
            (Self::SpawnedHttp(hosted), WorkersConfig::SpawnedHttp(plan)) => {
                hosted.handle_plan(*plan)
            }
            (Self::Handlers(handlers), WorkersConfig::Handlers { deadline, shape, .. }) => {
                handlers.handle_plan(deadline, shape);
            }
            // No pool gets workers of another kind, or another home.
            _ => {}
        }
    }

    /// A server that has a name has another address.
    pub fn handle_moved(
        &mut self,
        calls: &mut Calls<'_>,
        name: &str,
        to: SocketAddr,
        up: &mut Vec<BackendEvent>,
    ) {
        if let Self::Upstream(servers) = self {
            servers.handle_moved(calls, name, to, up);
        }
    }

    /// What is heard on a stream to one of these.
    #[inline]
    pub fn hear(
        &mut self,
        calls: &mut Calls<'_>,
        (stream, purpose): (StreamId, StreamPurpose),
        heard: StreamEvent<'_, '_>,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        match (self, purpose) {
            (Self::Upstream(servers), StreamPurpose::Link(link)) => {
                servers.hear(calls, link, heard, up)
            }
            (Self::Programs(programs), StreamPurpose::Pipe(worker, pipe)) => {
                programs.hear(calls, (worker, pipe), heard, system, up);
            }
            (Self::SpawnedHttp(hosted), purpose) => {
                hosted.hear(calls, (stream, purpose), heard, system, up);
            }
            // None of these has such a stream.
            (Self::Upstream(_) | Self::Programs(_) | Self::Handlers(_) | Self::OffShard, _) => {}
        }
    }

    /// A timer of one of these fired.
    pub fn handle_timer(
        &mut self,
        calls: &mut Calls<'_>,
        (timer, of): (TimerId, WorkerTimer),
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        match (self, of) {
            (Self::Programs(programs), WorkerTimer::Program(worker)) => {
                programs.handle_timer(calls, (timer, worker), system, up);
            }
            (Self::SpawnedHttp(hosted), of) => hosted.handle_timer(calls, (timer, of), system, up),
            (Self::Handlers(handlers), WorkerTimer::Batch(worker)) => {
                handlers.handle_timer(timer, worker, up);
            }
            // Times of servers are deadlines of links.
            (Self::Programs(_) | Self::Handlers(_) | Self::Upstream(_) | Self::OffShard, _) => {}
        }
    }

    /// What the keeper says of the process of a worker.
    pub fn handle_process(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        report: spawn::Report,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        match self {
            Self::Programs(programs) => programs.handle_report(calls, worker, report, system, up),
            Self::SpawnedHttp(hosted) => hosted.handle_report(calls, worker, report, system, up),
            Self::Handlers(_) | Self::Upstream(_) | Self::OffShard => {}
        }
    }

    /// What the thread of a worker says.
    pub fn handle_thread(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        report: HandlerReport,
        up: &mut Vec<BackendEvent>,
    ) {
        if let Self::Handlers(handlers) = self {
            handlers.handle_report(calls, worker, report, up);
        }
    }

    /// Whether it is the worker that takes a connection which was made to its address.
    pub fn accepts(
        &mut self,
        calls: &Calls<'_>,
        worker: WorkerId,
        stream: StreamId,
        system: &System,
    ) -> bool {
        match self {
            Self::SpawnedHttp(hosted) => {
                hosted.port_owner(calls, worker, stream, system) == spawn::PortOwner::Program
            }
            Self::Programs(_) | Self::Handlers(_) | Self::Upstream(_) | Self::OffShard => true,
        }
    }

    /// Where a worker serves that came to its address with its start.
    pub fn home(&self, worker: WorkerId) -> Option<&event::Address> {
        match self {
            Self::SpawnedHttp(hosted) => hosted.home(worker),
            _ => None,
        }
    }

    /// Whether one of these has not come to its address yet.
    pub(crate) fn is_starting(&self, worker: WorkerId) -> bool {
        matches!(self, Self::SpawnedHttp(hosted) if hosted.is_starting(worker))
    }

    pub fn start(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        match self {
            Self::Programs(programs) => {
                programs.start(calls, worker, LaunchOptions::default(), system, up);
            }
            Self::SpawnedHttp(hosted) => hosted.start(calls, worker, system, up),
            Self::Handlers(handlers) => handlers.start(worker, system, up),
            Self::Upstream(servers) => servers.start(worker, up),
            Self::OffShard => {}
        }
    }

    /// Ends a worker that has nothing to do.
    pub fn stop(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        match self {
            Self::Programs(programs) => programs.stop(calls, worker, system, up),
            Self::SpawnedHttp(hosted) => hosted.stop(calls, worker, system, up),
            Self::Handlers(handlers) => handlers.stop(worker, system),
            Self::Upstream(servers) => servers.stop(calls, worker, up),
            Self::OffShard => {}
        }
    }

    /// Ends a worker that is to serve nobody else, as soon as it has nothing to do.
    pub fn retire(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        match self {
            Self::Programs(programs) => programs.retire(calls, worker, up),
            Self::SpawnedHttp(hosted) => hosted.retire(calls, worker, system, up),
            Self::Upstream(servers) => servers.stop_using(calls, worker, up),
            // Threads keep nothing of their clients.
            Self::Handlers(_) | Self::OffShard => {}
        }
    }

    /// A request; `more_follow`: others of its batch, where there are batches.
    #[inline]
    pub fn dispatch(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        (request, meta, more_follow): (Request, RequestMeta, bool),
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        match self {
            Self::Programs(programs) => {
                programs.dispatch(calls, worker, (request, meta), system, up);
            }
            Self::Upstream(servers) => servers.dispatch(calls, worker, request, meta, up),
            Self::SpawnedHttp(hosted) => hosted.dispatch(calls, worker, request, meta, up),
            Self::Handlers(handlers) => {
                handlers.dispatch(calls, worker, (request, meta, more_follow), system, up);
            }
            Self::OffShard => {}
        }
    }

    /// A link to this worker that rests goes for one of another shard.
    pub fn spare(&mut self, calls: &mut Calls<'_>, worker: WorkerIndex) {
        if let Self::Upstream(servers) = self {
            servers.spare(calls, worker);
        }
    }

    /// Whether the connection whose own a program is hears what that says unasked.
    pub(crate) fn set_heard(&mut self, worker: WorkerId, heard: bool) {
        if let Self::Programs(programs) = self {
            programs.set_heard(worker, heard);
        }
    }

    /// That connection asks nothing more, or has `gone`; `replaced`: the program is to serve no other.
    pub fn leave(&mut self, worker: WorkerId, gone: bool, replaced: bool) {
        if let Self::Programs(programs) = self {
            programs.leave(worker, gone, replaced);
        }
    }

    /// Closes a connection to a server that carries no request. False when there is none.
    pub(crate) fn close_one_idle(&mut self, calls: &mut Calls<'_>) -> bool {
        match self {
            Self::Upstream(servers) => servers.close_one_idle(calls),
            _ => false,
        }
    }

    /// That connection takes nothing of what it says, or takes it again.
    pub fn hush(&mut self, calls: &mut Calls<'_>, worker: WorkerId, hush: bool) {
        if let Self::Programs(programs) = self {
            programs.hush(calls, worker, hush);
        }
    }

    /// A worker is told something of a request that it has.
    pub fn tell(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        id: RequestId,
        word: RequestControl,
        system: &mut System,
        up: &mut Vec<BackendEvent>,
    ) {
        match self {
            Self::Programs(programs) => programs.tell(calls, worker, id, word, up),
            Self::Handlers(handlers) => handlers.tell(worker, id, &word),
            Self::Upstream(servers) => servers.tell(calls, worker, id, word, up),
            Self::SpawnedHttp(hosted) => hosted.tell(calls, worker, id, word, system, up),
            Self::OffShard => {}
        }
    }

    /// Asks for the end of what they are at, because the daemon ends.
    pub fn interrupt(&self) {
        match self {
            Self::Handlers(handlers) => handlers.interrupt(),
            // Their streams and processes end with the daemon.
            Self::Programs(_) | Self::SpawnedHttp(_) | Self::Upstream(_) | Self::OffShard => {}
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Programs(programs) => programs.is_empty(),
            Self::SpawnedHttp(hosted) => hosted.is_empty(),
            Self::Handlers(handlers) => handlers.is_empty(),
            Self::Upstream(servers) => servers.is_empty(),
            Self::OffShard => true,
        }
    }

    pub fn status(&self) -> Vec<WorkerStatus> {
        match self {
            Self::Programs(programs) => programs.status(),
            Self::SpawnedHttp(hosted) => hosted.status(),
            Self::Handlers(handlers) => handlers.status(),
            Self::Upstream(servers) => servers.status(),
            Self::OffShard => Vec::new(),
        }
    }
}
