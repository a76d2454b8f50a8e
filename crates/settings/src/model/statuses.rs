//! Ranges of HTTP statuses.

use crate::options::{Value, read_as, settings};
use crate::quantities;

/// Parses a range of statuses, such as `200..399`, into its first and its last status. Returns `None` if the text is
/// not a range or contains a number that is not a status.
pub(crate) fn statuses(text: &str) -> Option<(u16, u16)> {
    let (from, to) = quantities::span(text).ok()?;
    let status = |number: u64| u16::try_from(number).ok().filter(|it| (100..=599).contains(it));
    Some((status(from)?, status(to)?)).filter(|(from, to)| from <= to)
}

settings! {
    (u16, u16), read_as::Text:
        Some(Value::Text(text)) => statuses(text).expect("the checks have read it once");
}
