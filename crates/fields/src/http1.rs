//! The lines of an HTTP/1 head: indexed in the block in which they were received, and sent without copying.
//!
//! The parser is stricter than most (RFC 9112 §5 without its allowances): each line ends with CR LF, a name is a token
//! with the colon immediately after it, a value contains no control character except tabs, and no line continues the
//! previous one. Therefore every recipient reads an accepted head in the same way.

use std::fmt;
use std::io::IoSlice;

use block::Slice;

use crate::codec::{EncodeError, EncodeReason};
use crate::grammar::{is_token, is_value, token_end, trimmed, value_end};
use crate::name::Tag;
use crate::set::{Place, Run};
use crate::{FieldError, Fields, Limits, Lookup};

/// Fields that belong to one connection or determine where a message ends. They are generated for each message and
/// cannot be set otherwise.
pub const GENERATED_FIELDS: [&str; 10] = [
    "connection",
    "content-length",
    // A sender that waits for 100 (Continue) waits for it on this connection.
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a field with this name is generated for each message.
#[must_use]
pub fn is_generated(name: &[u8]) -> bool {
    GENERATED_FIELDS.iter().any(|ours| name.eq_ignore_ascii_case(ours.as_bytes()))
}

/// Why header lines are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadReason {
    /// A name is empty or contains a byte that is not allowed in a token.
    Name,
    /// A line begins with a blank: it continues the previous line.
    Continued,
    /// A value contains a control character.
    Control,
    /// A line ends with LF without CR.
    LineFeed,
    /// A CR is not followed by LF.
    CarriageReturn,
    /// The last line has no end.
    Unended,
    /// A limit on the number or the length of fields was exceeded.
    Limit(FieldError),
}

/// An error in header lines: its reason and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadError {
    /// The reason.
    pub reason: HeadReason,
    /// The position of the invalid byte, counted from 0.
    pub byte: usize,
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            HeadReason::Name => f.write_str("a name that is empty or not a token")?,
            HeadReason::Continued => f.write_str("a line that continues the one before")?,
            HeadReason::Control => f.write_str("a control character in a value")?,
            HeadReason::LineFeed => f.write_str("a line feed without a carriage return")?,
            HeadReason::CarriageReturn => f.write_str("a carriage return without a line feed")?,
            HeadReason::Unended => f.write_str("a line that does not end")?,
            HeadReason::Limit(error) => error.fmt(f)?,
        }
        write!(f, " at byte {}", self.byte)
    }
}

impl std::error::Error for HeadError {}

/// Indexes header lines without copying. Each line is `name: value` CR LF; the request line and the empty line are not
/// included. The set keeps the block, except if the block is larger than 4 KiB and the lines are less than half of it;
/// then the lines are copied. `set` is cleared and reused, and its limits apply.
///
/// # Errors
/// If the lines are invalid. In this case `set` is empty.
///
/// ```
/// use fields::{Fields, http1, known};
///
/// let lines = block::Slice::copy_of(b"Host: example.org\r\nx-a:1\r\n");
/// let mut fields = Fields::headers();
/// http1::adopt(&mut fields, lines)?;
/// assert_eq!(fields.get(&known::HOST).unwrap().text(), Some("example.org"));
/// assert_eq!(http1::slices(&fields).len(), 1);
/// # Ok::<(), http1::HeadError>(())
/// ```
pub fn adopt(set: &mut Fields, lines: Slice) -> Result<(), HeadError> {
    let limits = set.limits();
    fits(set, &lines)?;
    set.adopt_lines(lines, |set, lines| read(set, lines, limits))
}

/// Like [`adopt`], but copies the lines into the memory of the set. For a set that is reused, copying is cheaper than
/// counting references to a block, except for lines of many KiB.
///
/// # Errors
/// If the lines are invalid. In this case `set` is empty.
///
/// ```
/// use fields::{Fields, http1, known};
///
/// let mut fields = Fields::headers();
/// http1::copy(&mut fields, b"Host: example.org\r\nx-a:1\r\n")?;
/// assert_eq!(fields.get(&known::HOST).unwrap().text(), Some("example.org"));
/// # Ok::<(), http1::HeadError>(())
/// ```
pub fn copy(set: &mut Fields, lines: &[u8]) -> Result<(), HeadError> {
    let limits = set.limits();
    fits(set, lines)?;
    set.copy_lines(lines, |set, lines| read(set, lines, limits))
}

