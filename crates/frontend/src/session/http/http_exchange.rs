//! What is kept of a client between the first byte of a request and the last of its reply.

use std::sync::Arc;

use event::StreamId;
use exchange::RequestId;
use wire::http1::{Body, HeadScan, Method, Sending, Version};

use super::gathering_body::BufferedBody;
use super::local_reply::{Requester, Told};
use super::states::{Move, Stage};
use crate::routing::RouteId;
use flow::ids::SessionId;
use flow::page::Page;

/// What is done with what the client sends.
#[derive(Debug)]
pub(super) enum Input {
    Head,
    Body(Body),
    /// A body is taken whole before its request is submitted.
    BufferedBody(Box<BufferedBody>),
    Whole,
    Switched,
    /// There will be no more.
    Ended,
}

/// How far the reply has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    None,
    Begun(Sending),
    /// A head has gone to which nothing is added, whatever the worker sends: the reply to HEAD.
    HeadOnly,
    Done,
}

impl Output {
    /// What is sent behind the head of a reply to this method.
    pub(super) const fn begun(method: Method, sending: Sending) -> Self {
        if matches!(method, Method::Head) { Self::HeadOnly } else { Self::Begun(sending) }
    }
}

/// Whether the connection ends, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    /// Once its output is sent.
    Said,
    /// Likewise, and its end is the end of its last reply.
    OpenEnded,
    /// By a reset: its end would be taken for that of a reply which is not whole.
    CutOff,
}

/// The request on its way.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    pub(super) request: RequestId,
    pub(super) method: Method,
    pub(super) version: Version,
    pub(super) output: Output,
    /// Which way it went.
    pub(super) route: RouteId,
    /// The connection goes on behind the reply.
    pub(super) keep: bool,
    /// The connection's end is all that tells its client where the reply ends.
    pub(super) open_ended: bool,
    /// The worker takes parts of the body.
    pub(super) wanted: bool,
    /// The client says nothing of its body before the worker has said that it may.
    pub(super) waits: bool,
    /// The worker was asked to wait with parts of the reply.
    pub(super) holding: bool,
    /// Bytes of the reply that have come.
    pub(super) came: usize,
    /// The server has ended its direction of a tunnel.
    pub(super) said_all: bool,
    /// Where parts of the reply come from that go to the client unseen.
    pub(super) relayed_from: Option<StreamId>,
    /// How the answer of a pool that is sorry is told.
    pub(super) page: Option<Arc<Page>>,
    /// Where the reply comes in chunks and the client knows none: where in them it is.
    pub(super) chunks: Option<Box<Body>>,
    /// What a reply without a head of its own is.
    pub(super) told: Told,
}

impl ActiveRequest {
    /// One that was submitted, of which nothing has come. `keep`: the connection goes on behind its reply.
    pub(super) const fn new(
        request: RequestId,
        requester: Requester,
        keep: bool,
        told: Told,
    ) -> Self {
        let Requester { method, version, route } = requester;
        Self {
            request,
            method,
            version,
            output: Output::None,
            route,
            keep,
            open_ended: false,
            wanted: false,
            waits: false,
            holding: false,
            came: 0,
            said_all: false,
            relayed_from: None,
            page: None,
            chunks: None,
            told,
        }
    }

    pub(super) const fn requester(&self) -> Requester {
        Requester { method: self.method, version: self.version, route: self.route }
    }
}

/// What was begun with a client and has not come to its end. Between two requests there is none.
#[derive(Debug)]
pub(crate) struct HttpExchange {
    pub(super) id: SessionId,
    /// Number of the request on its way, or of the last one. Only the one on its way is compared, so
    /// it may begin anew.
    pub(super) number: u32,
    pub(super) scan: HeadScan,
    pub(super) input: Input,
    pub(super) asked: Option<ActiveRequest>,
    /// No further request is taken: the client sends no more.
    pub(super) refusing: bool,
    /// The client has ended its direction.
    pub(super) half_closed: bool,
    pub(super) ending: Ending,
    /// The deadline of a head or a body is armed.
    pub(super) watched: bool,
    /// Bytes of a body that have come since it was.
    pub(super) came: usize,
    /// The method of the request at hand, as far as it has come.
    pub(super) method: Method,
}

impl HttpExchange {
    pub(super) fn new(id: SessionId, number: u32) -> Self {
        Self {
            id,
            number,
            scan: HeadScan::default(),
            input: Input::Head,
            asked: None,
            refusing: false,
            half_closed: false,
            ending: Ending::No,
            watched: false,
            came: 0,
            method: Requester::NOBODY.method,
        }
    }
}

impl Input {
    const fn stage(&self) -> Stage {
        match self {
            Self::Head => Stage::Head,
            Self::Body(_) => Stage::Body,
            Self::BufferedBody(_) => Stage::BufferedBody,
            Self::Whole => Stage::Whole,
            Self::Switched => Stage::Switched,
            Self::Ended => Stage::Ended,
        }
    }
}

impl HttpExchange {
    /// Makes a move, and gives what was kept of the stage before. That the table allows it is looked at
    /// where debug assertions are: what a peer says must not end a daemon.
    pub(super) fn step(&mut self, step: Move, next: Input) -> Input {
        if cfg!(debug_assertions) {
            let (from, to) = (self.input.stage(), next.stage());
            assert_eq!(step.of(from), Some(to), "{step:?} of {:?}", self.input);
            step.note(from);
        }
        std::mem::replace(&mut self.input, next)
    }

    /// Sweeps that the reply has come no further than it may at this stage of the request.
    pub(super) fn check(&self) {
        let allowed = self.input.stage().replies();
        let fits = match self.asked.as_ref().map(|asked| asked.output) {
            None => true,
            Some(Output::None) => allowed[0],
            Some(Output::Begun(_) | Output::HeadOnly) => allowed[1],
            Some(Output::Done) => false,
        };
        assert!(fits, "{:?} of {:?}", self.asked, self.input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_the_head_of_a_reply_to_head_nothing_is_sent() {
        for sending in [Sending::Verbatim, Sending::Chunked, Sending::Data] {
            assert_eq!(Output::begun(Method::Head, sending), Output::HeadOnly);
            assert_eq!(Output::begun(Method::Get, sending), Output::Begun(sending));
        }
    }

    #[test]
    #[should_panic(expected = "Switch of Head")]
    fn a_move_that_the_table_has_not_is_found() {
        let session = SessionId::new(0, exchange::Place::new(0, 0));
        let mut exchange = HttpExchange::new(session, 0);
        exchange.step(Move::Switch, Input::Switched);
    }
}
