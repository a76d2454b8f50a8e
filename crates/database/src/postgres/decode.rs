//! Decodes query results: which types are read in binary, and how.

use fields::Value;
use tokio_postgres::Row;
use tokio_postgres::types::{Kind, Type};

use super::wire::Raw;
use crate::digits::Digits;

/// How the bytes of a column are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decode {
    /// As text.
    Text,
    /// As binary data.
    Binary,
    /// As binary data, written in base64.
    Base64,
    /// As the text of a number, or `NaN` or an infinity.
    Number,
    /// As the text of JSON.
    Json,
    /// As the text of JSON after one byte, the version.
    Jsonb,
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Uuid,
}

impl Decode {
    /// Returns how a column of this type is decoded; `None` if the server must convert it to text first.
    pub(super) fn of(of: &Type) -> Option<Self> {
        Some(match *of {
            Type::BOOL => Self::Bool,
            Type::INT2 => Self::Int2,
            Type::INT4 => Self::Int4,
            Type::INT8 => Self::Int8,
            Type::OID => Self::Oid,
            Type::FLOAT4 => Self::Float4,
            Type::FLOAT8 => Self::Float8,
            Type::UUID => Self::Uuid,
            Type::JSON => Self::Json,
            Type::JSONB => Self::Jsonb,
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::XML | Type::UNKNOWN => {
                Self::Text
            }
            Type::BYTEA => Self::Binary,
            _ if matches!(of.kind(), Kind::Enum(_)) => Self::Text,
            _ => return None,
        })
    }

    /// Returns the decoding in which values of binary types are written in base64 if `in_base64`.
    pub(super) fn leaving(self, in_base64: bool) -> Self {
        match self {
            Self::Binary if in_base64 => Self::Base64,
            other => other,
        }
    }

    /// Returns how the server's conversion of a column of this type is decoded: as text, or as the JSON of an array if
    /// `in_json`. Bytes in an array have no base64 form there, and remain text.
    pub(super) fn of_text(of: &Type, in_json: bool) -> Self {
        match of.kind() {
            _ if *of == Type::NUMERIC => Self::Number,
            Kind::Array(of) if in_json && *of != Type::BYTEA => Self::Json,
            _ => Self::Text,
        }
    }
}

/// Returns the bytes of column `column`; `None` if it is NULL.
fn raw(row: &Row, column: usize) -> Option<&[u8]> {
    row.try_get::<_, Option<Raw<'_>>>(column).ok().flatten().map(|raw| raw.0)
}

/// Returns `N` bytes, if the length is right. A server that sends another length does not send this type.
fn sized<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// Appends the text forms of the values of a row that are not text.
pub(super) fn note(row: &Row, plan: &[Decode], digits: &mut Digits) {
    digits.clear();
    for (column, decode) in plan.iter().enumerate() {
        let Some(bytes) = raw(row, column) else { continue };
        match decode {
            Decode::Text
            | Decode::Binary
            | Decode::Number
            | Decode::Json
            | Decode::Jsonb
            | Decode::Bool => {}
            Decode::Base64 => digits.push_base64(bytes),
            Decode::Int2 => push(digits, sized(bytes).map(i16::from_be_bytes)),
            Decode::Int4 => push(digits, sized(bytes).map(i32::from_be_bytes)),
            Decode::Int8 => push(digits, sized(bytes).map(i64::from_be_bytes)),
            Decode::Oid => push(digits, sized(bytes).map(u32::from_be_bytes)),
            Decode::Float4 => {
                let number = sized(bytes).map(f32::from_be_bytes).unwrap_or_default();
                match infinity(number.into()) {
                    Some(text) => digits.push(text),
                    None => digits.push(format_args!("{number:?}")),
                }
            }
            Decode::Float8 => {
                let number = sized(bytes).map(f64::from_be_bytes).unwrap_or_default();
                match infinity(number) {
                    Some(text) => digits.push(text),
                    None => digits.push(format_args!("{number:?}")),
                }
            }
            Decode::Uuid => {
                let number = sized(bytes).map(u128::from_be_bytes).unwrap_or_default();
                let (a, b) = (number >> 96, number >> 80 & 0xffff);
                let (c, d) = (number >> 64 & 0xffff, number >> 48 & 0xffff);
                let e = number & 0xffff_ffff_ffff;
                digits.push(format_args!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}"));
            }
        }
    }
}

fn push(digits: &mut Digits, number: Option<impl std::fmt::Display + Default>) {
    digits.push(number.unwrap_or_default());
}

/// Returns the values of a row. `digits` contains their text forms.
pub(super) fn values<'r>(
    row: &'r Row,
    plan: &'r [Decode],
    digits: &'r Digits,
) -> impl Iterator<Item = Value<'r>> {
    let mut texts = digits.iter();
    plan.iter().enumerate().map(move |(column, decode)| {
        let Some(bytes) = raw(row, column) else { return Value::Null };
        match decode {
            Decode::Text | Decode::Binary => Value::Bytes(bytes),
            Decode::Number => number(bytes),
            Decode::Json => Value::Json(bytes),
            Decode::Jsonb => Value::Json(bytes.get(1..).unwrap_or_default()),
            Decode::Bool => Value::Json(if bytes == [0] { b"false" } else { b"true" }),
            Decode::Base64 | Decode::Uuid => Value::Bytes(texts.next().unwrap_or_default()),
            Decode::Int2
            | Decode::Int4
            | Decode::Int8
            | Decode::Oid
            | Decode::Float4
            | Decode::Float8 => number(texts.next().unwrap_or_default()),
        }
    })
}

/// Returns a number, unless it is `NaN` or an infinity, which only databases have.
fn number(text: &[u8]) -> Value<'_> {
    match text.last() {
        Some(b'0'..=b'9') => Value::Number(text),
        _ => Value::Bytes(text),
    }
}

/// Returns the PostgreSQL notation of an infinite number.
fn infinity(number: f64) -> Option<&'static str> {
    match number {
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}
