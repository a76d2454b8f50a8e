//! The name-value pairs of FastCGI (specification 1.0, §3.4): the lengths of name and value, then name and value. A
//! length up to 127 takes one byte, a longer one takes four bytes with the highest bit set.

use block::Slice;

use crate::codec::{DecodeError, DecodeReason, EncodeError, EncodeReason, whole, written};
use crate::set::FieldSink;
use crate::{Fields, Lookup};

/// Appends the pair of each field.
///
/// # Errors
/// If a field is NULL, or a length does not fit in 31 bits.
pub fn encode(fields: &impl Lookup, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    written(out, |out| {
        for (index, field) in fields.fields().enumerate() {
            let fail = |reason| EncodeError { index, reason };
            let value = field.value.bytes().ok_or_else(|| fail(EncodeReason::Null))?;
            push_length(out, field.name.len()).ok_or_else(|| fail(EncodeReason::Name))?;
            push_length(out, value.len()).ok_or_else(|| fail(EncodeReason::Value))?;
            out.extend_from_slice(field.name);
            out.extend_from_slice(value);
        }
        Ok(())
    })
}

/// Adds a field for each pair.
///
/// # Errors
/// If the last pair is incomplete. In this case nothing is added.
///
/// ```
/// use fields::{Fields, fastcgi};
///
/// let mut fields = Fields::new();
/// fastcgi::decode(&mut fields, b"\x06\x03METHODGET")?;
/// assert_eq!(fields.to_string(), "METHOD: GET\n");
/// # Ok::<(), fields::DecodeError>(())
/// ```
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
    let unended = DecodeError::at(bytes.len(), DecodeReason::Unended);
    let mut rest = bytes;
    while !rest.is_empty() {
        let start = bytes.len() - rest.len();
        let name = take_length(&mut rest).ok_or(unended)?;
        let value = take_length(&mut rest).ok_or(unended)?;
        let (name, behind) = rest.split_at_checked(name).ok_or(unended)?;
        let (value, behind) = behind.split_at_checked(value).ok_or(unended)?;
        let added = fields.add(name, value.into());
        added.map_err(|error| DecodeError::at(start, DecodeReason::Limit(error)))?;
        rest = behind;
    }
    Ok(())
}

/// The bit that marks a length of four bytes.
const LONG: u32 = 1 << 31;

fn push_length(out: &mut Vec<u8>, length: usize) -> Option<()> {
    match u8::try_from(length) {
        Ok(short @ 0..128) => out.push(short),
        _ => {
            let long = u32::try_from(length).ok().filter(|length| length & LONG == 0)?;
            out.extend_from_slice(&(long | LONG).to_be_bytes());
        }
    }
    Some(())
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let (&first, behind) = rest.split_first()?;
    if first < 128 {
        *rest = behind;
        return Some(first.into());
    }
    let (long, behind) = rest.split_first_chunk::<4>()?;
    *rest = behind;
    usize::try_from(u32::from_be_bytes(*long) & !LONG).ok()
}
