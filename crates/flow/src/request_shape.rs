//! Which HTTP requests the workers of a pool accept, and in which form.
//!
//! A frontend checks a request before it is submitted, so that a request which no worker can answer is rejected
//! before it is queued. The backend encodes a request by the same rules.

use std::sync::Arc;

use exchange::{Peer, Slice};
use fields::known;
use wire::http1::{Method, RequestHead};

use crate::http_request::HttpRequest;
use crate::plain_reply::PlainReply;
use crate::query_record::{QueryError, QueryRecord};

/// The form in which the workers of a pool accept HTTP requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestShape {
    /// HTTP messages.
    Messages,
    /// A record of the parameters of the target.
    Records(Arc<QueryRecord>),
    /// A record, which is the body of a `POST`.
    Bodies,
    /// One JSON object. The reply is a JSON object or a text.
    Objects,
    /// The head and the complete body, without an encoding: for handlers.
    Heads,
}

/// The response to a request that no worker of the pool accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The status code.
    pub status: u16,
    /// Header lines that state what is accepted, each ending in CRLF.
    pub lines: &'static [u8],
    /// The body, a sentence for the client.
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
        Self { status: why.status(), lines, text: why.message() }
    }
}

impl RequestShape {
    /// Checks the head of a request. `out` is scratch memory.
    ///
    /// # Errors
    /// The response, when the workers do not accept such a request.
    pub fn check(&self, request: &HttpRequest, out: &mut Vec<u8>) -> Result<(), Unfit> {
        match self {
            Self::Messages | Self::Objects | Self::Heads => Ok(()),
            Self::Records(question) => {
                let written = write_question(question, request, out);
                written.map_err(|why| Unfit::of_question(&why))
            }
            Self::Bodies => stored(request.head()),
        }
    }

    /// The HTTP status and type for replies of these workers that have no head.
    pub fn plain_reply(&self) -> PlainReply {
        match self {
            Self::Records(question) => {
                PlainReply { content_type: question.content_type, ..PlainReply::TEXT }
            }
            Self::Bodies => PlainReply::STORED,
            Self::Messages | Self::Objects | Self::Heads => PlainReply::TEXT,
        }
    }

    /// Encodes a request as a frame for a worker. The request must have passed [`Self::check`].
    pub fn frame(&self, request: &HttpRequest, peer: Peer, body: &Slice) -> Slice {
        match self {
            Self::Records(question) => {
                let mut out = Vec::new();
                let written = write_question(question, request, &mut out);
                debug_assert!(written.is_ok(), "it was checked: {written:?}");
                Slice::from(&out[..])
            }
            Self::Bodies => record(body),
            Self::Heads => body.clone(),
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

/// Whether this value of `Content-Encoding` leaves the body unchanged.
fn is_identity(codings: &[u8]) -> bool {
    let mut codings = codings.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    codings.all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity"))
}

/// A body without a final line end.
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
