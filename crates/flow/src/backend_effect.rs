//! What the core has the workers of a pool do. The shard routes each to the [`backend::backends`].

use exchange::{ByWorker, RequestId, WorkerId, WorkerIndex};

use crate::payload::Request;
use crate::request_control::RequestControl;
use crate::request_meta::RequestMeta;

/// One of these effects.
#[derive(Debug)]
pub enum BackendEffect {
    /// A worker is to start.
    Start { worker: WorkerId },
    /// A worker that has nothing to do is to end.
    Stop { worker: WorkerId },
    /// A worker is given a request.
    Dispatch {
        worker: WorkerId,
        request: Request,
        meta: RequestMeta,
        /// Others of the same batch follow.
        more_follow: bool,
        /// Where the worker is a connection's own: whether that connection hears what it says unasked.
        heard: Option<bool>,
    },
    /// A worker is told something of a request that it has.
    Control { worker: WorkerId, id: RequestId, control: RequestControl },
    /// A worker is to serve nobody else, and to end as soon as it has nothing to do.
    Retire { worker: WorkerId },
    /// The connection whose own a worker is takes nothing of what it says, or takes it again.
    Throttle { worker: WorkerId, paused: bool },
    /// That connection asks nothing more, or has `gone`; `replaced`: the worker is to serve no other.
    Leave { worker: WorkerId, gone: bool, replaced: bool },
    /// An idle connection to a worker is closed, so that another shard can have one.
    ReleaseIdle { worker: WorkerIndex },
    /// Another shard could not bring a request to a worker: it is checked now.
    CheckNow { worker: WorkerId },
}

/// How a pool sees its workers after a reload.
#[derive(Debug)]
pub struct Roster {
    /// What they are called, those among them that leave.
    pub names: ByWorker<Option<String>>,
    /// Those that run.
    pub running: Vec<WorkerId>,
}
