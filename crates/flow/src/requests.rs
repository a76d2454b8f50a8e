//! What a frontend asks of the engine.

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

/// All that a frontend may ask of the engine. What becomes of a request comes back to the frontend as
/// [`ReplyEvent`](crate::reply_event::ReplyEvent).
pub trait Requests {
    /// The time of this iteration of the loop.
    fn now(&self) -> Instant;

    /// The line `Date` of a message that is made now.
    fn date_line(&mut self) -> DateLine;

    /// The access log.
    fn access_log(&mut self) -> &mut AccessLog;

    /// Counts of malformed messages.
    fn rejects(&mut self) -> &mut Rejects;

    /// While the shard drains: how long an HTTP connection without a request stays open.
    fn drain_keepalive_timeout(&self) -> Option<Duration>;

    /// What requests of HTTP become for the workers of a pool, so that one which no worker can answer is
    /// rejected before it waits.
    fn shape(&self, pool: PoolId) -> RequestShape;

    /// Whether a pool's reply, or that of the last pool which its reply goes on to, is lines.
    fn replies_lines(&self, pool: PoolId) -> bool;

    /// Whether the programs of a pool find requests by ids of ours.
    fn is_tagged(&self, pool: PoolId) -> bool;

    /// Whether each program of a pool serves one connection.
    fn has_owners(&self, pool: PoolId) -> bool;

    /// Whether a client may send a request of so many bytes to a pool now. If not, it is resumed when there
    /// is room. `answered`: it has no request in flight.
    fn may_send(
        &mut self,
        from: (PoolId, SessionId, bool),
        permit: &mut Permit,
        bytes: usize,
    ) -> bool;

    /// Whether a client with requests in flight may send more to a pool.
    fn may_ask_more(&self, pool: PoolId, session: SessionId, answered: bool) -> bool;

    /// A client does not wait for room any more.
    fn stop_waiting(&mut self, pool: PoolId, permit: &mut Permit);

    /// Takes a request and returns its id. `entry`: its own in the access log, if it has one.
    fn submit(
        &mut self,
        client: Client,
        source: Source,
        request: (Payload, RequestMeta),
        pool: PoolId,
        entry: Option<Box<AccessEntry>>,
    ) -> RequestId;

    /// Tells the worker that has a request something about it. It has no effect where no worker has it.
    fn control(&mut self, id: RequestId, control: RequestControl);

    /// Whether a request has not ended.
    fn is_under_way(&mut self, id: RequestId) -> bool;

    /// The client takes a request back: its worker is told, where it can be.
    fn cancel(&mut self, id: RequestId);

    /// Nobody wants the reply to a request any more.
    fn abandon(&mut self, id: RequestId, cause: Cause);

    /// The same, and its client was told something else instead.
    fn abandon_told(&mut self, id: RequestId, cause: Cause, told: Option<Rejected>, text: &str);

    /// A request was rejected before it was submitted: it is counted and logged.
    fn refused_at_receipt(
        &mut self,
        pool: PoolId,
        source: Source,
        outcome: &Outcome,
        entry: Option<Box<AccessEntry>>,
    );

    /// A reply could not be given to its client.
    fn note_undelivered(&mut self, pool: PoolId, peer: Peer, outcome: &Outcome);

    /// A client's message was not passed on, because what it names may be another client's.
    fn count_stray(&mut self, pool: PoolId);

    /// A connection takes nothing of what its own program says, or takes it again.
    fn hush(&mut self, pool: PoolId, session: SessionId, hush: bool);
}

/// Short forms of [`Requests::control`].
impl dyn Requests + '_ {
    /// A part of a request's body goes to its worker; so many bytes of it are no framing.
    pub fn pass(&mut self, id: RequestId, part: Slice, data: usize) {
        self.control(id, RequestControl::Body(part, data));
    }

    /// All of a request's body was passed.
    pub fn pass_end(&mut self, id: RequestId) {
        self.control(id, RequestControl::BodyEnd);
    }

    /// A client does not take the parts of this reply, or takes them again.
    pub fn hold(&mut self, id: RequestId, hold: bool) {
        self.control(id, if hold { RequestControl::Pause } else { RequestControl::Resume });
    }

    /// A client takes the bytes of a reply on this stream without looking at them.
    pub fn take_unseen(&mut self, id: RequestId, to: StreamId) {
        self.control(id, RequestControl::Splice(to));
    }
}
