//! Conversion between fields and one JSON object.
//!
//! | JSON            | value                                                       |
//! |-----------------|-------------------------------------------------------------|
//! | string          | its bytes, unescaped                                        |
//! | number          | a number: its text, unchanged and never rounded             |
//! | `true`, `false` | JSON: its text, unchanged                                   |
//! | `null`          | NULL                                                        |
//! | array, object   | JSON: its text, unchanged                                   |
//!
//! A duplicate name is an error, because it is ambiguous.

mod plain;

use std::cell::RefCell;
use std::fmt;

use block::Slice;
use serde_core::Deserializer as _;
use serde_core::de::{DeserializeSeed, MapAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::codec::whole;
use crate::set::FieldSink;
use crate::{EncodeError, EncodeReason, FieldError, Fields, Lookup, Value};

pub use plain::Plain;

/// The maximum number of members of an object. The cost of the check for duplicates is quadratic in this number.
pub const MEMBERS_MAX: usize = 1000;

/// Why a record could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonReason {
    /// The text is not JSON, or not an object. The text says what was expected.
    Syntax(Box<str>),
    /// The text is not UTF-8.
    Utf8,
    /// This name occurs twice.
    Duplicate(Box<str>),
    /// The object has more than [`MEMBERS_MAX`] members.
    Members,
    /// A limit of the set was exceeded.
    Limit(FieldError),
}

/// An error in a record: its reason and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The reason.
    pub reason: JsonReason,
    /// The position at which the parser found the error, counted from 1: the invalid byte or a neighbour of it. If the
    /// text ended too early: its length plus one.
    pub byte: usize,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            JsonReason::Syntax(text) => f.write_str(text)?,
            JsonReason::Utf8 => f.write_str("not UTF-8")?,
            JsonReason::Duplicate(name) => write!(f, "duplicate name `{}`", name.escape_debug())?,
            JsonReason::Members => write!(f, "more than {MEMBERS_MAX} members")?,
            JsonReason::Limit(error) => error.fmt(f)?,
        }
        write!(f, " at byte {}", self.byte)
    }
}

impl std::error::Error for JsonError {}

/// Adds the members of the JSON object `text` to `fields`, in their order. If `fields` has enough capacity, memory is
/// allocated only for strings with escapes.
///
/// # Errors
/// If `text` is not one JSON object with unique names. In this case `fields` is unchanged.
///
/// ```
/// use fields::{Fields, Value, json};
///
/// let mut fields = Fields::new();
/// json::decode(&mut fields, br#"{"path":"/","status":200,"user":null}"#)?;
/// assert_eq!(fields.get("status"), Some(Value::Number(b"200")));
/// assert_eq!(fields.get("user"), Some(Value::Null));
///
/// let error = json::decode(&mut fields, br#"{"at":1,"at":2}"#).unwrap_err();
/// assert_eq!(error.to_string(), "duplicate name `at` at byte 14");
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn decode(fields: &mut Fields, text: &[u8]) -> Result<(), JsonError> {
    whole(fields, |fields| read(fields, text))
}

/// Like [`decode`], but without copying: `fields` is cleared, keeps the block, and indexes names and values in it. Only
/// strings with escapes are copied. If the record is a small part of a large block, it is copied instead.
///
/// # Errors
/// As for [`decode`]. In this case `fields` is empty.
pub fn adopt(fields: &mut Fields, record: &Slice) -> Result<(), JsonError> {
    fields.adopt_record(record, read)
}

/// Appends one JSON object with all fields in their order. Numbers and JSON values are written unchanged, but without
/// line ends.
///
/// # Errors
/// If a name or a value is not UTF-8, or a number or a JSON value is invalid. In this case `out` is unchanged.
pub fn encode(fields: &impl Lookup, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    crate::codec::written(out, |out| {
        out.push(b'{');
        for (index, field) in fields.fields().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            push_text(out, field.name).ok_or(EncodeError { index, reason: EncodeReason::Name })?;
            out.push(b':');
            let pushed = match field.value {
                Value::Null => {
                    out.extend_from_slice(b"null");
                    Some(())
                }
                Value::Bytes(bytes) => push_text(out, bytes),
                Value::Number(digits) => push_number(out, digits),
                Value::Json(text) => push_json(out, text),
            };
            pushed.ok_or(EncodeError { index, reason: EncodeReason::Value })?;
        }
        out.push(b'}');
        Ok(())
    })
}

fn push_text(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    let text = std::str::from_utf8(bytes).ok()?;
    serde_json::to_writer(out, text).ok()
}

fn push_number(out: &mut Vec<u8>, digits: &[u8]) -> Option<()> {
    let raw: &RawValue = serde_json::from_slice(digits).ok()?;
    let is_number = raw.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
    is_number.then(|| out.extend_from_slice(raw.get().as_bytes()))
}

/// Appends a JSON value on one line. In JSON, line ends occur only between values, where a space has the same meaning.
fn push_json(out: &mut Vec<u8>, text: &[u8]) -> Option<()> {
    let raw: &RawValue = serde_json::from_slice(text).ok()?;
    let is_end = |byte: u8| matches!(byte, b'\n' | b'\r');
    out.extend(raw.get().bytes().map(|byte| if is_end(byte) { b' ' } else { byte }));
    Some(())
}

