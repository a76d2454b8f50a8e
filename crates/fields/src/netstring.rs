//! Netstrings: `LENGTH:BYTES,` for each name and each value, alternately. Also the head of SCGI: one netstring of names
//! and values, each terminated by NUL.

use block::Slice;

use crate::codec::{
    DecodeError, DecodeReason, EncodeError, EncodeReason, push_count, whole, written,
};
use crate::set::FieldSink;
use crate::{Fields, Lookup, Value};

/// The maximum number of digits of a length. A number with more digits exceeds the limits of a set.
const DIGITS_MAX: usize = 10;

/// Appends two netstrings for each field.
///
/// # Errors
/// If a field is NULL.
///
/// ```
/// use fields::{Fields, netstring};
///
/// let mut out = Vec::new();
/// netstring::encode(&Fields::from_iter([("at", "17")]), &mut out)?;
/// assert_eq!(out, b"2:at,2:17,");
/// # Ok::<(), fields::EncodeError>(())
/// ```
pub fn encode(fields: &impl Lookup, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    written(out, |out| {
        for (index, field) in fields.fields().enumerate() {
            let Some(value) = field.value.bytes() else {
                return Err(EncodeError { index, reason: EncodeReason::Null });
            };
            push(out, field.name);
            push(out, value);
        }
        Ok(())
    })
}

/// Adds a field for each pair of netstrings.
///
/// # Errors
/// If a netstring is invalid, or a name has no value. In this case nothing is added.
pub fn decode(fields: &mut Fields, bytes: &[u8]) -> Result<(), DecodeError> {
    whole(fields, |fields| read(fields, bytes))
}

/// Like [`decode`], but without copying: `fields` is cleared, keeps the block, and indexes names and values in it. If
/// the record is a small part of a large block, it is copied instead.
///
/// # Errors
/// As for [`decode`]. In this case `fields` is empty.
pub fn adopt(fields: &mut Fields, record: &Slice) -> Result<(), DecodeError> {
    fields.adopt_record(record, read)
}

fn read(fields: &mut FieldSink<'_>, bytes: &[u8]) -> Result<(), DecodeError> {
    let mut place = 0;
    while place < bytes.len() {
        let start = place;
        let name = take(bytes, &mut place)?;
        let value = take(bytes, &mut place)?;
        let added = fields.add(name, value.into());
        added.map_err(|error| DecodeError::at(start, DecodeReason::Limit(error)))?;
    }
    Ok(())
}

/// Appends one netstring with all names and values, each terminated by NUL.
///
/// # Errors
/// If a field is NULL, a name or value contains NUL, or a name is empty.
pub fn encode_scgi(fields: &impl Lookup, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut length = 0;
    for (index, field) in fields.fields().enumerate() {
        let reason = match field.value {
            Value::Null => EncodeReason::Null,
            _ if field.name.is_empty() || field.name.contains(&0) => EncodeReason::Name,
            value if value.bytes_or_empty().contains(&0) => EncodeReason::Value,
            value => {
                length += field.name.len() + value.bytes_or_empty().len() + 2;
                continue;
            }
        };
        return Err(EncodeError { index, reason });
    }
    push_count(out, length);
    out.push(b':');
    for field in fields.fields() {
        for part in [field.name, b"\0", field.value.bytes_or_empty(), b"\0"] {
            out.extend_from_slice(part);
        }
    }
    out.push(b',');
    Ok(())
}

/// Adds the fields of one netstring of names and values that are terminated by NUL. Returns the position after the
/// netstring, where the body begins. The body is not read.
///
/// # Errors
/// If the netstring is invalid. In this case nothing is added.
pub fn decode_scgi(fields: &mut Fields, bytes: &[u8]) -> Result<usize, DecodeError> {
    let mut end = 0;
    let inside = take(bytes, &mut end)?;
    let base = end - 1 - inside.len();
    whole(fields, |fields| {
        let mut place = 0;
        while place < inside.len() {
            let start = base + place;
            let name = until_nul(inside, &mut place, base)?;
            let value = until_nul(inside, &mut place, base)?;
            if name.is_empty() {
                return Err(DecodeError::at(start, DecodeReason::Name));
            }
            let added = fields.add(name, value.into());
            added.map_err(|error| DecodeError::at(start, DecodeReason::Limit(error)))?;
        }
        Ok(())
    })?;
    Ok(end)
}

fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    push_count(out, bytes.len());
    out.push(b':');
    out.extend_from_slice(bytes);
    out.push(b',');
}

/// Parses the netstring at `place`, and moves `place` to its end.
fn take<'a>(bytes: &'a [u8], place: &mut usize) -> Result<&'a [u8], DecodeError> {
    let fail = |place, reason| Err(DecodeError::at(place, reason));
    let rest = bytes.get(*place..).unwrap_or_default();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits) {
        _ if digits > DIGITS_MAX || digits > 1 && rest[0] == b'0' => {
            return fail(*place, DecodeReason::Length);
        }
        None => return fail(bytes.len(), DecodeReason::Unended),
        Some(b':') if digits > 0 => {}
        Some(_) => return fail(*place + digits, DecodeReason::Length),
    }
    let length = rest[..digits].iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let start = *place + digits + 1;
    let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
    match end.and_then(|end| Some((end, bytes.get(end)?))) {
        Some((end, b',')) => {
            *place = end + 1;
            Ok(&bytes[start..end])
        }
        Some((end, _)) => fail(end, DecodeReason::Mark),
        None => fail(bytes.len(), DecodeReason::Unended),
    }
}

fn until_nul<'a>(bytes: &'a [u8], place: &mut usize, base: usize) -> Result<&'a [u8], DecodeError> {
    let start = *place;
    let length = bytes[start..].iter().position(|&byte| byte == 0);
    let ended = length.ok_or_else(|| DecodeError::at(base + bytes.len(), DecodeReason::Unended));
    let end = start + ended?;
    *place = end + 1;
    Ok(&bytes[start..end])
}
