//! Where the parts of a message are, and what it is by them.

use std::ops::Range;

use super::json::{is_alike, is_string};
use super::measure::Measure;

/// Bytes that an id or a token may have, as it is written.
pub const ID_MAX: usize = 256;

const _: () = assert!(ID_MAX == 256, "the text of `Fault::IdLong` says it");

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
    /// How deep its values are nested, and its numbers.
    pub measure: Measure,
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
        written.is_some_and(|written| is_string(written, "2.0"))
    }

    /// Whether its method is this one, however it is written.
    #[must_use]
    pub fn is_method(&self, frame: &[u8], name: &str) -> bool {
        let written = self.method.clone().and_then(|place| frame.get(place));
        written.is_some_and(|written| is_string(written, name))
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
        written.is_some_and(|written| names.iter().any(|name| is_alike(written, name)))
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
    pub(super) const fn cancel(self) -> &'static str {
        match self {
            Self::Mcp => "notifications/cancelled",
            Self::Lsp => "$/cancelRequest",
        }
    }
}
