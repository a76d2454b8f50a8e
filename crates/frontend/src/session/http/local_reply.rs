//! HTTP responses for outcomes whose worker supplied no head.

use exchange::{Cause, Outcome, Slice};
use route::Edits;
use wire::http1::{Answer, Method, Version, write_answer};

use crate::context::SessionContext;
use crate::listener::HttpConfig;
use crate::routing::RouteId;
use crate::transport::Transport;
use flow::page::Page;
use observe::calendar::DateLine;
use observe::http_status::status_of;

pub(super) use flow::plain_reply::{PlainReply as ReplyForm, TEXT};

/// The properties of a request that its response depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requester {
    pub(super) method: Method,
    pub(super) version: Version,
    pub(super) route: RouteId,
}

impl Requester {
    /// A request that could not be parsed.
    pub(super) const NOBODY: Self =
        Self { method: Method::Get, version: Version::Http11, route: RouteId::REST };
}

/// An outcome as a response.
pub(super) struct LocalReply {
    status: u16,
    content_type: &'static str,
    body: Slice,
}

impl LocalReply {
    /// `told`: the status and type for the reply of a worker.
    pub(super) fn of(outcome: &Outcome, told: ReplyForm) -> Self {
        match outcome {
            Outcome::Reply(body) => {
                Self { status: told.status, content_type: told.content_type, body: body.clone() }
            }
            Outcome::Fallback(_, body) => {
                Self { status: 503, content_type: TEXT, body: body.clone() }
            }
            Outcome::Ended(end, text) => {
                // Details about workers are for the log and not for clients, unless `exit_message` allows
                // it.
                let said: &[u8] = match (end.cause, outcome.text()) {
                    (
                        Cause::Worker
                        | Cause::Record
                        | Cause::Row
                        | Cause::Ignored
                        | Cause::NoRow
                        | Cause::Rows,
                        _,
                    ) => text,
                    (_, (_, Some(more))) => more,
                    (cause, _) => cause.meaning().as_bytes(),
                };
                let body = [end.cause.as_str().as_bytes(), b": ", said, b"\n"].concat();
                let body = Slice::from(&body[..]);
                Self { status: status_of(end.cause), content_type: TEXT, body }
            }
        }
    }

    pub(super) fn answer(&self, keep_alive: bool) -> Answer<'_> {
        let again = matches!(self.status, 429 | 503);
        Answer {
            status: self.status,
            content_type: self.content_type,
            lines: if again { RETRY } else { b"" },
            body: &self.body,
            keep_alive,
        }
    }
}

/// A configured response with a body from [`Page::fill`].
pub(super) fn of_page<'a>(page: &'a Page, body: &'a [u8], keep_alive: bool) -> Answer<'a> {
    Answer {
        status: page.status,
        content_type: &page.content_type,
        lines: &page.lines,
        body,
        keep_alive,
    }
}

/// The header line for a rejected request that may be retried.
pub(super) const RETRY: &[u8] = b"Retry-After: 1\r\n";

/// Sends a response with the changes of the route of its request.
pub(super) fn send_local_reply(
    answer: &Answer<'_>,
    requester: Requester,
    transport: &mut Transport,
    cx: &mut SessionContext<'_, '_>,
) {
    let date = cx.requests.date_line();
    let mut out = cx.scratch.take();
    write(answer, requester, edits(transport, requester.route), &date, &mut out);
    transport.send_bytes(cx.io, &out);
    cx.scratch.give(out);
}

/// The changes of replies to requests of a route.
pub(super) fn edits(transport: &Transport, route: RouteId) -> Option<&Edits> {
    let config = transport.protocol_config::<HttpConfig>()?;
    config.routing.as_ref().map(|routing| routing.reply(route))
}

/// Writes a response with these changes, if there are any.
pub(super) fn write(
    answer: &Answer<'_>,
    requester: Requester,
    edits: Option<&Edits>,
    date: &DateLine,
    out: &mut Vec<u8>,
) {
    let Requester { method, version, route: _ } = requester;
    let Some(edits) = edits.filter(|edits| !edits.is_empty()) else {
        return write_answer(answer, method, version, date, out);
    };
    let mut lines = [&date[..], answer.lines].concat();
    if answer.has_content_type() {
        write_type(answer.content_type, &mut lines);
    }
    let lines = edits.rewrite(&lines);
    let answer = Answer { lines: &lines, content_type: "", ..*answer };
    write_answer(&answer, method, version, b"", out);
}

/// The header lines of a response whose body follows in parts.
pub(super) fn open_lines(content_type: &str, edits: Option<&Edits>, date: &DateLine) -> Vec<u8> {
    let mut lines = date.to_vec();
    write_type(content_type, &mut lines);
    match edits.filter(|edits| !edits.is_empty()) {
        Some(edits) => edits.rewrite(&lines),
        None => lines,
    }
}

fn write_type(content_type: &str, lines: &mut Vec<u8>) {
    for part in ["Content-Type: ", content_type, "\r\n"] {
        lines.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use exchange::{Phase, Verdict};

    use super::*;

    #[test]
    fn of_a_worker_that_died_a_client_is_told_what_is_meant_for_it() {
        let said = |outcome: &Outcome| {
            String::from_utf8(LocalReply::of(outcome, ReplyForm::TEXT).body.to_vec()).unwrap()
        };
        let own = Outcome::died(
            Phase::Work,
            "worker main/3 ended (exit code 3)",
            Some("it ended:\nboom"),
        );
        assert_eq!(said(&own), "died: it ended:\nboom\n");
        let quiet = Outcome::died(Phase::Work, "worker main/3 ended (exit code 3)", None);
        assert_eq!(said(&quiet), format!("died: {}\n", Cause::Died.meaning()));
        let server = Outcome::ended(Cause::Unreached, Phase::Work, "10.0.0.7:80\nis down");
        assert!(!said(&server).contains("10.0"), "only of one that died");
    }

    #[test]
    fn nobody_is_told_to_ask_again_for_what_may_have_taken_effect() {
        for &cause in Cause::ALL {
            let (outcome, mut out) = (Outcome::ended(cause, Phase::Work, "why"), Vec::new());
            let said = LocalReply::of(&outcome, ReplyForm::STORED);
            let date = [b' '; 37];
            write(&said.answer(true), Requester::NOBODY, None, &date, &mut out);
            let answer = String::from_utf8(out).unwrap();
            let again = answer.starts_with("HTTP/1.1 503") || answer.contains("Retry-After");
            assert!(!again || cause.verdict() != Verdict::Unknown, "{cause:?}: {answer}");
        }
    }
}
