//! Numbers that MySQL and MariaDB calculate with, or compare with something unknown.

use fields::Value;

use crate::{Decimal, Mismatch, is_blank};

/// The digits of a number that a server calculates with. `doubles`: it may do so with doubles.
pub(super) fn number(value: Value<'_>, doubles: bool) -> Result<&[u8], Mismatch> {
    let digits = match value {
        Value::Json(b"true") => b"1",
        Value::Json(b"false") => b"0",
        _ => value.bytes_or_empty(),
    };
    let number = Decimal::of(digits).filter(|_| !has_blanks(digits));
    match number {
        None => Err("is a part of a calculation, and takes a number".into()),
        Some(_) if is_whole(digits) => Ok(digits),
        Some(number) if doubles && number.is_kept_by_double() => Ok(digits),
        Some(_) => Err("is a part of a calculation, which would be one of doubles; \
             `cast(:x as decimal(65,30))` is exact, and `cast(:x as double)` is not"
            .into()),
    }
}

/// The digits of an argument of `greatest` or `least`. `None`: it is a text. `numbers`: it may be a number.
pub(super) fn argument(
    value: Value<'_>,
    is_json: bool,
    numbers: bool,
) -> Result<Option<&[u8]>, Mismatch> {
    let is_number = matches!(value, Value::Number(_) | Value::Json(b"true" | b"false"));
    let is_digits = || !is_json && Decimal::of(value.bytes_or_empty()).is_some();
    if !numbers && (is_number || is_digits()) {
        return Err("is an argument of `greatest` or `least`; `cast(:x as decimal(65,30))` makes it a number, and \
             `cast(:x as char)` a text"
            .into());
    }
    if is_number { number(value, false).map(Some) } else { Ok(None) }
}

/// Whether it is a whole number of 64 bits in plain digits.
pub(super) fn is_whole(digits: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(digits) else { return false };
    text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
}

/// Whether a server that compares this number as a double finds no other one.
pub(super) fn is_compared_exactly(digits: &[u8]) -> bool {
    Decimal::of(digits).is_some_and(|it| it.is_distinguished_by_double())
}

fn has_blanks(text: &[u8]) -> bool {
    text.iter().any(|it| is_blank(char::from(*it)))
}