/// Rejects lines that are longer than the byte limit of the set.
fn fits(set: &mut Fields, lines: &[u8]) -> Result<(), HeadError> {
    let bytes = set.limits().bytes;
    if lines.len() <= bytes as usize {
        return Ok(());
    }
    set.clear();
    Err(HeadError { reason: HeadReason::Limit(FieldError::Bytes(bytes)), byte: bytes as usize })
}

fn read(set: &mut Fields, bytes: &[u8], limits: Limits) -> Result<(), HeadError> {
    let refuse = |reason, byte| Err(HeadError { reason, byte });
    let mut start = 0;
    while start < bytes.len() {
        let name_end = token_end(bytes, start);
        let byte = bytes.get(name_end);
        if byte != Some(&b':') || name_end == start {
            return refuse(wrong_name(name_end == start, byte), name_end);
        }
        let mut value = name_end + 1;
        while matches!(bytes.get(value), Some(b' ' | b'\t')) {
            value += 1;
        }
        let line = value_end(bytes, value);
        match bytes.get(line..) {
            Some([b'\r', b'\n', ..]) => {}
            rest => return refuse(wrong_end(rest.unwrap_or_default()), line),
        }
        let mut end = line;
        while end > value && matches!(bytes[end - 1], b' ' | b'\t') {
            end -= 1;
        }
        let name = Place { start, length: name_end - start };
        let value = Place { start: value, length: end - value };
        if let Err(error) = within(limits, set.len(), name.length, value.length) {
            return refuse(HeadReason::Limit(error), start);
        }
        start = line + 2;
        set.adopt_line(name, value, start, Tag::of(&bytes[name.start..name_end]));
    }
    Ok(())
}

const fn wrong_name(empty: bool, byte: Option<&u8>) -> HeadReason {
    match byte {
        None => HeadReason::Unended,
        Some(b' ' | b'\t') if empty => HeadReason::Continued,
        Some(_) => HeadReason::Name,
    }
}

const fn wrong_end(rest: &[u8]) -> HeadReason {
    match rest {
        [] | [b'\r'] => HeadReason::Unended,
        [b'\n', ..] => HeadReason::LineFeed,
        [b'\r', ..] => HeadReason::CarriageReturn,
        _ => HeadReason::Control,
    }
}

const fn within(
    limits: Limits,
    fields: usize,
    name: usize,
    value: usize,
) -> Result<(), FieldError> {
    if fields >= limits.fields as usize {
        return Err(FieldError::Fields(limits.fields));
    }
    if name > limits.name as usize {
        return Err(FieldError::NameLength(limits.name));
    }
    if value > limits.value as usize {
        return Err(FieldError::ValueLength(limits.value));
    }
    Ok(())
}

/// Appends a line for each field, except NULL fields. If the set contains lines, contiguous runs are copied.
///
/// # Errors
/// If a name or a value is not allowed in a line. In this case `out` is unchanged.
pub fn encode(fields: &Fields, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if fields.has_lines() {
        fields.runs().for_each(|run| out.extend_from_slice(run.bytes()));
        return Ok(());
    }
    encode_any(fields, out)
}

/// Like [`encode`], but for any [`Lookup`].
///
/// # Errors
/// If a name or a value is not allowed in a line. In this case `out` is unchanged.
pub fn encode_any(fields: &impl Lookup, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let before = out.len();
    for (index, field) in fields.fields().enumerate() {
        let Some(value) = field.value.bytes() else { continue };
        let value = trimmed(value);
        let reason = match (is_token(field.name), is_value(value)) {
            (false, _) => EncodeReason::Name,
            (_, false) => EncodeReason::Value,
            _ => {
                for part in [field.name, b": ", value, b"\r\n"] {
                    out.extend_from_slice(part);
                }
                continue;
            }
        };
        out.truncate(before);
        return Err(EncodeError { index, reason });
    }
    Ok(())
}

/// The lines in memory of a set that was created by [`Fields::headers`]. For other sets there are none. An unchanged
/// adopted set has one part.
pub fn io_slices(fields: &Fields) -> impl Iterator<Item = IoSlice<'_>> {
    fields.runs().map(|run| IoSlice::new(run.bytes()))
}

/// The lines as counted slices, which can be queued. Parts of the adopted block are not copied.
#[must_use]
pub fn slices(fields: &Fields) -> Vec<Slice> {
    let slice = |run| match run {
        Run::Adopted { head, start, end } => head.slice(start..end),
        Run::Own(bytes) => Slice::copy_of(bytes),
    };
    fields.runs().map(slice).collect()
}

#[cfg(test)]
mod tests;
