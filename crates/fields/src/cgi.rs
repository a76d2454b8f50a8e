//! The variables of CGI (RFC 3875): `NAME=value`, each terminated by NUL, as in the memory of an environment; and the
//! CGI names of header fields.

use block::Slice;

use crate::codec::{DecodeError, DecodeReason, EncodeError, EncodeReason, whole, written};
use crate::set::FieldSink;
use crate::{Case, FieldError, Fields, Lookup, known};

/// Appends `NAME=value` and NUL for each field. NULL fields are omitted: the variable is not set.
///
/// # Errors
/// If a name is empty or contains `=` or NUL, or a value contains NUL.
pub fn encode(fields: &impl Lookup, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    written(out, |out| {
        for (index, field) in fields.fields().enumerate() {
            let Some(value) = field.value.bytes() else { continue };
            if field.name.is_empty() || field.name.iter().any(|byte| matches!(byte, b'=' | 0)) {
                return Err(EncodeError { index, reason: EncodeReason::Name });
            }
            if value.contains(&0) {
                return Err(EncodeError { index, reason: EncodeReason::Value });
            }
            for part in [field.name, b"=", value, b"\0"] {
                out.extend_from_slice(part);
            }
        }
        Ok(())
    })
}

/// Adds a field for each `NAME=value` that is terminated by NUL.
///
/// # Errors
/// If a variable has no name, no `=` or no terminator. In this case nothing is added.
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
        let length = bytes[place..].iter().position(|&byte| byte == 0);
        let fail = |reason| DecodeError::at(place, reason);
        let end =
            place + length.ok_or_else(|| DecodeError::at(bytes.len(), DecodeReason::Unended))?;
        let pair = &bytes[place..end];
        let sign = pair.iter().position(|&byte| byte == b'=').unwrap_or(0);
        if sign == 0 {
            return Err(fail(DecodeReason::Name));
        }
        let added = fields.add(&pair[..sign], pair[sign + 1..].into());
        added.map_err(|error| fail(DecodeReason::Limit(error)))?;
        place = end + 1;
    }
    Ok(())
}

/// Adds the CGI variables of header fields to `to`. A variable is named `HTTP_` and the field's name in capitals, with
/// `_` for `-`; `CONTENT_LENGTH` and `CONTENT_TYPE` have no prefix. Fields with the same name become one variable, with
/// the values joined by `, ` (for cookies: `; `). Omitted are NULL fields; `Proxy`, because programs would read it as
/// their proxy setting; and names with a `_`, because they could be mistaken for another field.
///
/// # Errors
/// If `to` rejects a variable. The variables that were added before remain.
///
/// ```
/// let mut head = fields::Fields::headers();
/// head.append("X-Trace", "1")?;
/// head.append("x-trace", "2")?;
/// let mut variables = fields::Fields::new();
/// fields::cgi::variables(&head, &mut variables)?;
/// assert_eq!(variables.to_string(), "HTTP_X_TRACE: 1, 2\n");
/// # Ok::<(), fields::FieldError>(())
/// ```
pub fn variables(headers: &Fields, to: &mut Fields) -> Result<(), FieldError> {
    let mut name = Vec::new();
    let mut value = Vec::new();
    for (index, field) in headers.iter().enumerate() {
        let first = headers.position_with(field.name, Case::Ignored) == Some(index);
        let barred = field.name.eq_ignore_ascii_case(b"proxy") || field.name.contains(&b'_');
        if !first || barred {
            continue;
        }
        let is = |known: &crate::Name| field.name.eq_ignore_ascii_case(known.as_str().as_bytes());
        let plain = is(&known::CONTENT_LENGTH) || is(&known::CONTENT_TYPE);
        let separator: &[u8] = if is(&known::COOKIE) { b"; " } else { b", " };
        name.clear();
        name.extend_from_slice(if plain { b"" } else { b"HTTP_" });
        name.extend(field.name.iter().map(|byte| match byte {
            b'-' => b'_',
            byte => byte.to_ascii_uppercase(),
        }));
        value.clear();
        let mut parts = 0;
        let all = headers.get_all_with(field.name, Case::Ignored).filter_map(crate::Value::bytes);
        for bytes in all {
            value.extend_from_slice(if parts > 0 { separator } else { b"" });
            value.extend_from_slice(bytes);
            parts += 1;
        }
        if parts > 0 {
            let added = to.append(&name, &value)?;
            to.set_sensitive(added, field.sensitive);
        }
    }
    Ok(())
}
