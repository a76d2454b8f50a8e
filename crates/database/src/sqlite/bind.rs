//! Converts values of a record to SQLite values.

use std::borrow::Cow;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};

use sql::column::{Fit, Takes, is_kept_by_double};

/// Returns the bound form of a value for a column that accepts `takes`. See the header of [`crate::sqlite`].
pub(super) fn bound<'v>(fit: Fit<'v>, takes: &Takes) -> ToSqlOutput<'v> {
    match fit {
        Fit::Null => ToSqlOutput::Borrowed(ValueRef::Null),
        Fit::Text(text) if std::str::from_utf8(&text).is_ok() => self::text(text),
        Fit::Text(bytes) | Fit::Bytes(bytes) => match bytes {
            Cow::Borrowed(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Cow::Owned(bytes) => ToSqlOutput::Owned(Value::Blob(bytes)),
        },
        // The affinity would convert the value, not the digits, to text.
        Fit::Number(digits) if is_text(takes) => text(digits),
        Fit::Number(digits) => match number(&digits) {
            Some(number) => ToSqlOutput::Owned(number),
            None => text(digits),
        },
    }
}

fn is_text(takes: &Takes) -> bool {
    match takes {
        Takes::Text => true,
        // The affinity of a column of numbers reads the digits again.
        Takes::Each(columns) => columns.iter().any(is_text),
        _ => false,
    }
}

fn text(text: Cow<'_, [u8]>) -> ToSqlOutput<'_> {
    match text {
        Cow::Borrowed(text) => ToSqlOutput::Borrowed(ValueRef::Text(text)),
        Cow::Owned(text) => {
            ToSqlOutput::Owned(Value::Text(String::from_utf8_lossy(&text).into_owned()))
        }
    }
}

/// Returns the SQLite number, if it keeps the value.
fn number(digits: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(digits).ok()?;
    if let Ok(integer) = text.parse() {
        return Some(Value::Integer(integer));
    }
    is_kept_by_double(digits).then(|| text.parse().ok().map(Value::Real))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bound_where_their_value_is_kept_and_as_digits_elsewhere() {
        for (digits, expected) in [
            ("0", Some(Value::Integer(0))),
            ("-17", Some(Value::Integer(-17))),
            ("9223372036854775807", Some(Value::Integer(i64::MAX))),
            ("-9223372036854775808", Some(Value::Integer(i64::MIN))),
            ("9223372036854775809", None),
            ("1000000000000000000000", Some(Value::Real(1e21))),
            ("0.1", Some(Value::Real(0.1))),
            ("-0.0", Some(Value::Real(-0.0))),
            ("2.0", Some(Value::Real(2.0))),
            ("1e3", Some(Value::Real(1000.0))),
            ("123456789.0123456", Some(Value::Real(123_456_789.012_345_6))),
            ("0.10000000000000000001", None),
            ("1e400", None),
            ("1e-400", None),
            ("0e-400", Some(Value::Real(0.0))),
        ] {
            assert_eq!(number(digits.as_bytes()), expected, "{digits}");
        }
        let shown = |takes| format!("{:?}", bound(Fit::Number(b"1.10".into()), &takes));
        assert_eq!(shown(Takes::Text), "Borrowed(Text([49, 46, 49, 48]))");
        assert_eq!(shown(Takes::Number), "Owned(Real(1.1))");
        let each = Takes::Each(vec![Takes::Number, Takes::Text]);
        assert_eq!(shown(each), "Borrowed(Text([49, 46, 49, 48]))");
    }

    #[test]
    fn bytes_are_text_only_when_they_are_utf8() {
        let shown =
            |bytes: &'static [u8]| format!("{:?}", bound(Fit::Text(bytes.into()), &Takes::Any));
        assert_eq!(shown(b"a\0b"), "Borrowed(Text([97, 0, 98]))");
        assert_eq!(shown(b"\xff"), "Borrowed(Blob([255]))");
        assert_eq!(shown(b""), "Borrowed(Text([]))");
        assert_eq!(format!("{:?}", bound(Fit::Null, &Takes::Any)), "Borrowed(Null)");
        let blob = format!("{:?}", bound(Fit::Bytes(b"a".into()), &Takes::Bytes));
        assert_eq!(blob, "Borrowed(Blob([97]))");
    }
}
