//! JSON-RPC 2.0 messages: where their ids are, so that they can be rewritten and restored.
//!
//! Several clients share one server by ids of ours: each request goes out with a tag instead of its
//! id, and its reply comes back with the id instead of the tag. Nothing else of a message is
//! touched. [`scan`] reads a message once, without allocating, and tells the places; [`rewrite`] and
//! [`splice`] put something else there.
//!
//! What a shared server would read differently than we do is refused: a member that is there twice
//! (also when one of them is written with escapes), one whose name differs from a watched one in
//! case alone (some parsers do not tell them apart), and whatever is not JSON. Otherwise one client
//! could pass an id by us and get another's reply.
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
mod scan;
mod skim;
mod start;

pub use error::{code, write_error};
pub use fault::Fault;
pub use handshake::{is_unshared, result_for, shared_result};
pub use json::DEPTH_MAX;
pub use scan::scan;
pub(crate) use skim::Skim;
pub use skim::{Skimmed, skim};
pub use start::{START_MAX, named_at_start};

/// Bytes that an id or a token may have, as it is written.
pub const ID_MAX: usize = 256;

/// Bytes that a number may have, as it is written, in a message for a program that clients share. Some readers fail
/// at a longer one: Jackson from 1000, Python from 4300.
pub const NUMBER_MAX: usize = 1000;

/// Where the parts of a message are that routing needs. A place covers the whole value as it is
/// written, with its quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The version of the protocol, of any sort.
    pub version: Option<Range<usize>>,
    /// A string, a number or `null`.
    pub id: Option<Range<usize>>,
    /// A string.
    pub method: Option<Range<usize>>,
    /// Any value, normally an object.
    pub params: Option<Range<usize>>,
    /// Any value.
    pub result: Option<Range<usize>>,
    /// Any value.
    pub error: Option<Range<usize>>,
    /// What `params` name.
    pub tokens: Tokens,
    /// Bytes of its longest number, as it is written.
    pub longest_number: usize,
    /// Whether `params` ask for a task.
    pub task: Task,
}

/// The member `params.task` (MCP): what is asked is to be done later, and its result asked for by the name of a
/// task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// It is not there.
    #[default]
    None,
    /// It is there, with its name and one comma, so that an object is left when this is removed.
    Member(Range<usize>),
    /// It is there twice, or in other letters.
    Alike,
}

/// Ids and tokens within `params`: each a string, a number or `null`, else it has no place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// `params._meta.progressToken`: where a request wants to hear of its progress (MCP).
    pub meta_progress: Option<Range<usize>>,
    /// `params.progressToken`: what `notifications/progress` is about (MCP).
    pub progress: Option<Range<usize>>,
    /// `params.requestId`: what `notifications/cancelled` is about (MCP).
    pub request_id: Option<Range<usize>>,
    /// `params.id`: what `$/cancelRequest` is about (LSP).
    pub cancelled_id: Option<Range<usize>>,
    /// `params.token`: what `$/progress` is about (LSP).
    pub token: Option<Range<usize>>,
    /// `params.workDoneToken`: where a request wants to hear of its progress (LSP).
    pub work_done: Option<Range<usize>>,
    /// `params.partialResultToken`: where a request wants its result in parts (LSP).
    pub partial_result: Option<Range<usize>>,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has a method and an id.
    Request,
    /// It has a method and no id.
    Notification,
    /// It has a result or an error.
    Response,
}

