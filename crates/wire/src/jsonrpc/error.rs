//! Error objects for requests that ended without a reply.

use exchange::{Cause, End};

/// The id in an error object. Only framings with JSON use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorId<'a> {
    /// The id of the request, unchanged.
    Id(&'a [u8]),
    /// The id is not known: the error has the id `null`.
    Unknown,
    /// No error object is sent, because a notification must not be answered.
    Nothing,
}

/// The code of an error object for a cause. It is stable, because clients match it.
///
/// Errors in the message itself have the codes of the standard. The other codes are used neither by the standard nor by
/// LSP or MCP: -3204x and -3205x mean that the request was refused and may be sent again, -3206x that it was tried
/// without effect, -3207x that its outcome is unknown.
#[must_use]
pub const fn code(cause: Cause) -> i32 {
    match cause {
        Cause::Incomplete => -32700,
        Cause::TooLong | Cause::Record | Cause::Malformed => -32600,
        Cause::NoMethod => -32601,
        Cause::Row => -32602,
        Cause::Memory => -32041,
        // -32042 has a meaning in MCP.
        Cause::NoRow => -32043,
        Cause::Ignored => -32044,
        Cause::Denied => -32045,
        Cause::Crowded => -32046,
        Cause::Rate => -32047,
        Cause::NoRoute => -32048,
        Cause::Unauthorized => -32049,
        Cause::Connections => -32050,
        Cause::Full => -32051,
        Cause::Waited => -32052,
        Cause::Down => -32053,
        Cause::Draining => -32054,
        Cause::NoPool => -32055,
        Cause::Worker => -32056,
        Cause::Lost => -32057,
        Cause::Fallback => -32058,
        Cause::Gone => -32059,
        Cause::Database => -32060,
        Cause::Rows => -32061,
        Cause::Unreached => -32062,
        Cause::Died => -32070,
        Cause::Deadline => -32071,
        Cause::Reply => -32072,
        Cause::Commit => -32073,
        Cause::Handler => -32074,
        Cause::Stopped => -32075,
        Cause::Garbled => -32076,
        // No client is left to receive these codes.
        Cause::Cancelled | Cause::Left | Cause::Shed | Cause::Overtime | Cause::Idle => -32800,
        Cause::Stalled | Cause::SlowReader => -32801,
        Cause::Answered => -32603,
    }
}

/// Appends an error object for an end to `out`, on one line and without an envelope. Writes nothing for
/// [`ErrorId::Nothing`].
pub fn write_error(end: End, text: &[u8], asked: ErrorId<'_>, out: &mut Vec<u8>) {
    let id = match asked {
        ErrorId::Id(id) => id,
        ErrorId::Unknown => b"null",
        ErrorId::Nothing => return,
    };
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(br#","error":{"code":"#);
    out.extend_from_slice(code(end.cause).to_string().as_bytes());
    out.extend_from_slice(br#","message":""#);
    out.extend_from_slice(end.cause.as_str().as_bytes());
    if !text.is_empty() {
        out.extend_from_slice(b": ");
        write_escaped(text, out);
    }
    out.extend_from_slice(br#"","data":{"cause":""#);
    out.extend_from_slice(end.cause.as_str().as_bytes());
    out.extend_from_slice(br#"","verdict":""#);
    out.extend_from_slice(end.cause.verdict().as_str().as_bytes());
    out.extend_from_slice(br#""}}}"#);
}

/// Writes text in a JSON string. Control characters become blanks, and bytes that are not UTF-8 become U+FFFD.
fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '"' | '\\' => out.extend_from_slice(&[b'\\', character as u8]),
            '\0'..=' ' => out.push(b' '),
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::scan;
    use exchange::{Phase, Verdict};

    #[test]
    fn the_code_tells_the_verdict() {
        for &cause in Cause::ALL {
            let expected = match cause.verdict() {
                Verdict::Refused => -32059..=-32040,
                Verdict::Failed => -32069..=-32060,
                Verdict::Unknown => -32079..=-32070,
                Verdict::Left | Verdict::Answered => continue,
            };
            let standard = matches!(code(cause), -32700 | -32602..=-32600);
            let refused = cause.verdict() == Verdict::Refused;
            assert!(expected.contains(&code(cause)) || standard && refused, "{cause:?}");
            assert_ne!(code(cause), -32042, "it has a meaning in MCP: {cause:?}");
        }
    }

    #[test]
    fn every_text_makes_a_message_on_one_line() {
        for text in [&b"plain"[..], b"", b"\"\\\n\r\t\0\x7f", b"\xff\xfe", "ü€".as_bytes()] {
            let mut out = Vec::new();
            let end = End::new(Cause::Died, Phase::Work);
            write_error(end, text, ErrorId::Id(br#""a b""#), &mut out);
            assert!(!out.contains(&b'\n'));
            let message = scan(&out).unwrap();
            assert_eq!(&out[message.id.unwrap()], br#""a b""#);
            assert!(message.error.is_some());
        }
    }
}
