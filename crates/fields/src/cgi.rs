//! The variables of CGI (RFC 3875): `NAME=value`, each ended by NUL, as an environment lies in
//! memory; and what header fields are called among them.

use block::Slice;

use crate::codec::{DecodeError, DecodeReason, Unfit, UnfitReason, whole, written};
use crate::set::Filling;
use crate::{Case, FieldError, Fields, Lookup, known};

/// Appends `NAME=value` and NUL for each field. A NULL one is left out: it is not set.
///
/// # Errors
/// When a name is empty or has `=` or NUL, or a value has NUL.
pub fn encode(fields: &impl Lookup, out: &mut Vec<u8>) -> Result<(), Unfit> {
    written(out, |out| {
        for (index, field) in fields.fields().enumerate() {
            let Some(value) = field.value.bytes() else { continue };
            if field.name.is_empty() || field.name.iter().any(|byte| matches!(byte, b'=' | 0)) {
                return Err(Unfit { index, reason: UnfitReason::Name });
            }
            if value.contains(&0) {
                return Err(Unfit { index, reason: UnfitReason::Value });
            }
            for part in [field.name, b"=", value, b"\0"] {
                out.extend_from_slice(part);
            }
        }
        Ok(())
    })
}

/// Adds a field for each `NAME=value` that ends with NUL.
///
/// # Errors
/// When one has no name, no `=` or no end; nothing is added then.
pub fn decode(fields: &mut Fields, bytes: &[u8]) -> Result<(), DecodeError> {
    whole(fields, |fields| read(fields, bytes))
}

/// As [`decode`], in place: `fields` is emptied and keeps the block, in which names and values
/// are indexed where they lie. A thin part of a large block is
/// copied out of it instead.
///
/// # Errors
/// As [`decode`]; `fields` is then empty.
pub fn adopt(fields: &mut Fields, record: &Slice) -> Result<(), DecodeError> {
    fields.adopt_record(record, read)
}

fn read(fields: &mut Filling<'_>, bytes: &[u8]) -> Result<(), DecodeError> {
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

/// Adds the variables that stand for header fields to `to`: `HTTP_` and the name in capitals with
/// `_` for `-`, but `CONTENT_LENGTH` and `CONTENT_TYPE` as they are. Fields of one name become
/// one, their values joined by `, ` (`; ` for cookies). Left out are NULL ones; `Proxy`, which
/// programs would take for a setting of theirs; and names that have a `_` themselves, which could
/// pass for another field.
///
/// # Errors
/// When `to` does not take them; what was added before stays.
///
/// ```
/// let mut head = fields::Fields::headers();
/// head.append("X-Trace", "1");
/// head.append("x-trace", "2");
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
            let added = to.try_append(&name, &value)?;
            to.set_sensitive(added, field.sensitive);
        }
    }
    Ok(())
}