impl Message {
    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match (&self.method, &self.id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, _) => Kind::Response,
        }
    }

    /// Whether every program replies to it, and names it: it is a request, and its id is not `null`, which some
    /// take for none.
    #[must_use]
    pub fn is_replied_to(&self, frame: &[u8]) -> bool {
        let id = self.id.clone().and_then(|place| frame.get(place));
        self.kind() == Kind::Request && id.is_some_and(|id| id != b"null")
    }

    /// Whether it says that it is of JSON-RPC 2.0. Some programs leave that out of what they say; what a
    /// program is asked without it, it may ignore.
    #[must_use]
    pub fn is_version_2(&self, frame: &[u8]) -> bool {
        let written = self.version.clone().and_then(|place| frame.get(place));
        written.is_some_and(|written| json::is_string(written, "2.0"))
    }

    /// Whether its method is this one, however it is written.
    #[must_use]
    pub fn is_method(&self, frame: &[u8], name: &str) -> bool {
        let written = self.method.clone().and_then(|place| frame.get(place));
        written.is_some_and(|written| json::is_string(written, name))
    }

    /// Whether it cancels something, by its method alone: whatever its letters' case, its parameters and
    /// whether it has an id. A program may read it less strictly than it is written.
    #[must_use]
    pub fn is_cancel(&self, frame: &[u8]) -> bool {
        self.is_method_like(frame, &CANCELS)
    }

    /// Whether it reports progress, by its method alone as [`Self::is_cancel`].
    #[must_use]
    pub fn is_progress(&self, frame: &[u8]) -> bool {
        self.is_method_like(frame, &REPORTS)
    }

    /// Whether its method is one of these for a program that does not look at the case of letters.
    #[must_use]
    pub fn is_method_like(&self, frame: &[u8], names: &[&str]) -> bool {
        let written = self.method.clone().and_then(|place| frame.get(place));
        written.is_some_and(|written| names.iter().any(|name| json::is_alike(written, name)))
    }

    /// The id of the request that this notification cancels (MCP, LSP).
    #[must_use]
    pub fn cancels(&self, frame: &[u8]) -> Option<&Range<usize>> {
        self.about(frame, [Dialect::Mcp.cancel(), Dialect::Lsp.cancel()], |tokens| {
            [&tokens.request_id, &tokens.cancelled_id]
        })
    }

    /// Whether a request that this notification cancels is still to be replied to: LSP demands it, MCP
    /// forbids it.
    #[must_use]
    pub fn cancels_with_reply(&self, frame: &[u8]) -> bool {
        !self.is_method(frame, Dialect::Mcp.cancel())
    }

    /// The token of the request whose progress this notification reports (MCP, LSP).
    #[must_use]
    pub fn reports(&self, frame: &[u8]) -> Option<&Range<usize>> {
        self.about(frame, REPORTS, |tokens| [&tokens.progress, &tokens.token])
    }

    /// The place that belongs to this notification's method.
    fn about(
        &self,
        frame: &[u8],
        methods: [&str; 2],
        places: impl Fn(&Tokens) -> [&Option<Range<usize>>; 2],
    ) -> Option<&Range<usize>> {
        let is_notification = self.kind() == Kind::Notification;
        let which = methods.iter().position(|name| is_notification && self.is_method(frame, name));
        which.and_then(|which| places(&self.tokens)[which].as_ref())
    }
}

/// The methods by which a client takes a request back or stops what it named by a token (MCP, LSP).
const CANCELS: [&str; 3] =
    ["notifications/cancelled", "$/cancelRequest", "window/workDoneProgress/cancel"];

/// The methods that report progress (MCP, LSP).
const REPORTS: [&str; 2] = ["notifications/progress", "$/progress"];

/// The frame with something else at one place, in three pieces.
///
/// # Panics
/// When `place` does not lie within the frame, as every place does that [`scan`] found in it.
#[must_use]
pub fn rewrite<'a>(frame: &'a [u8], place: &Range<usize>, new: &'a [u8]) -> [&'a [u8]; 3] {
    [&frame[..place.start], new, &frame[place.end..]]
}

/// Writes the frame behind what `out` holds, with something else at each of some places, which are
/// in their order. The frame is a message that [`scan`] accepted, and what is written is one line for
/// every reader: LF and CR become blanks, since in JSON they are white space between two tokens, and
/// U+0085, U+2028 and U+2029, which can only stand in strings, become escapes.
///
/// # Panics
/// When the places are not in their order or do not lie within the frame.
pub fn splice(frame: &[u8], edits: &[(Range<usize>, &[u8])], out: &mut Vec<u8>) {
    let mut from = 0;
    for (place, new) in edits {
        write_flat(&frame[from..place.start], out);
        out.extend_from_slice(new);
        from = place.end;
    }
    write_flat(&frame[from..], out);
}

/// Whether a message that [`scan`] accepted is one line for every reader, as [`splice`] writes it.
#[must_use]
pub fn is_flat(frame: &[u8]) -> bool {
    let may_break = memchr::memchr3(b'\n', b'\r', 0xe2, frame).is_some()
        || memchr::memchr(0xc2, frame).is_some();
    !may_break || line_breaks(frame).next().is_none()
}

pub(crate) fn write_flat(bytes: &[u8], out: &mut Vec<u8>) {
    if is_flat(bytes) {
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

/// What some reader takes for the end of a line, and what means the same in JSON.
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

/// How the two protocols on top differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The Model Context Protocol.
    Mcp,
    /// The Language Server Protocol.
    Lsp,
}

impl Dialect {
    /// The method that cancels a request.
    const fn cancel(self) -> &'static str {
        match self {
            Self::Mcp => "notifications/cancelled",
            Self::Lsp => "$/cancelRequest",
        }
    }
}

/// Writes the notification that cancels the request with this tag, without an envelope. A client's
/// own is never passed on: another one could have its id.
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

/// Writes the request with this tag by which a client begins, without an envelope; `version` is ours.
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

/// Writes what a client says once that is answered, without an envelope.
pub fn write_initialized(dialect: Dialect, out: &mut Vec<u8>) {
    out.extend_from_slice(match dialect {
        Dialect::Mcp => br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        Dialect::Lsp => br#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
    });
}

/// An id or a token of ours, a number that every reader of JSON keeps as it is: LSP allows 31 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(u32);

impl Tag {
    /// The greatest.
    pub const MAX: Self = Self(i32::MAX as u32);

    /// This tag, or none above [`Self::MAX`].
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The one after it; after the greatest comes 0.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 == Self::MAX.0 { Self(0) } else { Self(self.0 + 1) }
    }

    /// The tag that is written here, exactly as we write them.
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
