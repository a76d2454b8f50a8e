//! The head of a reply.

use exchange::Slice;
use fields::{Fields, Limits as FieldLimits, http1, known};

use super::grammar::text_length;
use super::head::Found;
use super::semantics::{self, Connection, Version};
use super::{BodyKind, Limits, Method, Refusal};

/// What the reply answers, as far as its framing depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The method of the request.
    pub method: Method,
    /// It asked for another protocol.
    pub upgrade: bool,
}

/// A reply without its body.
#[derive(Debug)]
pub struct ReplyHead {
    pub(super) head: Slice,
    /// Bytes of the status line behind the version and its blank.
    pub(super) line_end: usize,
    /// The status, 100 to 599.
    pub status: u16,
    /// The version that the server spoke.
    pub version: Version,
    /// The lines of the head, in their order and spelling.
    pub fields: Fields,
    /// What is behind the head.
    pub body: BodyKind,
    /// What becomes of the connection.
    pub connection: Connection,
}

impl ReplyHead {
    /// Reads the head that [`HeadScan`](super::HeadScan) found, which is all of `head`.
    ///
    /// # Errors
    /// When it breaks a rule or passes a limit.
    pub fn read(
        head: Slice,
        found: &Found,
        asked: Asked,
        limits: &Limits,
    ) -> Result<Self, Refusal> {
        if found.head.start > 0 {
            return Err(Refusal::StatusLine);
        }
        let line = &head[..found.line];
        let version = Version::read(line.get(..8).ok_or(Refusal::StatusLine)?)?;
        let status = status(&line[8..])?;
        let line_end = found.line;
        let lines = head.slice(found.line + 2..head.len() - 2);
        let mut fields = Fields::pooled_headers().with_limits(FieldLimits {
            fields: limits.fields,
            bytes: u32::try_from(limits.head).unwrap_or(u32::MAX),
            ..FieldLimits::default()
        });
        if let Err(error) = http1::adopt(&mut fields, lines.clone()) {
            return Err(semantics::reason_of(error, &lines));
        }
        let connection = semantics::connection(&fields, version)?;
        let mut reply =
            Self { head, line_end, status, version, fields, body: BodyKind::None, connection };
        reply.read_body(asked, limits)?;
        Ok(reply)
    }

    fn read_body(&mut self, asked: Asked, limits: &Limits) -> Result<(), Refusal> {
        let framing = semantics::framing(&self.fields, self.version)?;
        if self.status == 101 && !(asked.upgrade && self.connection.upgrade) {
            return Err(Refusal::Switched);
        }
        let none = matches!(self.status, 100..200 | 204 | 304) || asked.method == Method::Head;
        if none {
            // What a server says of the body of these is about another reply; one that sends it all
            // the same would have it read as the next reply, so it is not trusted with another.
            let is_odd = matches!(self.status, 100..200 | 204)
                && !matches!(framing, None | Some(BodyKind::Length(0)));
            self.connection.keep_alive &= !is_odd;
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
        self.head.get(13..self.line_end).unwrap_or_default()
    }

    /// Gives the memory back to this thread's pool.
    pub fn recycle(self) {
        self.fields.give_back();
    }
}

/// The status in what follows the version: a blank, three digits, a blank and any text. Many
/// servers leave the last blank away where the reason is empty.
fn status(rest: &[u8]) -> Result<u16, Refusal> {
    let [b' ', a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..] = rest else {
        return Err(Refusal::StatusLine);
    };
    if !matches!(reason, [] | [b' ', ..]) || text_length(reason) < reason.len() {
        return Err(Refusal::StatusLine);
    }
    Ok([a, b, c].into_iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
}
