//! The head of a reply.

use fields::{Fields, Value, http1, known};

use super::grammar::{elements, text_length};
use super::head::{Found, KEPT_BYTES, KEPT_FIELDS};
use super::semantics::{self, Connection, Version};
use super::{BodyKind, Limits, Method, Refusal, Upgrades};

/// What the reply answers, as far as its framing depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The method of the request.
    pub method: Method,
    /// The protocols that it asked for instead.
    pub upgrades: Upgrades,
}

/// A reply without its body. What was read is copied here, so that one place serves for one head after
/// the other and allocates nothing.
#[derive(Debug)]
pub struct ReplyHead {
    /// The status line, without its end.
    pub(super) line: Vec<u8>,
    /// The status, 100 to 999. Those from 600 are invalid and treated as a 500 (RFC 9110 §15).
    pub status: u16,
    /// The version that the server spoke.
    pub version: Version,
    /// The lines of the head, in their order and spelling.
    pub fields: Fields,
    /// What is behind the head.
    pub body: BodyKind,
    /// Its length is told by one field in canonical spelling.
    pub(super) length_is_plain: bool,
    /// What becomes of the connection.
    pub connection: Connection,
    /// It tells of a body that it cannot have.
    is_odd: bool,
    /// A server made it, and we forward it; otherwise it was made here.
    pub(super) is_forwarded: bool,
    /// It says when it was made.
    pub(super) is_dated: bool,
}

impl Default for ReplyHead {
    /// A place for a head that is still to be read.
    fn default() -> Self {
        Self {
            line: Vec::new(),
            status: 0,
            version: Version::Http11,
            fields: Fields::headers(),
            body: BodyKind::None,
            length_is_plain: false,
            connection: Connection::default(),
            is_odd: false,
            is_forwarded: true,
            is_dated: false,
        }
    }
}

impl ReplyHead {
    /// Reads the head that [`HeadScan`](super::HeadScan) found, which is all of `head`, in place of
    /// what was here before.
    ///
    /// # Errors
    /// When it breaks a rule or passes a limit. What is here then means nothing.
    pub fn read(
        &mut self,
        head: &[u8],
        found: &Found,
        asked: Asked,
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

    /// Forgets what was read, and memory beyond what most heads need.
    pub fn clear(&mut self) {
        self.reset();
        self.fields.recycle(KEPT_FIELDS, KEPT_BYTES);
        self.line.shrink_to(KEPT_BYTES);
    }

    /// Forgets what was read, and nothing of the memory. Each field is named, so that one which is added
    /// is not forgotten; the lines in `fields` are replaced as a whole by whoever copies others there.
    fn reset(&mut self) {
        let Self {
            line,
            status,
            version,
            fields: _,
            body,
            length_is_plain,
            connection,
            is_odd,
            is_forwarded,
            is_dated,
        } = self;
        line.clear();
        (*is_forwarded, *is_dated) = (true, false);
        (*status, *version) = (0, Version::Http11);
        (*body, *length_is_plain, *is_odd) = (BodyKind::None, false, false);
        *connection = Connection::default();
    }

    fn read_body(&mut self, asked: Asked, limits: &Limits) -> Result<(), Refusal> {
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
            // What a server says of the body of these is about another reply; one that sends it all
            // the same would have it read as the next reply, so it is not trusted with another.
            self.is_odd = matches!(self.status, 100..200 | 204)
                && !matches!(framing, None | Some(BodyKind::Length(0)));
            self.connection.keep_alive &= !self.is_odd;
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

    /// Another reply follows this one: its status is 1xx, but not 101.
    #[must_use]
    pub const fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// Whether it tells of a body though one of its status has none: [`Refusal::Bodiless`]. It goes on
    /// without, and the connection does not.
    #[must_use]
    pub const fn tells_of_a_body_in_vain(&self) -> bool {
        self.is_odd
    }

    /// The status as others understand it: an invalid one, from 600, is a 500.
    #[must_use]
    pub const fn understood_status(&self) -> u16 {
        if self.status < 600 { self.status } else { 500 }
    }

    /// Whether it is to be given the time when it was received, after [`Self::prepare`] (RFC 9110 §6.6.1).
    #[must_use]
    pub const fn lacks_date(&self) -> bool {
        self.status >= 200 && !self.is_dated
    }

    /// Whether the body may be told by its fields, although there is none behind this head: of
    /// HEAD and 304.
    pub(super) fn describes_body(&self) -> bool {
        self.body == BodyKind::None && !matches!(self.status, 100..200 | 204)
    }

    /// Whether the length of its body is told.
    #[must_use]
    pub fn has_length(&self) -> bool {
        self.fields.contains(&known::CONTENT_LENGTH)
    }

    /// The reason behind the status, as it came.
    #[must_use]
    pub fn reason(&self) -> &[u8] {
        self.line.get(13..).unwrap_or_default()
    }
}

/// The status in what follows the version: a blank, three digits, a blank and any text. Many
/// servers leave the last blank away where the reason is empty.
fn status(rest: &[u8]) -> Result<u16, Refusal> {
    let [b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..] = rest else {
        return Err(Refusal::StatusLine);
    };
    if !matches!(reason, [] | [b' ', ..]) || text_length(reason) < reason.len() {
        return Err(Refusal::StatusLine);
    }
    Ok([a, b, c].into_iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
}
