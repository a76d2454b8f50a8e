//! Conversion of values for the server and from the server.

use std::fmt::Display;
use std::str::FromStr;

use fields::Value as Field;
use mysql_async::consts::ColumnType;
use mysql_async::{Column, Value};
use serde_json::value::RawValue;

use crate::digits::Digits;
use sql::column::{Fit, Takes};

/// Returns the bound form of a value for a column that accepts `takes`. See the header of [`crate::mysql`].
pub(super) fn bound(fit: Fit<'_>, takes: &Takes) -> Value {
    match fit {
        Fit::Null => Value::NULL,
        Fit::Number(digits) if !is_text(takes) => {
            let text = std::str::from_utf8(&digits).unwrap_or_default();
            // A text would be a double in calculations, and its bytes the bits of a `bit`.
            let whole = text.parse().map(Value::Int).or_else(|_| text.parse().map(Value::UInt));
            let number = match takes {
                Takes::Compared(_) | Takes::Operand { .. } => {
                    whole.ok().or_else(|| text.parse().map(Value::Double).ok())
                }
                _ => whole.ok(),
            };
            number.unwrap_or_else(|| Value::Bytes(digits.into_owned()))
        }
        Fit::Text(bytes) | Fit::Bytes(bytes) | Fit::Number(bytes) => {
            Value::Bytes(bytes.into_owned())
        }
    }
}

fn is_text(takes: &Takes) -> bool {
    match takes {
        Takes::Text | Takes::Limited(_) | Takes::LimitedBytes(_) | Takes::Json => true,
        // The bytes of a text would be the bits of a `bit`.
        Takes::Each(columns) => {
            columns.iter().any(is_text) && !columns.iter().any(|it| matches!(it, Takes::Bits(_)))
        }
        _ => false,
    }
}

/// Returns the maximum number of bytes of a value in a request, including its type and length.
pub(super) fn bytes_of(value: &Value) -> usize {
    const HEAD_BYTES: usize = 12;
    match value {
        Value::Bytes(bytes) => HEAD_BYTES + bytes.len(),
        _ => HEAD_BYTES + 8,
    }
}

/// The character set of binary data, in the protocol.
pub(super) const BINARY: u16 = 63;

/// The decimal places of a column that does not limit them, in the protocol.
const PLACES_UNLIMITED: u8 = 31;

/// How the values of a column are written in replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// Unchanged, or in their text form.
    AsTheyAre,
    /// A date without a time of day.
    Date,
    /// Their text is a number.
    Decimal,
    /// Binary numbers of a column with so many decimal places. The server rounds them when they are stored and when it
    /// writes them as text, but not in the protocol of prepared statements: -0.1 is there -0.09999999999999998.
    Places(u8),
    /// Their text is JSON.
    Json,
    /// Bits, the highest bit first. They are written as a number.
    Bits,
    /// Binary data, written in base64.
    Base64,
}

impl Leaves {
    /// Returns how the values of a column are written. Values of binary types are written in base64 if `in_base64`.
    pub(super) fn of(column: &Column, in_base64: bool) -> Self {
        match column.column_type() {
            ColumnType::MYSQL_TYPE_DATE => Self::Date,
            ColumnType::MYSQL_TYPE_NEWDECIMAL | ColumnType::MYSQL_TYPE_DECIMAL => Self::Decimal,
            ColumnType::MYSQL_TYPE_BIT => Self::Bits,
            ColumnType::MYSQL_TYPE_FLOAT | ColumnType::MYSQL_TYPE_DOUBLE
                if column.decimals() < PLACES_UNLIMITED && !column.org_name_ref().is_empty() =>
            {
                Self::Places(column.decimals())
            }
            ColumnType::MYSQL_TYPE_JSON if in_base64 => Self::Json,
            ColumnType::MYSQL_TYPE_GEOMETRY if in_base64 => Self::Base64,
            ColumnType::MYSQL_TYPE_STRING
            | ColumnType::MYSQL_TYPE_VAR_STRING
            | ColumnType::MYSQL_TYPE_VARCHAR
            | ColumnType::MYSQL_TYPE_TINY_BLOB
            | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
            | ColumnType::MYSQL_TYPE_LONG_BLOB
            | ColumnType::MYSQL_TYPE_BLOB
                if in_base64 && column.character_set() == BINARY =>
            {
                Self::Base64
            }
            _ => Self::AsTheyAre,
        }
    }
}

