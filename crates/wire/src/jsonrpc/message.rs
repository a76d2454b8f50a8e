//! The positions of the parts of a message, and its kind.

use std::ops::Range;

use super::json::{is_string, is_string_ignoring_case};
use super::measure::Measure;

/// The maximum length of an id or a token as written, in bytes.
pub const ID_MAX: usize = 256;

const _: () = assert!(ID_MAX == 256, "the text of `Fault::IdLong` says it");

/// The positions of the parts of a message that routing needs. Each covers the whole value as written, including
/// quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The version of the protocol, of any type.
    pub version: Option<Range<usize>>,
    /// The id: a string, a number or `null`.
    pub id: Option<Range<usize>>,
    /// The method: a string.
    pub method: Option<Range<usize>>,
    /// The parameters: any value, usually an object.
    pub params: Option<Range<usize>>,
    /// The result: any value.
    pub result: Option<Range<usize>>,
    /// The error: any value.
    pub error: Option<Range<usize>>,
    /// The ids and tokens in `params`.
    pub tokens: Tokens,
    /// The nesting of its values, and the properties of its numbers.
    pub measure: Measure,
    /// The task that `params` ask for.
    pub task: Task,
}

/// The member `params.task` (MCP). With it, the request is executed later, and its result is requested with the name of
/// a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// The member is absent.
    #[default]
    None,
    /// The member is present: its range includes the name and one comma, so that removing it leaves a valid object.
    Member(Range<usize>),
    /// The member occurs twice, or in another case.
    Ambiguous,
}

/// Ids and tokens in `params`. A value that is not a string, a number or `null` has no position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// `params._meta.progressToken`: the token for reports about the progress of a request (MCP).
    pub meta_progress: Option<Range<usize>>,
    /// `params.progressToken`: the token in `notifications/progress` (MCP).
    pub progress: Option<Range<usize>>,
    /// `params.requestId`: the id in `notifications/cancelled` (MCP).
    pub request_id: Option<Range<usize>>,
    /// `params.id`: the id in `$/cancelRequest` (LSP).
    pub cancelled_id: Option<Range<usize>>,
    /// `params.token`: the token in `$/progress` (LSP).
    pub token: Option<Range<usize>>,
    /// `params.workDoneToken`: the token for reports about the progress of a request (LSP).
    pub work_done: Option<Range<usize>>,
    /// `params.partialResultToken`: the token for partial results of a request (LSP).
    pub partial_result: Option<Range<usize>>,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message with a method and an id.
    Request,
    /// A message with a method and without an id.
    Notification,
    /// A message with a result or an error.
    Response,
}

impl Message {
    /// The kind of the message.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match (&self.method, &self.id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, _) => Kind::Response,
        }
    }

    /// Whether every program replies to the message, with its id: it is a request, and its id is not `null`, which some
    /// programs treat as absent.
    #[must_use]
    pub fn is_replied_to(&self, frame: &[u8]) -> bool {
        let id = self.id.clone().and_then(|place| frame.get(place));
        self.kind() == Kind::Request && id.is_some_and(|id| id != b"null")
    }

    /// Whether the message has the version of JSON-RPC 2.0. Some programs omit the version in their messages. A program
    /// may ignore a message without it.
    #[must_use]
    pub fn is_version_2(&self, frame: &[u8]) -> bool {
        let written = self.version.clone().and_then(|place| frame.get(place));
        written.is_some_and(|written| is_string(written, "2.0"))
    }

    /// Whether the method is `name`. Escapes are decoded.
    #[must_use]
    pub fn is_method(&self, frame: &[u8], name: &str) -> bool {
        let written = self.method.clone().and_then(|place| frame.get(place));
        written.is_some_and(|written| is_string(written, name))
    }

    /// Whether the method cancels a request. Case, parameters and an id are ignored, because a program may parse the
    /// message less strictly.
    #[must_use]
    pub fn is_cancel(&self, frame: &[u8]) -> bool {
        self.is_method_like(frame, &CANCELS)
    }

    /// Whether the method reports progress. Case, parameters and an id are ignored, as in [`Self::is_cancel`].
    #[must_use]
    pub fn is_progress(&self, frame: &[u8]) -> bool {
        self.is_method_like(frame, &REPORTS)
    }

    /// Whether the method is one of `names` for a program that ignores case.
    #[must_use]
    pub fn is_method_like(&self, frame: &[u8], names: &[&str]) -> bool {
        let written = self.method.clone().and_then(|place| frame.get(place));
        written
            .is_some_and(|written| names.iter().any(|name| is_string_ignoring_case(written, name)))
    }

    /// The id of the request that this notification cancels (MCP, LSP).
    #[must_use]
    pub fn cancels(&self, frame: &[u8]) -> Option<&Range<usize>> {
        self.about(frame, [Dialect::Mcp.cancel(), Dialect::Lsp.cancel()], |tokens| {
            [&tokens.request_id, &tokens.cancelled_id]
        })
    }

    /// Whether a request that this notification cancels must still be answered. LSP requires a reply, MCP forbids it.
    #[must_use]
    pub fn cancels_with_reply(&self, frame: &[u8]) -> bool {
        !self.is_method(frame, Dialect::Mcp.cancel())
    }

    /// The token of the request whose progress this notification reports (MCP, LSP).
    #[must_use]
    pub fn reports(&self, frame: &[u8]) -> Option<&Range<usize>> {
        self.about(frame, REPORTS, |tokens| [&tokens.progress, &tokens.token])
    }

    /// The token or id for the method of this notification.
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

/// The methods by which a client cancels a request or the work with a token (MCP, LSP).
const CANCELS: [&str; 3] =
    ["notifications/cancelled", "$/cancelRequest", "window/workDoneProgress/cancel"];

/// The methods that report progress (MCP, LSP).
const REPORTS: [&str; 2] = ["notifications/progress", "$/progress"];

/// The protocol on top of JSON-RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// The Model Context Protocol.
    Mcp,
    /// The Language Server Protocol.
    Lsp,
}

impl Dialect {
    /// The method that cancels a request.
    pub(super) const fn cancel(self) -> &'static str {
        match self {
            Self::Mcp => "notifications/cancelled",
            Self::Lsp => "$/cancelRequest",
        }
    }
}
