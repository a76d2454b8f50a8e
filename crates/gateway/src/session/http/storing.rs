//! Records that are stored: the body of a POST is one, and its acknowledgement the reply.

use std::sync::Arc;

use event::Calls;
use exchange::{Cause, Outcome, Phase, PoolId};
use fields::known;
use wire::http1::{Answer, Method, RequestHead};

use super::gathering::Gathering;
use super::{Asker, Dialogue, Ending, Input, Move, TEXT, tell};
use crate::crossing::Rejected;
use crate::http_request::HttpRequest;
use crate::listener::HttpConfig;
use crate::routing::RouteId;
use crate::session::SessionContext;
use crate::transport::Transport;

/// Why a request is not stored, before its body is read.
struct Unstored {
    status: u16,
    /// What would be stored.
    lines: &'static [u8],
    text: &'static str,
}

impl Unstored {
    const METHOD: Self =
        Self { status: 405, lines: b"Allow: POST\r\n", text: "only what is POSTed is stored here" };
    /// RFC 9110, sections 12.5.3 and 15.5.16.
    const ENCODED: Self = Self {
        status: 415,
        lines: b"Accept-Encoding: identity\r\n",
        text: "the body has a Content-Encoding, and is not decoded here: send it without",
    };

    fn of(head: &RequestHead) -> Option<Self> {
        let mut codings = head.fields.get_all(&known::CONTENT_ENCODING);
        if head.method() != Method::Post {
            Some(Self::METHOD)
        } else if codings.any(|it| !is_identity(it.bytes_or_empty())) {
            Some(Self::ENCODED)
        } else {
            None
        }
    }
}

/// Whether this value of `Content-Encoding` leaves a body as it is.
fn is_identity(codings: &[u8]) -> bool {
    let mut codings = codings.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    codings.all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity"))
}

impl Dialogue {
    /// Takes the record that is to be stored.
    pub(super) fn ask_to_store(
        &mut self,
        (pool, route): (PoolId, RouteId),
        plan: &Arc<HttpConfig>,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        request: HttpRequest,
        cx: &mut SessionContext<'_>,
    ) {
        let head = request.head();
        if let Some(why) = Unstored::of(head) {
            return self.answer_unstored(&why, route, transport, calls, head, cx);
        }
        let waits = head.expects_continue;
        let gathering = Gathering::new((pool, route), plan, transport.peer(), request);
        let gathering = Gathering { is_record: true, ..gathering };
        self.begin_gathering(gathering, waits, transport, calls, cx);
    }

    /// Answers a request that is not stored. The connection goes on where no body is to come.
    fn answer_unstored(
        &mut self,
        why: &Unstored,
        route: RouteId,
        transport: &mut Transport,
        calls: &mut Calls<'_>,
        head: &RequestHead,
        cx: &mut SessionContext<'_>,
    ) {
        let told = Rejected { status: why.status, reason: "" };
        self.begin_refused(transport, calls, told, cx);
        let outcome = Outcome::ended(Cause::Record, Phase::Receive, why.text);
        cx.requests.refused_at_receipt(
            transport.listener().pool,
            transport.source(),
            &outcome,
            cx.entry.take(),
        );
        let body = format!("{}\n", why.text);
        let keep_alive =
            head.connection.keep_alive && !head.body.is_some() && !self.is_last(cx.requests);
        let answer = Answer {
            status: why.status,
            content_type: TEXT,
            lines: why.lines,
            body: body.as_bytes(),
            keep_alive,
        };
        let asker = Asker { method: head.method(), version: head.version, route };
        tell(&answer, asker, transport, calls, cx);
        if !keep_alive {
            self.step(Move::End, Input::Ended);
            self.ending = Ending::Said;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_identity;

    #[test]
    fn only_identity_leaves_a_body_as_it_is() {
        for codings in ["", "identity", "Identity", " identity , identity", ","] {
            assert!(is_identity(codings.as_bytes()), "{codings}");
        }
        for codings in ["gzip", "identity, gzip", "br", "identity2", "\u{e9}"] {
            assert!(!is_identity(codings.as_bytes()), "{codings}");
        }
    }
}
