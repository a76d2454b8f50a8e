//! The head of a reply.

use fields::{Fields, Value, http1, known};

use super::grammar::{elements, text_length};
use super::head::{Found, KEPT_BYTES, KEPT_FIELDS};
use super::semantics::{self, Connection, Version};
use super::{BodyKind, Limits, Method, Refusal, Upgrades};

/// The properties of the request that determine the framing of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// The method of the request.
    pub method: Method,
    /// The protocols that the request offered with `Upgrade`.
    pub upgrades: Upgrades,
}

/// A reply without its body. The parsed head is copied into this value, which can be reused for many heads without
/// allocation.
#[derive(Debug)]
pub struct ReplyHead {
    /// The status line without its line end.
    pub(super) line: Vec<u8>,
    /// The status, 100 to 999. A status of 600 or more is invalid and treated as 500 (RFC 9110 §15).
    pub status: u16,
    /// The version of the reply.
    pub version: Version,
    /// The fields of the head, in their order and spelling.
    pub fields: Fields,
    /// The body after the head.
    pub body: BodyKind,
    /// Whether the head has exactly one length, in canonical form.
    pub(super) length_is_plain: bool,
    /// The connection options of the reply.
    pub connection: Connection,
    /// Whether the head describes a body although the status allows none.
    has_forbidden_body_fields: bool,
    /// Whether the reply comes from a server and is forwarded. Otherwise the daemon generated it.
    pub(super) is_forwarded: bool,
    /// Whether the head has a `Date`.
    pub(super) is_dated: bool,
}

impl Default for ReplyHead {
    /// Creates an empty value, into which a head can be read.
    fn default() -> Self {
        Self {
            line: Vec::new(),
            status: 0,
            version: Version::Http11,
            fields: Fields::headers(),
            body: BodyKind::None,
            length_is_plain: false,
            connection: Connection::default(),
            has_forbidden_body_fields: false,
            is_forwarded: true,
            is_dated: false,
        }
    }
}

impl ReplyHead {
    /// Parses the head that [`HeadScan`](super::HeadScan) found. `head` is exactly this head. The previous content is
    /// replaced.
    ///
    /// # Errors
    /// If the head violates a rule or exceeds a limit. In this case the content is undefined.
    pub fn read(
        &mut self,
        head: &[u8],
        found: &Found,
        asked: RequestInfo,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        self.reset();
        if found.head.start > 0 {
            return Err(Refusal::StatusLine);
        }
        let (line, lines) = found.split(head);
        self.version = Version::read(line.get(..8).ok_or(Refusal::StatusLine)?)?;
        self.status = status(&line[8..])?;
        self.line.extend_from_slice(line);
        self.fields.set_limits(limits.of_fields());
        http1::copy(&mut self.fields, lines).map_err(|error| semantics::reason_of(error, lines))?;
        self.connection = semantics::connection(&self.fields, self.version)?;
        self.read_body(asked, limits)
    }

    /// Removes the content, and frees memory that most heads do not need.
    pub fn clear(&mut self) {
        self.reset();
        self.fields.recycle(KEPT_FIELDS, KEPT_BYTES);
        self.line.shrink_to(KEPT_BYTES);
    }

    /// Removes the content and keeps the memory. All fields are listed, so that the compiler requires new fields to be
    /// handled here. `fields` is not cleared, because the copy of the next lines replaces it.
    fn reset(&mut self) {
        let Self {
            line,
            status,
            version,
            fields: _,
            body,
            length_is_plain,
            connection,
            has_forbidden_body_fields,
            is_forwarded,
            is_dated,
        } = self;
        line.clear();
        (*is_forwarded, *is_dated) = (true, false);
        (*status, *version) = (0, Version::Http11);
        (*body, *length_is_plain, *has_forbidden_body_fields) = (BodyKind::None, false, false);
        *connection = Connection::default();
    }

    fn read_body(&mut self, asked: RequestInfo, limits: &Limits) -> Result<(), Refusal> {
        let framing = semantics::framing(&self.fields, self.version)?;
        self.length_is_plain = framing.is_some_and(|framing| framing.is_plain);
        let framing = framing.map(|framing| framing.body);
        if self.status == 101 {
            let protocols = self.fields.get_all(&known::UPGRADE).filter_map(Value::bytes);
            let is_asked = asked.upgrades.allow(protocols.flat_map(elements));
            if !is_asked || !self.connection.upgrade {
                return Err(Refusal::Switched);
            }
        }
        let none = matches!(self.status, 100..200 | 204 | 304) || asked.method == Method::Head;
        if none {
            // The framing fields of these replies do not announce a body. A server that sends a body anyway would have
            // it parsed as the next reply. Therefore a 1xx or 204 reply that describes a body ends the connection.
            self.has_forbidden_body_fields = matches!(self.status, 100..200 | 204)
                && !matches!(framing, None | Some(BodyKind::Length(0)));
            self.connection.keep_alive &= !self.has_forbidden_body_fields;
            self.body = BodyKind::None;
            return Ok(());
        }
        self.body = framing.unwrap_or(BodyKind::UntilEnd);
        self.connection.keep_alive &= self.body != BodyKind::UntilEnd;
        match self.body {
            BodyKind::Length(length) if length > limits.body => Err(Refusal::BodyTooLong),
            _ => Ok(()),
        }
    }

    /// Whether another reply follows this one: its status is 1xx, but not 101.
    #[must_use]
    pub const fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// Whether the head describes a body although its status allows none: [`Refusal::Bodiless`]. The reply is forwarded
    /// without a body, and the connection is closed.
    #[must_use]
    pub const fn has_forbidden_body(&self) -> bool {
        self.has_forbidden_body_fields
    }

    /// The status as recipients interpret it: an invalid status of 600 or more is a 500.
    #[must_use]
    pub const fn effective_status(&self) -> u16 {
        if self.status < 600 { self.status } else { 500 }
    }

    /// Whether a `Date` must be added, after [`Self::prepare`] (RFC 9110 §6.6.1).
    #[must_use]
    pub const fn lacks_date(&self) -> bool {
        self.status >= 200 && !self.is_dated
    }

    /// Whether the head may describe a body that is not sent: a reply to HEAD, or 304.
    pub(super) fn describes_body(&self) -> bool {
        self.body == BodyKind::None && !matches!(self.status, 100..200 | 204)
    }

    /// Whether the head has a length.
    #[must_use]
    pub fn has_length(&self) -> bool {
        self.fields.contains(&known::CONTENT_LENGTH)
    }

    /// The reason phrase after the status, unchanged.
    #[must_use]
    pub fn reason(&self) -> &[u8] {
        self.line.get(13..).unwrap_or_default()
    }
}

/// Parses the status after the version: a blank, three digits, a blank and any text. Many servers omit the last blank
/// if the reason is empty.
fn status(rest: &[u8]) -> Result<u16, Refusal> {
    let [b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..] = rest else {
        return Err(Refusal::StatusLine);
    };
    if !matches!(reason, [] | [b' ', ..]) || text_length(reason) < reason.len() {
        return Err(Refusal::StatusLine);
    }
    Ok([a, b, c].into_iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
}
