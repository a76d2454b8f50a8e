//! The interface of the engine for frontends.

use std::time::{Duration, Instant};

use event::StreamId;
use exchange::{Cause, Outcome, Peer, PoolId, RequestId, Slice};

use crate::client::{Client, Source};
use crate::ids::SessionId;
use crate::payload::Payload;
use crate::permit::Permit;
use crate::rejected::Rejected;
use crate::request_control::RequestControl;
use crate::request_meta::RequestMeta;
use crate::request_shape::RequestShape;
use observe::access_log::{AccessEntry, AccessLog};
use observe::calendar::DateLine;
use observe::metrics::Rejects;

/// Operations of the engine that frontends use. The results of a request reach its session as
/// [`ReplyEvent`](crate::reply_event::ReplyEvent)s.
pub trait Requests {
    /// The time of this iteration of the loop.
    fn now(&self) -> Instant;

    /// The `Date` header line for the current time.
    fn date_line(&mut self) -> DateLine;

    /// The access log.
    fn access_log(&mut self) -> &mut AccessLog;

    /// Counters of malformed messages.
    fn rejects(&mut self) -> &mut Rejects;

    /// While the shard drains: how long an idle HTTP connection stays open. `None`: the shard is not draining.
    fn drain_keepalive_timeout(&self) -> Option<Duration>;

    /// The form in which the workers of a pool accept HTTP requests.
    fn shape(&self, pool: PoolId) -> RequestShape;

    /// Whether the replies of a pool are lines. With `then`, the last pool of the chain decides.
    fn replies_lines(&self, pool: PoolId) -> bool;

    /// Whether requests to the programs of a pool carry ids that the daemon assigns.
    fn is_tagged(&self, pool: PoolId) -> bool;

    /// Whether each program of a pool serves one connection only.
    fn has_owners(&self, pool: PoolId) -> bool;

    /// Whether a client may send a request of `bytes` bytes to a pool now. If not, its session is resumed when there
    /// is room. `from`: the pool, the session, and whether the session has no request in flight.
    fn may_send(
        &mut self,
        from: (PoolId, SessionId, bool),
        permit: &mut Permit,
        bytes: usize,
    ) -> bool;

    /// Whether a client with requests in flight may send more to a pool.
    fn may_ask_more(&self, pool: PoolId, session: SessionId, answered: bool) -> bool;

    /// Uses one request of a grant.
    fn spend_permit(&mut self, pool: PoolId, permit: &mut Permit);

    /// Returns the grant of a client whose session cannot be read now. The client keeps its ticket.
    fn park(&mut self, pool: PoolId, permit: &mut Permit);

    /// Lets a parked client wait again with its ticket.
    fn wait_again(&mut self, pool: PoolId, session: SessionId, permit: &mut Permit);

    /// Removes a client from the clients that wait for room, and returns its grant.
    fn stop_waiting(&mut self, pool: PoolId, permit: &mut Permit);

    /// Submits a request to a pool and returns its id. `entry`: its access log entry, if it is logged.
    fn submit(
        &mut self,
        client: Client,
        source: Source,
        request: (Payload, RequestMeta),
        pool: PoolId,
        entry: Option<Box<AccessEntry>>,
    ) -> RequestId;

    /// Passes a control message to the worker that has a request. Without such a worker it has no effect.
    fn control(&mut self, id: RequestId, control: RequestControl);

    /// Whether a request has not ended.
    fn is_under_way(&mut self, id: RequestId) -> bool;

    /// Cancels a request for its client. The worker is notified if its protocol allows that.
    fn cancel(&mut self, id: RequestId);

    /// Ends a request whose reply is no longer needed.
    fn abandon(&mut self, id: RequestId, cause: Cause);

    /// Ends a request like [`Self::abandon`], after the client received another response: `told` is its status and
    /// reason, and `text` its text.
    fn abandon_answered(&mut self, id: RequestId, cause: Cause, told: Option<Rejected>, text: &str);

    /// Counts and logs a request that was rejected before it was submitted.
    fn refused_at_receipt(
        &mut self,
        pool: PoolId,
        source: Source,
        outcome: &Outcome,
        entry: Option<Box<AccessEntry>>,
    );

    /// Records that a reply could not be delivered to its client.
    fn note_undelivered(&mut self, pool: PoolId, peer: Peer, outcome: &Outcome);

    /// Counts a message that was dropped, because the id in it may belong to another client.
    fn count_stray(&mut self, pool: PoolId);

    /// Pauses or resumes the output of a connection's own program.
    fn pause_program(&mut self, pool: PoolId, session: SessionId, hush: bool);
}

/// Shortcuts for [`Requests::control`].
impl dyn Requests + '_ {
    /// Passes a part of a request body to its worker. `data`: its length in bytes without framing.
    pub fn pass(&mut self, id: RequestId, part: Slice, data: usize) {
        self.control(id, RequestControl::Body(part, data));
    }

    /// Marks the end of a request body.
    pub fn pass_end(&mut self, id: RequestId) {
        self.control(id, RequestControl::BodyEnd);
    }

    /// Pauses or resumes the parts of a reply.
    pub fn pause_reply(&mut self, id: RequestId, hold: bool) {
        self.control(id, if hold { RequestControl::Pause } else { RequestControl::Resume });
    }

    /// Requests that the rest of a reply body is forwarded directly to this stream.
    pub fn take_unseen(&mut self, id: RequestId, to: StreamId) {
        self.control(id, RequestControl::Splice(to));
    }
}
