//! JSON-RPC 2.0 messages: the positions of their ids, so that ids can be replaced and restored.
//!
//! Several clients share one server. Each request is sent with a tag instead of its id, and its reply is returned with
//! the id instead of the tag. Nothing else in a message is changed. [`scan`] reads a message once, without allocating,
//! and returns the positions. [`rewrite`] and [`splice`] replace the text at these positions.
//!
//! A message is rejected if a shared server could interpret it differently: a duplicate member (even if one of them is
//! written with escapes), a member whose name differs from a checked name only in case (some parsers ignore case), and
//! anything that is not JSON. Otherwise a client could hide an id from this check and receive another client's reply.
//!
//! ```
//! use wire::jsonrpc::{Kind, rewrite, scan};
//!
//! let frame = br#"{"jsonrpc":"2.0","method":"tools/call","id":"a"}"#;
//! let message = scan(frame).unwrap();
//! assert_eq!(message.kind(), Kind::Request);
//! let pieces = rewrite(frame, &message.id.unwrap(), b"41");
//! assert_eq!(pieces.concat(), br#"{"jsonrpc":"2.0","method":"tools/call","id":41}"#);
//! ```

use std::ops::Range;

mod error;
mod fault;
mod handshake;
mod json;
mod measure;
mod message;
mod scan;
mod skim;
mod start;

pub use error::{ErrorId, code, write_error};
pub use fault::Fault;
pub use handshake::{is_unshared, result_for, shared_result};
pub use json::DEPTH_MAX;
pub use measure::{Measure, NUMBER_MAX, SHARED_DEPTH_MAX};
pub use message::{Dialect, ID_MAX, Kind, Message, Task, Tokens};
pub use scan::scan;
pub(crate) use skim::Skim;
pub use skim::{Skimmed, skim};
pub use start::{START_MAX, id_at_start, unique_member};

/// Replaces the text at one position. Returns the frame in three pieces.
///
/// # Panics
/// If `place` is not within the frame. The positions that [`scan`] returns for this frame are within it.
#[must_use]
pub fn rewrite<'a>(frame: &'a [u8], place: &Range<usize>, new: &'a [u8]) -> [&'a [u8]; 3] {
    [&frame[..place.start], new, &frame[place.end..]]
}

/// Appends the frame to `out`, with replaced text at several positions in ascending order. The frame is a message that
/// [`scan`] accepted. The output is one line for every reader: LF and CR, which in JSON are white space between two
/// tokens, become blanks; U+0085, U+2028 and U+2029, which occur only in strings, become escapes.
///
/// # Panics
/// If the positions are not in ascending order or not within the frame.
pub fn splice(frame: &[u8], edits: &[(Range<usize>, &[u8])], out: &mut Vec<u8>) {
    let mut from = 0;
    for (place, new) in edits {
        write_one_line(&frame[from..place.start], out);
        out.extend_from_slice(new);
        from = place.end;
    }
    write_one_line(&frame[from..], out);
}

/// Whether every reader treats a message that [`scan`] accepted as one line, as in the output of [`splice`].
#[must_use]
pub fn is_one_line(frame: &[u8]) -> bool {
    let may_break = memchr::memchr3(b'\n', b'\r', 0xe2, frame).is_some()
        || memchr::memchr(0xc2, frame).is_some();
    !may_break || line_breaks(frame).next().is_none()
}

pub(crate) fn write_one_line(bytes: &[u8], out: &mut Vec<u8>) {
    if is_one_line(bytes) {
        return out.extend_from_slice(bytes);
    }
    let mut from = 0;
    for (place, instead) in line_breaks(bytes) {
        out.extend_from_slice(&bytes[from..place.start]);
        out.extend_from_slice(instead.as_bytes());
        from = place.end;
    }
    out.extend_from_slice(&bytes[from..]);
}

/// The positions of characters that some readers treat as a line end, with equivalent JSON text.
fn line_breaks(bytes: &[u8]) -> impl Iterator<Item = (Range<usize>, &'static str)> {
    (0..bytes.len()).filter_map(|at| {
        let (length, instead) = match bytes[at..] {
            [b'\n' | b'\r', ..] => (1, " "),
            [0xc2, 0x85, ..] => (2, "\\u0085"),
            [0xe2, 0x80, 0xa8, ..] => (3, "\\u2028"),
            [0xe2, 0x80, 0xa9, ..] => (3, "\\u2029"),
            _ => return None,
        };
        Some((at..at + length, instead))
    })
}

/// Writes the notification that cancels the request with this tag, without an envelope. A client's own notification is
/// never forwarded, because another client could use the same id.
pub fn write_cancel(dialect: Dialect, tag: Tag, out: &mut Vec<u8>) {
    let name = match dialect {
        Dialect::Mcp => "requestId",
        Dialect::Lsp => "id",
    };
    let method = dialect.cancel();
    out.extend_from_slice(
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"{name}":{tag}}}}}"#)
            .as_bytes(),
    );
}

/// Writes a client's first request, `initialize`, with this tag and without an envelope. `version` is the version of
/// the daemon.
pub fn write_initialize(dialect: Dialect, tag: Tag, version: &str, out: &mut Vec<u8>) {
    let revision = handshake::LATEST;
    let params = match dialect {
        Dialect::Mcp => format!(
            r#""protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"roadstead","version":"{version}"}}"#
        ),
        Dialect::Lsp => format!(
            r#""processId":null,"rootUri":null,"capabilities":{{}},"clientInfo":{{"name":"roadstead","version":"{version}"}}"#
        ),
    };
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":{tag},"method":"initialize","params":{{{params}}}}}"#);
    out.extend_from_slice(text.as_bytes());
}

/// Writes the notification of a client after the reply to `initialize`, without an envelope.
pub fn write_initialized(dialect: Dialect, out: &mut Vec<u8>) {
    out.extend_from_slice(match dialect {
        Dialect::Mcp => br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        Dialect::Lsp => br#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
    });
}

/// An id or a token that the daemon assigns. It is a number that every JSON parser preserves: LSP allows 31 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(u32);

impl Tag {
    /// The largest tag.
    pub const MAX: Self = Self(i32::MAX as u32);

    /// Creates a tag. `None` if the number is above [`Self::MAX`].
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// The number of the tag.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The next tag. After the largest tag, the next one is 0.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 == Self::MAX.0 { Self(0) } else { Self(self.0 + 1) }
    }

    /// Parses a tag in exactly the form in which tags are written.
    #[must_use]
    pub fn parse(written: &[u8]) -> Option<Self> {
        let plain = written.iter().all(u8::is_ascii_digit);
        let leading_zero = written.len() > 1 && written[0] == b'0';
        let text = std::str::from_utf8(written).ok().filter(|_| plain && !leading_zero)?;
        Self::new(text.parse().ok()?)
    }
}

impl std::fmt::Display for Tag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