/// Appends the text form of a value that is not text.
pub(super) fn note(value: &Value, of: Leaves, digits: &mut Digits) {
    match *value {
        Value::Bytes(ref bytes) if of == Leaves::Base64 => digits.push_base64(bytes),
        Value::Bytes(ref bits) if of == Leaves::Bits => {
            digits.push(self::bits(bits));
        }
        Value::NULL | Value::Bytes(_) => {}
        Value::Int(number) => digits.push(number),
        Value::UInt(number) => digits.push(number),
        Value::Float(number) => digits.push(format_args!("{:?}", rounded(number, of))),
        Value::Double(number) => digits.push(format_args!("{:?}", rounded(number, of))),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            if of == Leaves::Date {
                return digits.push(format_args!("{year:04}-{month:02}-{day:02}"));
            }
            let fraction = fraction(micros);
            digits.push(format_args!(
                "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}"
            ));
        }
        Value::Time(negative, days, hours, minutes, seconds, micros) => {
            let sign = if negative { "-" } else { "" };
            let hours = days * 24 + u32::from(hours);
            let fraction = fraction(micros);
            digits.push(format_args!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}"));
        }
    }
}

/// Returns a number with the decimal places of its column.
fn rounded<N: Copy + Display + FromStr>(number: N, of: Leaves) -> N {
    let Leaves::Places(places) = of else { return number };
    format!("{number:.*}", usize::from(places)).parse().unwrap_or(number)
}

/// Returns the number that the bits represent, the highest bit first.
pub(super) fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn fraction(micros: u32) -> String {
    if micros == 0 { String::new() } else { format!(".{micros:06}") }
}

/// Returns a value. If it is not text, its text form is the next one of `texts`.
pub(super) fn field<'v>(
    value: &'v Value,
    of: Leaves,
    texts: &mut impl Iterator<Item = &'v [u8]>,
) -> Field<'v> {
    match value {
        Value::NULL => Field::Null,
        Value::Bytes(bytes) => match of {
            Leaves::Decimal => Field::Number(bytes),
            // The JSON check of a column may be newer than its content.
            Leaves::Json => match serde_json::from_slice::<&RawValue>(bytes) {
                Ok(_) => Field::Json(bytes),
                Err(_) => Field::Bytes(bytes),
            },
            Leaves::Bits => Field::Number(texts.next().unwrap_or_default()),
            Leaves::Base64 => Field::Bytes(texts.next().unwrap_or_default()),
            Leaves::AsTheyAre | Leaves::Date | Leaves::Places(_) => Field::Bytes(bytes),
        },
        Value::Date(..) | Value::Time(..) => Field::Bytes(texts.next().unwrap_or_default()),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) => {
            Field::Number(texts.next().unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bound_as_integers_or_as_their_digits() {
        let bound = |digits: &'static [u8]| bound(Fit::Number(digits.into()), &Takes::Any);
        assert_eq!(bound(b"-17"), Value::Int(-17));
        assert_eq!(bound(b"9223372036854775808"), Value::UInt(1 << 63));
        assert_eq!(bound(b"18446744073709551616"), Value::Bytes(b"18446744073709551616".to_vec()));
        assert_eq!(bound(b"1.50"), Value::Bytes(b"1.50".to_vec()));
        let bits = super::bound(Fit::Number(b"9223372036854775808".into()), &Takes::Bits(64));
        assert_eq!(bits, Value::UInt(1 << 63));
        let operand = Takes::Operand { doubles: true };
        assert_eq!(super::bound(Fit::Number(b"0.1".into()), &operand), Value::Double(0.1));
        let text = super::bound(Fit::Number(b"-0".into()), &Takes::Text);
        assert_eq!(text, Value::Bytes(b"-0".to_vec()));
    }

    #[test]
    fn times_are_written_as_the_database_writes_them() {
        let shown = |value: Value, of| {
            let mut digits = Digits::default();
            note(&value, of, &mut digits);
            let text = digits.iter().next().unwrap_or_default().to_vec();
            String::from_utf8(text).unwrap()
        };
        let at = Value::Date(2026, 1, 2, 3, 4, 5, 60);
        assert_eq!(shown(at.clone(), Leaves::Date), "2026-01-02");
        let of = Leaves::AsTheyAre;
        assert_eq!(shown(at, of), "2026-01-02 03:04:05.000060");
        assert_eq!(shown(Value::Time(true, 1, 2, 3, 4, 0), of), "-26:03:04");
        assert_eq!(shown(Value::Double(0.1), of), "0.1");
        let places = |number| shown(Value::Double(number), Leaves::Places(2));
        assert_eq!(places(-0.099_999_999_999_999_98), "-0.1");
        assert_eq!(places(3.280_000_000_000_000_2), "3.28");
        assert_eq!(places(1e300), "1e300");
        assert_eq!(shown(Value::Float(19.5), Leaves::Places(2)), "19.5");
    }
}
