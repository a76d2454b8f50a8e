//! The state of an HTTP client from the first byte of a request to the last byte of its reply.

use std::sync::Arc;

use event::StreamId;
use exchange::RequestId;
use wire::http1::{Body, HeadScan, Method, Sending, Version};

use super::gathering_body::BufferedBody;
use super::local_reply::{ReplyForm, Requester};
use super::states::{Move, Stage};
use crate::routing::RouteId;
use flow::ids::SessionId;
use flow::page::Page;

/// How input is processed.
#[derive(Debug)]
pub(super) enum Input {
    Head,
    Body(Body),
    /// The body is buffered before the request is submitted.
    BufferedBody(Box<BufferedBody>),
    Whole,
    Switched,
    /// The input has ended.
    Ended,
}

/// The state of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    None,
    Begun(Sending),
    /// The head of a reply to `HEAD` was sent. Bytes of a body are discarded.
    HeadOnly,
    Done,
}

impl Output {
    /// The state after the head of a reply to this method.
    pub(super) const fn begun(method: Method, sending: Sending) -> Self {
        if matches!(method, Method::Head) { Self::HeadOnly } else { Self::Begun(sending) }
    }
}

/// Whether the connection ends, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    /// After its output is sent.
    LocalReply,
    /// After its output is sent. The end of the connection marks the end of its last reply.
    OpenEnded,
    /// By a reset, because a clean end could be mistaken for the end of an incomplete reply.
    CutOff,
}

/// The request in flight.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    pub(super) request: RequestId,
    pub(super) method: Method,
    pub(super) version: Version,
    pub(super) output: Output,
    /// The route of the request.
    pub(super) route: RouteId,
    /// The connection remains open after the reply.
    pub(super) keep: bool,
    /// The end of the connection marks the end of the reply.
    pub(super) open_ended: bool,
    /// The worker accepts more of the body.
    pub(super) wanted: bool,
    /// The client sends its body only after `100 Continue`.
    pub(super) waits: bool,
    /// The reply is paused.
    pub(super) holding: bool,
    /// Bytes of the reply that have arrived.
    pub(super) came: usize,
    /// The server has closed its direction of a tunnel.
    pub(super) said_all: bool,
    /// The stream from which the rest of the reply is forwarded directly.
    pub(super) relayed_from: Option<StreamId>,
    /// The fallback response for the outcome.
    pub(super) page: Option<Arc<Page>>,
    /// Decodes a chunked reply for a client that does not support chunked coding.
    pub(super) chunks: Option<Box<Body>>,
    /// The HTTP status and type for a reply without a head.
    pub(super) told: ReplyForm,
}

impl ActiveRequest {
    /// A request that was submitted. `keep`: the connection remains open after the reply.
    pub(super) const fn new(
        request: RequestId,
        requester: Requester,
        keep: bool,
        told: ReplyForm,
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

/// The exchange in progress. Between two requests there is none.
#[derive(Debug)]
pub(crate) struct HttpExchange {
    pub(super) id: SessionId,
    /// The number of the current or last request. Only that of a request in flight is compared, so it may wrap.
    pub(super) number: u32,
    pub(super) scan: HeadScan,
    pub(super) input: Input,
    pub(super) asked: Option<ActiveRequest>,
    /// No further request is accepted, because the client has ended its input.
    pub(super) refusing: bool,
    /// The client has shut down its sending direction.
    pub(super) half_closed: bool,
    pub(super) ending: Ending,
    /// The deadline of a head or a body is set.
    pub(super) watched: bool,
    /// Bytes of the body that have arrived since then.
    pub(super) came: usize,
    /// The method of the current request, once it is known.
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
    /// Makes a transition, and returns the old input state. The table is checked with debug assertions only: input of a
    /// peer must never end the daemon.
    pub(super) fn step(&mut self, step: Move, next: Input) -> Input {
        if cfg!(debug_assertions) {
            let (from, to) = (self.input.stage(), next.stage());
            assert_eq!(step.of(from), Some(to), "{step:?} of {:?}", self.input);
            step.note(from);
        }
        std::mem::replace(&mut self.input, next)
    }

    /// Checks that the state of the reply is allowed in the stage of the request.
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
