//! How outcomes are told over HTTP by whoever has no head of its own.

use exchange::{Cause, Outcome};
use wire::http1::{Answer, Method, Version, write_answer};

use super::status_of;

/// What our own words are.
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// How a reply is told that has no head of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
}

impl Told {
    /// A text.
    pub(super) const TEXT: Self = Self { status: 200, content_type: TEXT };
    /// The acknowledgement of a record.
    pub(super) const STORED: Self = Self { status: 201, content_type: TEXT };
}

/// Writes an outcome as a reply of ours. `told` is how a worker's reply is.
pub(super) fn write_outcome(
    outcome: &Outcome,
    told: Told,
    method: Method,
    version: Version,
    keep_alive: bool,
    out: &mut Vec<u8>,
) {
    let (status, body) = match outcome {
        Outcome::Reply(body) => (told.status, body.to_vec()),
        Outcome::Sorry(_, body) => (503, body.to_vec()),
        Outcome::Ended(end, text) => {
            // What was found out about workers is for the log and not for clients.
            let said: &[u8] = match end.cause {
                Cause::Worker | Cause::Record | Cause::Row | Cause::Rows => text,
                cause => cause.meaning().as_bytes(),
            };
            let word = end.cause.word().as_bytes();
            (status_of(*end), [word, b": ", said, b"\n"].concat())
        }
    };
    let lines: &[u8] = if matches!(status, 429 | 503) { b"Retry-After: 1\r\n" } else { b"" };
    let content_type = if matches!(outcome, Outcome::Reply(_)) { told.content_type } else { TEXT };
    let answer = Answer { status, content_type, lines, body: &body, keep_alive };
    write_answer(&answer, method, version, out);
}

#[cfg(test)]
mod tests {
    use exchange::{Phase, Verdict};

    use super::*;

    #[test]
    fn nobody_is_told_to_ask_again_for_what_may_have_taken_effect() {
        for &cause in Cause::ALL {
            let (outcome, mut out) = (Outcome::ended(cause, Phase::Work, "why"), Vec::new());
            write_outcome(&outcome, Told::STORED, Method::Post, Version::Http11, true, &mut out);
            let answer = String::from_utf8(out).unwrap();
            let again = answer.starts_with("HTTP/1.1 503") || answer.contains("Retry-After");
            assert!(!again || cause.verdict() != Verdict::Unknown, "{cause:?}: {answer}");
        }
    }
}
