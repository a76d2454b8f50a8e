//! What the workers of a pool take of requests of HTTP: which requests they can be given, and what those
//! become.
//!
//! A front asks it before a request is submitted, so that what no worker could answer never waits; whoever
//! gives a request to a worker writes it by the same rules.

use std::sync::Arc;

use exchange::{Peer, Slice};
use fields::known;
use wire::http1::{Method, RequestHead};

use crate::http_request::HttpRequest;
use crate::plain_reply::PlainReply;
use crate::query_record::{QueryError, QueryRecord};

/// What a request of HTTP becomes for the workers of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestShape {
    /// They speak HTTP.
    Messages,
    /// A record of its parameters.
    Records(Arc<QueryRecord>),
    /// A record, which is its body.
    Bodies,
    /// One JSON object, and their answer is another, or a text.
    Objects,
}

/// Why a request can be given to none of the workers, and what its client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit {
    pub status: u16,
    /// What would fit: lines of a head.
    pub lines: &'static [u8],
    pub text: &'static str,
}

impl Unfit {
    const STORED_METHOD: Self =
        Self { status: 405, lines: b"Allow: POST\r\n", text: "only what is POSTed is stored here" };
    /// RFC 9110, sections 12.5.3 and 15.5.16.
    const ENCODED: Self = Self {
        status: 415,
        lines: b"Accept-Encoding: identity\r\n",
        text: "the body has a Content-Encoding, and is not decoded here: send it without",
    };

    fn of_question(why: &QueryError) -> Self {
        let lines: &[u8] = if *why == QueryError::Method { b"Allow: GET, HEAD\r\n" } else { b"" };
        Self { status: why.status(), lines, text: why.text() }
    }
}

impl RequestShape {
    /// Whether the workers can be given a request with this head. `out` is memory to write to.
    pub fn check(&self, request: &HttpRequest, out: &mut Vec<u8>) -> Result<(), Unfit> {
        match self {
            Self::Messages | Self::Objects => Ok(()),
            Self::Records(question) => {
                let written = write_question(question, request, out);
                written.map_err(|why| Unfit::of_question(&why))
            }
            Self::Bodies => stored(request.head()),
        }
    }

    /// How a reply of these workers is told that has no head of its own.
    pub fn plain_reply(&self) -> PlainReply {
        match self {
            Self::Records(question) => {
                PlainReply { content_type: question.content_type, ..PlainReply::TEXT }
            }
            Self::Bodies => PlainReply::STORED,
            Self::Messages | Self::Objects => PlainReply::TEXT,
        }
    }

    /// The frame that a worker is given for a request. What does not fit is not submitted, and would be an
    /// empty frame.
    pub fn frame(&self, request: &HttpRequest, peer: Peer, body: &Slice) -> Slice {
        match self {
            Self::Records(question) => {
                let mut out = Vec::new();
                let written = write_question(question, request, &mut out);
                debug_assert!(written.is_ok(), "it was checked: {written:?}");
                Slice::from(&out[..])
            }
            Self::Bodies => record(body),
            Self::Messages | Self::Objects => Slice::from(&request.object(peer, body)[..]),
        }
    }
}

fn write_question(
    question: &QueryRecord,
    request: &HttpRequest,
    out: &mut Vec<u8>,
) -> Result<(), QueryError> {
    let (path, query) = request.target_parts();
    question.record(request.head().method(), path, query, out)
}

fn stored(head: &RequestHead) -> Result<(), Unfit> {
    let mut codings = head.fields.get_all(&known::CONTENT_ENCODING);
    if head.method() != Method::Post {
        Err(Unfit::STORED_METHOD)
    } else if codings.any(|it| !is_identity(it.bytes_or_empty())) {
        Err(Unfit::ENCODED)
    } else {
        Ok(())
    }
}

/// Whether this value of `Content-Encoding` leaves a body as it is.
fn is_identity(codings: &[u8]) -> bool {
    let mut codings = codings.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    codings.all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity"))
}

/// A body without the line end that it may have behind its record.
fn record(body: &Slice) -> Slice {
    let end = match body.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line).len(),
        None => body.len(),
    };
    body.slice(0..end)
}

#[cfg(test)]
mod tests {
    use wire::http1::{HeadScan, Limits};

    use super::*;

    fn request(text: &str) -> HttpRequest {
        let found = HeadScan::default().next(text.as_bytes(), &Limits::REQUEST).unwrap().unwrap();
        HttpRequest::read(text.as_bytes(), &found, &Limits::REQUEST).unwrap()
    }

    #[test]
    fn only_identity_leaves_a_body_as_it_is() {
        for codings in ["", "identity", "Identity", " identity , identity", ","] {
            assert!(is_identity(codings.as_bytes()), "{codings}");
        }
        for codings in ["gzip", "identity, gzip", "br", "identity2", "\u{e9}"] {
            assert!(!is_identity(codings.as_bytes()), "{codings}");
        }
    }

    #[test]
    fn what_fits_becomes_what_the_workers_take() {
        let hits = QueryRecord::new(Some("/hits/{id}"), "text/plain", true);
        let hits = RequestShape::Records(Arc::new(hits));
        let body = Slice::from("a record\r\n");
        for (shape, text, due) in [
            (&hits, "GET /hits/7?a=b HTTP/1.0\r\n\r\n", Ok(r#"{"id":"7","a":"b"}"#)),
            (&hits, "POST /hits/7 HTTP/1.0\r\n\r\n", Err(405)),
            (&hits, "GET /other HTTP/1.0\r\n\r\n", Err(404)),
            (&hits, "GET /hits/7?a=% HTTP/1.0\r\n\r\n", Err(400)),
            (&RequestShape::Bodies, "POST /x HTTP/1.0\r\n\r\n", Ok("a record")),
            (&RequestShape::Bodies, "PUT /x HTTP/1.0\r\n\r\n", Err(405)),
            (&RequestShape::Bodies, "POST /x HTTP/1.0\r\nContent-Encoding: gzip\r\n\r\n", Err(415)),
            (
                &RequestShape::Objects,
                "PUT /x?y HTTP/1.0\r\nA: b\r\n\r\n",
                Ok(
                    r#"{"method":"PUT","path":"/x","query":"y","headers":{"a":"b"},"body":"a record\r\n"}"#,
                ),
            ),
        ] {
            let request = request(text);
            let found = shape.check(&request, &mut Vec::new());
            assert_eq!(found.map_err(|unfit| unfit.status).err(), due.err(), "{text}");
            if let Ok(due) = due {
                let frame = shape.frame(&request, Peer::Inside, &body);
                assert_eq!(
                    frame.escape_ascii().to_string(),
                    due.as_bytes().escape_ascii().to_string()
                );
            }
        }
    }

    #[test]
    fn a_record_has_no_line_end_behind_it() {
        for (body, due) in
            [("a\r\n", "a"), ("a\n", "a"), ("a\r", "a\r"), ("a\n\n", "a\n"), ("", "")]
        {
            assert_eq!(record(&Slice::from(body))[..], *due.as_bytes(), "{body:?}");
        }
    }
}
