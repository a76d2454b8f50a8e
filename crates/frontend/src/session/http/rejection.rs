//! Reasons of rejections, and the rejection of a connection that does not become a session.

use exchange::{Cause, Outcome};
use wire::http1::{HeadScan, Method, RequestHead};

use super::local_reply::{self, LocalReply, ReplyForm, Requester};
use crate::connection::ConnectionConfig;
use crate::context::SessionContext;
use crate::listener::HttpConfig;
use crate::routing::RouteId;

/// The reason of a rejection.
#[derive(Clone, Copy)]
pub(super) struct Why<'a> {
    pub(super) cause: Cause,
    /// The protocol rule that was violated; empty: none.
    pub(super) reason: &'static str,
    pub(super) text: &'a str,
}

impl<'a> Why<'a> {
    /// A reason other than a protocol violation.
    pub(super) const fn of(cause: Cause, text: &'a str) -> Self {
        Self { cause, reason: "", text }
    }
}

/// The method of an incomplete request: `HEAD`, whose replies have no body, or any other.
pub(super) fn method_begun(bytes: &[u8]) -> Method {
    let line = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    let is_head = line.is_some_and(|at| bytes[at..].starts_with(b"HEAD "));
    if is_head { Method::Head } else { Requester::NOBODY.method }
}

impl HttpConfig {
    /// Writes the response to the first request of a connection that is rejected. `false`: the head is incomplete,
    /// and more of it may arrive.
    pub(super) fn refuse_first(
        &self,
        listener: &ConnectionConfig,
        (bytes, is_last): (&[u8], bool),
        outcome: &Outcome,
        cx: &mut SessionContext<'_, '_>,
    ) -> bool {
        let mut requester = Requester { method: method_begun(bytes), ..Requester::NOBODY };
        match HeadScan::default().next(bytes, &self.limits) {
            Ok(None) if !is_last => return false,
            Ok(Some(found)) => {
                let mut head = RequestHead::default();
                match head.read(&bytes[found.head.clone()], &found, &self.limits) {
                    Ok(()) => {
                        cx.entry = cx.requests.access_log().begin_head(
                            listener.logged.as_ref(),
                            head.line_bytes(),
                            &head.fields,
                        );
                        requester.method = head.method();
                        requester.version = head.version;
                    }
                    Err(_) => {
                        cx.entry =
                            cx.requests.access_log().begin_unread(listener.logged.as_ref(), bytes);
                    }
                }
            }
            Ok(None) | Err(_) => {
                cx.entry = cx.requests.access_log().begin_unread(listener.logged.as_ref(), bytes);
            }
        }
        let date = cx.requests.date_line();
        let edits = self.routing.as_ref().map(|routing| routing.reply(RouteId::REST));
        let said = LocalReply::of(outcome, ReplyForm::TEXT);
        local_reply::write(&said.answer(false), requester, edits, &date, &mut cx.scratch.bytes);
        true
    }
}
