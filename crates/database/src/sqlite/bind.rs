//! Values of a record as SQLite values.

use fields::Value;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// Digits of a decimal number that a double keeps, whatever they are (IEEE 754, `DBL_DIG`).
const REAL_DIGITS_MAX: usize = 15;

/// How `value` is bound; see the head of [`crate::sqlite`].
pub(super) fn bound(value: Value<'_>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match value {
        Value::Null => ValueRef::Null,
        Value::Bytes(bytes) if std::str::from_utf8(bytes).is_ok() => ValueRef::Text(bytes),
        Value::Bytes(bytes) => ValueRef::Blob(bytes),
        Value::Number(digits) => number(digits),
    })
}

fn number(digits: &[u8]) -> ValueRef<'_> {
    let text = std::str::from_utf8(digits).unwrap_or_default();
    if let Ok(integer) = text.parse() {
        return ValueRef::Integer(integer);
    }
    real(text).map_or(ValueRef::Text(digits), ValueRef::Real)
}

/// The number as a double, when that gives its digits back.
fn real(text: &str) -> Option<f64> {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    // Digits from the first that is not 0 on, and up to the last that is not 0.
    let (mut digits, mut significant) = (0, 0);
    for digit in mantissa.bytes().filter(u8::is_ascii_digit) {
        digits += usize::from(digits > 0 || digit != b'0');
        significant = if digit == b'0' { significant } else { digits };
    }
    let real: f64 = text.parse().ok()?;
    (significant == 0 || significant <= REAL_DIGITS_MAX && real.is_normal()).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bound_where_their_value_is_kept_and_as_digits_elsewhere() {
        let text = |digits: &'static str| (digits, ValueRef::Text(digits.as_bytes()));
        for (digits, expected) in [
            ("0", ValueRef::Integer(0)),
            ("-17", ValueRef::Integer(-17)),
            ("9223372036854775807", ValueRef::Integer(i64::MAX)),
            ("-9223372036854775808", ValueRef::Integer(i64::MIN)),
            text("9223372036854775808"),
            ("1000000000000000000000", ValueRef::Real(1e21)),
            ("0.1", ValueRef::Real(0.1)),
            ("-0.0", ValueRef::Real(-0.0)),
            ("2.0", ValueRef::Real(2.0)),
            ("1e3", ValueRef::Real(1000.0)),
            ("123456789.012345", ValueRef::Real(123_456_789.012_345)),
            text("123456789.0123456"),
            text("0.10000000000000000001"),
            text("1e400"),
            text("1e-400"),
            ("0e-400", ValueRef::Real(0.0)),
        ] {
            assert_eq!(number(digits.as_bytes()), expected, "{digits}");
        }
    }

    #[test]
    fn bytes_are_text_only_when_they_are_utf8() {
        let shown = |bytes| format!("{:?}", bound(Value::Bytes(bytes)));
        assert_eq!(shown(b"a\0b"), "Borrowed(Text([97, 0, 98]))");
        assert_eq!(shown(b"\xff"), "Borrowed(Blob([255]))");
        assert_eq!(shown(b""), "Borrowed(Text([]))");
        assert_eq!(format!("{:?}", bound(Value::Null)), "Borrowed(Null)");
    }
}
