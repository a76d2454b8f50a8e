//! Values separated by tabs on one line, as in the text format of PostgreSQL's `COPY`: `\N` is NULL, and `\t`, `\n`,
//! `\r`, `\\` represent a tab, a line feed, a carriage return and a backslash. The line does not contain names; reader
//! and writer must use the same names.

use block::Slice;

use crate::codec::{DecodeError, DecodeReason, whole};
use crate::name::AsName;
use crate::set::FieldSink;
use crate::{FieldError, Fields, Lookup, Value};

/// Appends the values of all fields, without a line end.
pub fn encode(fields: &impl Lookup, out: &mut Vec<u8>) {
    for (index, field) in fields.fields().enumerate() {
        if index > 0 {
            out.push(b'\t');
        }
        let Some(value) = field.value.bytes() else {
            out.extend_from_slice(b"\\N");
            continue;
        };
        for &byte in value {
            match byte {
                b'\t' => out.extend_from_slice(b"\\t"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\\' => out.extend_from_slice(b"\\\\"),
                byte => out.push(byte),
            }
        }
    }
}

/// Adds a field for each of `names`, with the values of `line` in their order.
///
/// # Errors
/// If there are more or fewer values than names, or a backslash is followed by an unknown character. In this case
/// nothing is added.
///
/// ```
/// use fields::{Fields, Value, tsv};
///
/// let mut fields = Fields::new();
/// tsv::decode(&mut fields, ["at", "path", "user"], b"17\t/a\\tb\t\\N")?;
/// assert_eq!(fields.get("path"), Some(Value::Bytes(b"/a\tb")));
/// assert_eq!(fields.get("user"), Some(Value::Null));
/// # Ok::<(), fields::DecodeError>(())
/// ```
pub fn decode<N: AsName>(
    fields: &mut Fields,
    names: impl IntoIterator<Item = N>,
    line: &[u8],
) -> Result<(), DecodeError> {
    whole(fields, |fields| read(fields, names.into_iter(), line))
}

/// Like [`decode`], but without copying: `fields` is cleared, keeps the block, and indexes values in it. Names are
/// copied, and so are values with escapes. If the record is a small part of a large block, it is copied instead.
///
/// # Errors
/// As for [`decode`]. In this case `fields` is empty.
pub fn adopt<N: AsName>(
    fields: &mut Fields,
    names: impl IntoIterator<Item = N>,
    record: &Slice,
) -> Result<(), DecodeError> {
    fields.adopt_record(record, |fields, line| read(fields, names.into_iter(), line))
}

fn read<N: AsName>(
    fields: &mut FieldSink<'_>,
    mut names: impl Iterator<Item = N>,
    line: &[u8],
) -> Result<(), DecodeError> {
    let mut unescaped = Vec::new();
    let mut start = 0;
    let mut found = 0;
    // Without names, the line must be empty. With one name, an empty line is an empty value.
    let mut next = names.next();
    loop {
        let Some(name) = next else {
            if found == 0 && line.is_empty() {
                return Ok(());
            }
            let reason = DecodeReason::Values { wanted: found, found: found + 1 };
            return Err(DecodeError::at(start, reason));
        };
        let length = line[start..].iter().position(|&byte| byte == b'\t');
        let end = length.map_or(line.len(), |length| start + length);
        let value = value(&line[start..end], start, &mut unescaped)?;
        let limit = |error: FieldError| DecodeError::at(start, DecodeReason::Limit(error));
        fields.add(name.as_name(), value).map_err(limit)?;
        found += 1;
        next = names.next();
        match (&next, length) {
            (None, None) => return Ok(()),
            (Some(_), None) => {
                let wanted = found + 1 + names.count();
                return Err(DecodeError::at(end, DecodeReason::Values { wanted, found }));
            }
            _ => start = end + 1,
        }
    }
}

fn value<'a>(
    text: &'a [u8],
    place: usize,
    unescaped: &'a mut Vec<u8>,
) -> Result<Value<'a>, DecodeError> {
    if text == b"\\N" {
        return Ok(Value::Null);
    }
    if !text.contains(&b'\\') {
        return Ok(Value::Bytes(text));
    }
    unescaped.clear();
    let mut bytes = text.iter().enumerate();
    while let Some((index, &byte)) = bytes.next() {
        if byte != b'\\' {
            unescaped.push(byte);
            continue;
        }
        unescaped.push(match bytes.next() {
            Some((_, b't')) => b'\t',
            Some((_, b'n')) => b'\n',
            Some((_, b'r')) => b'\r',
            Some((_, b'\\')) => b'\\',
            _ => return Err(DecodeError::at(place + index, DecodeReason::Escape)),
        });
    }
    Ok(Value::Bytes(unescaped))
}