fn read(fields: &mut FieldSink<'_>, text: &[u8]) -> Result<(), JsonError> {
    let text = std::str::from_utf8(text)
        .map_err(|error| JsonError { reason: JsonReason::Utf8, byte: error.valid_up_to() + 1 })?;
    let fault = RefCell::new(None);
    let mut deserializer = Deserializer::from_str(text);
    let object = Object { first: fields.set.len(), text, fields: fields.reborrow(), fault: &fault };
    deserializer
        .deserialize_map(object)
        .and_then(|()| deserializer.end())
        .map_err(|error| fault.take().unwrap_or_else(|| syntax(text, &error)))
}

/// An error that serde's error type cannot carry. It is stored next to the deserializer.
type Fault = RefCell<Option<JsonError>>;

struct Object<'a> {
    /// The number of fields before this object.
    first: usize,
    text: &'a str,
    fields: FieldSink<'a>,
    fault: &'a Fault,
}

impl Object<'_> {
    fn fail<E: serde_core::de::Error>(&self, reason: JsonReason, byte: usize) -> E {
        *self.fault.borrow_mut() = Some(JsonError { reason, byte });
        E::custom("refused")
    }

    /// Rejects the last opened field if an earlier field of this object has the same name.
    fn check_name<E: serde_core::de::Error>(&self, byte: usize) -> Result<(), E> {
        let last = self.fields.set.len() - 1;
        if last - self.first == MEMBERS_MAX {
            return Err(self.fail(JsonReason::Members, byte));
        }
        let name = self.fields.set.field(last).map(|field| field.name).unwrap_or_default();
        if self.fields.set.position_from(name, self.first) == Some(last) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(name).into_owned().into();
        Err(self.fail(JsonReason::Duplicate(name), byte))
    }

    fn check_value<E: serde_core::de::Error>(&mut self, raw: &str) -> Result<(), E> {
        let byte = raw.as_ptr().addr() - self.text.as_ptr().addr() + 1;
        let filled = match raw.as_bytes() {
            b"null" => Ok(()),
            b"true" | b"false" => self.fields.fill(Value::Json(raw.as_bytes())),
            [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => {
                self.fields.fill(Value::Bytes(inner))
            }
            [b'"', ..] => {
                let fill = Text { fields: self.fields.reborrow(), fill: true };
                return fill.deserialize(&mut Deserializer::from_str(raw)).map_err(|error| {
                    let inner = syntax(raw, &error);
                    self.fail(inner.reason, byte + inner.byte - 1)
                });
            }
            [b'[' | b'{', ..] => self.fields.fill(Value::Json(raw.as_bytes())),
            number => self.fields.fill(Value::Number(number)),
        };
        filled.map_err(|error| self.fail(JsonReason::Limit(error), byte))
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while map.next_key_seed(Text { fields: self.fields.reborrow(), fill: false })?.is_some() {
            let raw: &'de RawValue = map.next_value()?;
            // The name is checked after its value was read, because serde does not report the position of a name.
            let byte = raw.get().as_ptr().addr() - self.text.as_ptr().addr() + 1;
            self.check_name(byte)?;
            self.check_value(raw.get())?;
        }
        Ok(())
    }
}

/// A JSON string that becomes a name, or the value of the last opened field.
struct Text<'a> {
    fields: FieldSink<'a>,
    fill: bool,
}

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = ();

    fn deserialize<D: serde_core::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Text<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde_core::de::Error>(mut self, text: &str) -> Result<(), E> {
        let added = if self.fill {
            self.fields.fill(Value::Bytes(text.as_bytes()))
        } else {
            self.fields.open(text.as_bytes())
        };
        added.map_err(E::custom)
    }
}

/// The error of serde_json with its position as a byte offset. serde_json reports line and column.
fn syntax(text: &str, error: &serde_json::Error) -> JsonError {
    let full = error.to_string();
    let reason = full.rsplit_once(" at line ").map_or(full.as_str(), |(reason, _)| reason);
    let line_start = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum::<usize>();
    let early = usize::from(error.is_eof());
    let byte = (line_start + error.column() + early).clamp(1, text.len() + 1);
    JsonError { reason: JsonReason::Syntax(plain_reason(reason).into()), byte }
}

/// Replaces the terms of serde_json that describe the parser rather than the text.
fn plain_reason(reason: &str) -> String {
    if let Some(within) = reason.strip_prefix("EOF while parsing ") {
        return format!("the text ends before the end of {within}");
    }
    let found = reason.strip_prefix("invalid type: ").and_then(|it| it.rsplit_once(", expected "));
    if let Some((found, expected)) = found {
        let found = if found == "sequence" { "an array" } else { found };
        return format!("expected {expected}, not {found}");
    }
    match reason {
        "expected ident" | "expected value" => "expected a JSON value".to_owned(),
        "key must be a string" => "expected a name in double quotes".to_owned(),
        _ => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;
