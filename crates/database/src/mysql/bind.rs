//! Values on their way there and back.

use fields::Value as Field;
use mysql_async::Value;
use mysql_async::consts::ColumnType;

use crate::digits::Digits;
use crate::rows::Given;

/// How a value of a row is bound; see the head of [`crate::mysql`].
pub(super) fn bound(value: Given<'_>) -> Value {
    match value {
        Given::Value(Field::Null) => Value::NULL,
        Given::Value(Field::Bytes(bytes)) => Value::Bytes(bytes.to_vec()),
        Given::Value(Field::Number(digits)) => {
            let number = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
            number.map_or_else(|| Value::Bytes(digits.to_vec()), Value::Int)
        }
        Given::Integer(number) => Value::Int(number),
        Given::Client(peer) => Value::Bytes(peer.to_string().into_bytes()),
    }
}

/// Notes the text of a value that is not text yet.
pub(super) fn note(value: &Value, of: ColumnType, digits: &mut Digits) {
    match *value {
        Value::NULL | Value::Bytes(_) => {}
        Value::Int(number) => digits.push(number),
        Value::UInt(number) => digits.push(number),
        Value::Float(number) => digits.push(format_args!("{number:?}")),
        Value::Double(number) => digits.push(format_args!("{number:?}")),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            if of == ColumnType::MYSQL_TYPE_DATE {
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

fn fraction(micros: u32) -> String {
    if micros == 0 { String::new() } else { format!(".{micros:06}") }
}

/// A value whose text, where it was none, is the next of `texts`.
pub(super) fn field<'v>(
    value: &'v Value,
    of: ColumnType,
    texts: &mut impl Iterator<Item = &'v [u8]>,
) -> Field<'v> {
    match value {
        Value::NULL => Field::Null,
        Value::Bytes(digits)
            if matches!(of, ColumnType::MYSQL_TYPE_NEWDECIMAL | ColumnType::MYSQL_TYPE_DECIMAL) =>
        {
            Field::Number(digits)
        }
        Value::Bytes(bytes) => Field::Bytes(bytes),
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
        let bound = |digits: &'static [u8]| bound(Given::Value(Field::Number(digits)));
        assert_eq!(bound(b"-17"), Value::Int(-17));
        assert_eq!(bound(b"9223372036854775808"), Value::Bytes(b"9223372036854775808".to_vec()));
        assert_eq!(bound(b"1.50"), Value::Bytes(b"1.50".to_vec()));
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
        assert_eq!(shown(at.clone(), ColumnType::MYSQL_TYPE_DATE), "2026-01-02");
        let of = ColumnType::MYSQL_TYPE_DATETIME;
        assert_eq!(shown(at, of), "2026-01-02 03:04:05.000060");
        assert_eq!(shown(Value::Time(true, 1, 2, 3, 4, 0), of), "-26:03:04");
        assert_eq!(shown(Value::Double(0.1), of), "0.1");
    }
}
