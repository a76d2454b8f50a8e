//! Writing an outcome as a frame of each framing.

use exchange::{Cause, Outcome, Verdict};

use crate::framing::{Framing, Unframable, Width, encode, envelope};
use crate::jsonrpc::{self, ErrorId};

/// How replies are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Replies are unchanged. Refusals begin with `!`, and failed or unknown outcomes begin with `!failed` or
    /// `!unknown`.
    Plain,
    /// Every reply begins with `+` (answered), `!` (refused) or `-` (failed or unknown).
    Status,
}

/// Appends an outcome as one frame to `out`.
///
/// A reply is written unchanged, with a mark according to `marks`. Any other outcome is written as `!CODE text`, as on
/// lines. If [`Framing::is_json`], it is written as a JSON-RPC error object, and `marks` is ignored. `raw` has no
/// frames, so there the outcome is a line.
///
/// # Errors
/// If the framing cannot carry this reply. In this case nothing is written, and the caller should write an end with
/// [`Cause::Reply`]. Other outcomes can always be carried, because their text is truncated.
pub fn write_reply(
    framing: Framing,
    marks: Marks,
    outcome: &Outcome,
    asked: ErrorId<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Unframable> {
    match outcome {
        Outcome::Reply(body) if framing.is_json() || marks == Marks::Plain => {
            encode(framing, body, out)
        }
        Outcome::Ended(..) | Outcome::Fallback(..)
            if framing.is_json() && asked == ErrorId::Nothing =>
        {
            Ok(())
        }
        _ => write_made(framing, marks, outcome, asked, out),
    }
}

/// Writes an outcome that is not only the bytes of a worker: it is written to `out`, and its envelope is added around
/// it.
fn write_made(
    framing: Framing,
    marks: Marks,
    outcome: &Outcome,
    asked: ErrorId<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Unframable> {
    let start = out.len();
    match outcome {
        Outcome::Ended(end, _) | Outcome::Fallback(end, _) if framing.is_json() => {
            jsonrpc::write_error(*end, outcome.text().0, asked, out);
        }
        _ => write_text(out, marks, outcome),
    }
    let made = matches!(outcome, Outcome::Ended(..) | Outcome::Fallback(..));
    if made && framing == Framing::Len(Width::One) {
        out.truncate(start + Width::One.body_max());
    }
    match envelope(framing, &out[start..]) {
        Ok(envelope) => {
            let tail = if framing == Framing::Raw { b"\n" } else { envelope.tail() };
            out.extend_from_slice(tail);
            out.splice(start..start, envelope.head().iter().copied());
            Ok(())
        }
        Err(refused) => {
            out.truncate(start);
            Err(refused)
        }
    }
}

/// Writes an outcome as one line without its line end.
pub(crate) fn write_text(out: &mut Vec<u8>, marks: Marks, outcome: &Outcome) {
    let (end, text) = match outcome {
        Outcome::Reply(body) => {
            if marks == Marks::Status {
                out.push(b'+');
            }
            return out.extend_from_slice(body);
        }
        Outcome::Ended(end, _) | Outcome::Fallback(end, _) => (end, outcome.text().0),
    };
    if matches!(outcome, Outcome::Fallback(..)) && marks == Marks::Plain {
        return write_words(out, text);
    }
    let verdict = end.cause.verdict();
    match (verdict, marks) {
        (Verdict::Failed | Verdict::Unknown, Marks::Status) => out.push(b'-'),
        (Verdict::Failed | Verdict::Unknown, Marks::Plain) => {
            out.push(b'!');
            out.extend_from_slice(verdict.as_str().as_bytes());
            out.push(b' ');
        }
        _ => out.push(b'!'),
    }
    // A refusal by a worker is forwarded in the worker's words.
    if end.cause != Cause::Worker {
        out.extend_from_slice(end.cause.as_str().as_bytes());
        if !text.is_empty() {
            out.push(b' ');
        }
    }
    write_words(out, text);
}

/// Writes a text. Bytes that would end a line or a frame become blanks.
fn write_words(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(text.iter().map(|&byte| if matches!(byte, b'\n' | 0) { b' ' } else { byte }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use exchange::{Phase, Slice};

    fn written(
        framing: Framing,
        outcome: &Outcome,
        asked: ErrorId<'_>,
    ) -> Result<Vec<u8>, Unframable> {
        let mut out = b"before".to_vec();
        let result = write_reply(framing, Marks::Plain, outcome, asked, &mut out);
        assert!(out.starts_with(b"before"));
        result.map(|()| out.split_off(6)).inspect_err(|_| assert!(out.len() <= 6))
    }

    #[test]
    fn a_refusal_travels_in_a_frame_of_every_framing() {
        let full = Outcome::ended(Cause::Full, Phase::Queue, "try\nagain\0");
        let object = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32051,"message":"full: try again ","data":{"cause":"full","verdict":"refused"}}}"#;
        for framing in Framing::ALL {
            let expected = match framing {
                Framing::Lines | Framing::Raw => "!full try again \n".to_owned(),
                Framing::Nul => "!full try again \0".to_owned(),
                Framing::Len(Width::One) => "\x10!full try again ".to_owned(),
                Framing::Len(Width::Two) => "\0\x10!full try again ".to_owned(),
                Framing::Len(Width::Four) => "\0\0\0\x10!full try again ".to_owned(),
                Framing::Netstring => "16:!full try again ,".to_owned(),
                Framing::ContentLength => {
                    format!("Content-Length: {}\r\n\r\n{object}", object.len())
                }
                Framing::JsonRpc => format!("{object}\n"),
                Framing::Oneshot => "!full try again ".to_owned(),
            };
            let written = written(*framing, &full, ErrorId::Id(b"7")).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), expected, "{framing:?}");
        }
    }

    #[test]
    fn a_mark_is_part_of_the_frame() {
        let reply = Outcome::Reply(Slice::from("yes"));
        let mut out = Vec::new();
        write_reply(Framing::Netstring, Marks::Status, &reply, ErrorId::Unknown, &mut out).unwrap();
        assert_eq!(out, b"4:+yes,");
    }

    #[test]
    fn a_reply_that_cannot_be_carried_leaves_no_trace_but_its_reason() {
        let reply = Outcome::Reply(Slice::from("two\nlines"));
        assert_eq!(written(Framing::Lines, &reply, ErrorId::Unknown), Err(Unframable::LineFeed));
        for marks in [Marks::Plain, Marks::Status] {
            let mut out = b"before".to_vec();
            let refused = write_reply(Framing::Lines, marks, &reply, ErrorId::Unknown, &mut out);
            assert_eq!((refused, &out[..]), (Err(Unframable::LineFeed), &b"before"[..]));
        }
    }

    #[test]
    fn an_ending_is_cut_to_what_the_framing_carries() {
        let long = Outcome::ended(Cause::Full, Phase::Queue, &"x".repeat(300));
        let written = written(Framing::Len(Width::One), &long, ErrorId::Unknown).unwrap();
        assert_eq!(written.len(), 256);
        assert!(written.starts_with(b"\xff!full xxx"));
    }

    #[test]
    fn a_notification_is_not_answered_and_an_unknown_id_is_null() {
        let full = Outcome::ended(Cause::Full, Phase::Queue, "");
        for framing in [Framing::JsonRpc, Framing::ContentLength] {
            assert_eq!(written(framing, &full, ErrorId::Nothing), Ok(vec![]));
            let unknown = written(framing, &full, ErrorId::Unknown).unwrap();
            assert!(String::from_utf8(unknown).unwrap().contains(r#""id":null,"#));
        }
    }
}
