//! logfmt: `at=17 path="/a b" user`. A value with blanks, quotes, `=` or control characters is quoted. In quotes, the
//! escapes `\"`, `\\`, `\n`, `\r` and `\t` have their usual meanings. A name without `=` is NULL. A name with `=` and
//! no value is empty. Values are bytes, never numbers.

use block::Slice;

use crate::codec::{DecodeError, DecodeReason, EncodeError, EncodeReason, whole, written};
use crate::set::FieldSink;
use crate::{Fields, Lookup, Value};

/// Appends all fields, separated by blanks, without a line end.
///
/// # Errors
/// If a name is empty or contains a blank, a quote, `=` or a control character.
pub fn encode(fields: &impl Lookup, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    written(out, |out| {
        for (index, field) in fields.fields().enumerate() {
            if field.name.is_empty() || field.name.iter().any(|&byte| !is_bare(byte)) {
                return Err(EncodeError { index, reason: EncodeReason::Name });
            }
            if index > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(field.name);
            if let Some(value) = field.value.bytes() {
                out.push(b'=');
                push(out, value);
            }
        }
        Ok(())
    })
}

fn push(out: &mut Vec<u8>, value: &[u8]) {
    if value.iter().all(|&byte| is_bare(byte)) {
        return out.extend_from_slice(value);
    }
    out.push(b'"');
    for &byte in value {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Whether a byte is allowed without quotes.
const fn is_bare(byte: u8) -> bool {
    byte > b' ' && !matches!(byte, b'"' | b'=' | 127)
}

/// Adds the fields of one line.
///
/// # Errors
/// If the line is not valid logfmt. In this case nothing is added.
///
/// ```
/// use fields::{Fields, Value, logfmt};
///
/// let mut fields = Fields::new();
/// logfmt::decode(&mut fields, br#"at=17 path="/a b" user empty="#)?;
/// assert_eq!(fields.get("path"), Some(Value::Bytes(b"/a b")));
/// assert_eq!(fields.get("user"), Some(Value::Null));
/// assert_eq!(fields.get("empty"), Some(Value::Bytes(b"")));
/// # Ok::<(), fields::DecodeError>(())
/// ```
pub fn decode(fields: &mut Fields, line: &[u8]) -> Result<(), DecodeError> {
    whole(fields, |fields| read(fields, line))
}

/// Like [`decode`], but without copying: `fields` is cleared, keeps the block, and indexes names and values in it. Only
/// values with escapes are copied. If the record is a small part of a large block, it is copied instead.
///
/// # Errors
/// As for [`decode`]. In this case `fields` is empty.
pub fn adopt(fields: &mut Fields, record: &Slice) -> Result<(), DecodeError> {
    fields.adopt_record(record, read)
}

fn read(fields: &mut FieldSink<'_>, line: &[u8]) -> Result<(), DecodeError> {
    let mut place = 0;
    let mut unescaped = Vec::new();
    loop {
        place += count(&line[place..], |byte| matches!(byte, b' ' | b'\t'));
        let start = place;
        let Some(_) = line.get(start) else { return Ok(()) };
        place += count(&line[start..], is_bare);
        if place == start {
            return Err(DecodeError::at(start, DecodeReason::Name));
        }
        let name = &line[start..place];
        let value = match line.get(place) {
            Some(b'=') => {
                place += 1;
                value(line, &mut place, &mut unescaped)?
            }
            _ => Value::Null,
        };
        if !matches!(line.get(place), None | Some(b' ' | b'\t')) {
            return Err(DecodeError::at(place, DecodeReason::Mark));
        }
        let added = fields.add(name, value);
        added.map_err(|error| DecodeError::at(start, DecodeReason::Limit(error)))?;
    }
}

fn count(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|&&byte| wanted(byte)).count()
}

/// Parses the value at `place`, and moves `place` to its end.
fn value<'a>(
    line: &'a [u8],
    place: &mut usize,
    unescaped: &'a mut Vec<u8>,
) -> Result<Value<'a>, DecodeError> {
    if line.get(*place) != Some(&b'"') {
        let start = *place;
        *place += count(&line[start..], is_bare);
        return Ok(Value::Bytes(&line[start..*place]));
    }
    let start = *place + 1;
    let plain = count(&line[start..], |byte| !matches!(byte, b'"' | b'\\'));
    if line.get(start + plain) == Some(&b'"') {
        *place = start + plain + 1;
        return Ok(Value::Bytes(&line[start..start + plain]));
    }
    unescaped.clear();
    loop {
        *place += 1;
        let byte = match line.get(*place) {
            None => return Err(DecodeError::at(line.len(), DecodeReason::Unended)),
            Some(b'"') => {
                *place += 1;
                return Ok(Value::Bytes(unescaped));
            }
            Some(b'\\') => {
                *place += 1;
                match line.get(*place) {
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    Some(b't') => b'\t',
                    Some(&byte @ (b'"' | b'\\')) => byte,
                    None => return Err(DecodeError::at(line.len(), DecodeReason::Unended)),
                    Some(_) => return Err(DecodeError::at(*place, DecodeReason::Escape)),
                }
            }
            Some(&byte) => byte,
        };
        unescaped.push(byte);
    }
}
