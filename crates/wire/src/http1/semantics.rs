//! The meaning of the fields of a head for the message and the connection, for both directions.

use fields::{FieldError, Fields, NameSet, Value, http1::HeadReason, known};

use super::grammar::elements;
use super::{BodyKind, Refusal};

/// The fields that determine the length of a body.
pub(super) const OF_BODY: NameSet =
    NameSet::of(&[&known::CONTENT_LENGTH, &known::TRANSFER_ENCODING]);

/// The version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

impl Version {
    /// Parses the version in these 8 bytes. A minor version above 1 is treated as 1.1 (RFC 9110 §6.2).
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        match bytes {
            b"HTTP/1.0" => Ok(Self::Http10),
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1'..=b'9'] => Ok(Self::Http11),
            _ => Err(Refusal::Version),
        }
    }
}

/// The connection options of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Whether the sender keeps the connection open after the message.
    pub keep_alive: bool,
    /// Whether the option `upgrade` is present.
    pub upgrade: bool,
    /// Whether `Connection` names fields that must not be forwarded.
    pub(super) names: bool,
}

/// The reason for rejecting invalid header lines.
pub(super) fn reason_of(error: fields::http1::HeadError, lines: &[u8]) -> Refusal {
    match error.reason {
        HeadReason::Name if lines.get(error.byte) == Some(&b'\r') => Refusal::NoColon,
        HeadReason::Name => Refusal::FieldName,
        HeadReason::Continued => Refusal::Folded,
        HeadReason::Control => Refusal::Control,
        HeadReason::LineFeed => Refusal::LineFeed,
        HeadReason::CarriageReturn => Refusal::CarriageReturn,
        // The scan has already found the end of each line.
        HeadReason::Unended => Refusal::CarriageReturn,
        HeadReason::Limit(FieldError::Fields(_)) => Refusal::TooManyFields,
        HeadReason::Limit(FieldError::Bytes(_)) => Refusal::HeadTooLong,
        HeadReason::Limit(_) => Refusal::FieldTooLong,
    }
}

/// Parses `Connection`.
pub(super) fn connection(fields: &Fields, version: Version) -> Result<Connection, Refusal> {
    let mut read = Connection { keep_alive: version == Version::Http11, ..Connection::default() };
    if !fields.contains(&known::CONNECTION) {
        return Ok(read);
    }
    let (mut close, mut keep) = (false, false);
    for value in fields.get_all(&known::CONNECTION).filter_map(Value::bytes) {
        for element in elements(value) {
            if element.eq_ignore_ascii_case(b"close") {
                close = true;
            } else if element.eq_ignore_ascii_case(b"keep-alive") {
                keep = true;
            } else if element.eq_ignore_ascii_case(b"upgrade") {
                read.upgrade = true;
            } else if is_essential(element) {
                return Err(Refusal::Connection);
            } else {
                read.names = true;
            }
        }
    }
    read.keep_alive = !close && (keep || version == Version::Http11);
    Ok(read)
}

/// Whether a field must not be named in `Connection`, because the message would have another meaning without it.
fn is_essential(name: &[u8]) -> bool {
    let essential: [&[u8]; 6] =
        [b"host", b"content-length", b"transfer-encoding", b"cookie", b"authorization", b"expect"];
    essential.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The length of a body, as determined by its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framing {
    pub(super) body: BodyKind,
    /// Whether the length occurs exactly once, in canonical form.
    pub(super) is_plain: bool,
}

/// Determines the length of the body from `Content-Length` and `Transfer-Encoding`. `None` if both are absent.
pub(super) fn framing(fields: &Fields, version: Version) -> Result<Option<Framing>, Refusal> {
    if !fields.may_have_any(OF_BODY) {
        return Ok(None);
    }
    let coded = fields.contains(&known::TRANSFER_ENCODING);
    let Some(first) = fields.get(&known::CONTENT_LENGTH) else {
        if !coded {
            return Ok(None);
        }
        let body = coding(fields, version)?;
        return Ok(Some(Framing { body, is_plain: false }));
    };
    if coded {
        return Err(Refusal::LengthAndCoding);
    }
    let length = length(first)?;
    let is_unique = fields.is_unique(&known::CONTENT_LENGTH);
    if !is_unique {
        for other in fields.get_all(&known::CONTENT_LENGTH).skip(1) {
            if self::length(other)? != length {
                return Err(Refusal::Lengths);
            }
        }
    }
    // The value is a valid number. Leading zeros and blanks in its line are not canonical.
    let is_plain = is_unique
        && matches!(first.bytes(), Some([b'0'] | [b'1'..=b'9', ..]))
        && fields.is_canonical_line(&known::CONTENT_LENGTH);
    Ok(Some(Framing { body: BodyKind::Length(length), is_plain }))
}

fn coding(fields: &Fields, version: Version) -> Result<BodyKind, Refusal> {
    if version == Version::Http10 {
        return Err(Refusal::CodingVersion);
    }
    if !fields.is_unique(&known::TRANSFER_ENCODING) {
        return Err(Refusal::CodingRepeated);
    }
    let value = fields.get(&known::TRANSFER_ENCODING).and_then(Value::bytes).unwrap_or_default();
    if value.eq_ignore_ascii_case(b"chunked") {
        Ok(BodyKind::Chunked)
    } else if value.contains(&b',') {
        Err(Refusal::CodingRepeated)
    } else {
        Err(Refusal::Coding)
    }
}

/// Parses a length: digits only, at most 2⁶³ − 1, because some recipients parse it as a signed number.
pub(super) fn length(value: Value<'_>) -> Result<u64, Refusal> {
    let digits = value.bytes().unwrap_or_default();
    let mut number: u64 = 0;
    for &digit in digits {
        let value = digit.wrapping_sub(b'0');
        let next = number.checked_mul(10).and_then(|ten| ten.checked_add(u64::from(value)));
        number = next.filter(|_| value < 10).ok_or(Refusal::Length)?;
    }
    let fits = !digits.is_empty() && number <= i64::MAX.unsigned_abs();
    if fits { Ok(number) } else { Err(Refusal::Length) }
}
