//! Commands from the engine to the workers of a pool. The shard passes each one to its backend.

use exchange::{ByWorker, RequestId, WorkerId, WorkerIndex};

use crate::payload::Request;
use crate::request_control::RequestControl;
use crate::request_meta::RequestMeta;

/// One command for the workers of a pool.
#[derive(Debug)]
pub enum BackendEffect {
    /// Start a worker.
    Start {
        /// The worker, which is not running.
        worker: WorkerId,
    },
    /// Stop an idle worker.
    Stop {
        /// The worker, which has no request in flight.
        worker: WorkerId,
    },
    /// Send a request to a worker.
    Dispatch {
        /// The worker that receives the request.
        worker: WorkerId,
        /// The request, encoded by the backend.
        request: Request,
        /// Properties of the request besides its bytes.
        meta: RequestMeta,
        /// More requests of the same batch follow.
        more_follow: bool,
        /// For a worker that serves one connection only: whether that connection receives unsolicited messages.
        heard: Option<bool>,
    },
    /// Pass a control message for a request in flight.
    Control {
        /// The worker that has the request.
        worker: WorkerId,
        /// The request.
        id: RequestId,
        /// The message.
        control: RequestControl,
    },
    /// Give the worker no new clients, and stop it when it is idle.
    Retire {
        /// The worker to retire.
        worker: WorkerId,
    },
    /// Pause or resume reading the output of a worker that serves one connection only.
    Throttle {
        /// The worker of that connection.
        worker: WorkerId,
        /// `true` while the connection accepts no more bytes.
        paused: bool,
    },
    /// The connection that a worker serves sends no more requests.
    Leave {
        /// The worker of that connection.
        worker: WorkerId,
        /// The connection is closed.
        gone: bool,
        /// The worker is replaced and must not serve another connection.
        replaced: bool,
    },
    /// Close an idle connection to a worker, so that another shard can open one.
    ReleaseIdle {
        /// The worker whose connection is closed.
        worker: WorkerIndex,
    },
    /// Run a health check now: another shard could not deliver a request to the worker.
    CheckNow {
        /// The worker to check.
        worker: WorkerId,
    },
}

/// The workers of a pool after a reload.
#[derive(Debug)]
pub struct Roster {
    /// Their names, including those of workers that are being removed.
    pub names: ByWorker<Option<String>>,
    /// The workers that are running.
    pub running: Vec<WorkerId>,
}
