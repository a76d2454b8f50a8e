//! Ranges of HTTP statuses.

use crate::options::{Value, read_as, settings};
use crate::quantities;

/// The first and the last status of a range, written `200..399`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Statuses(pub(crate) u16, pub(crate) u16);

impl Statuses {
    /// Parses a range. Returns `None` if the text is not a range or contains a number that is not a status.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (from, to) = quantities::span(text).ok()?;
        let status = |number: u64| u16::try_from(number).ok().filter(|it| (100..=599).contains(it));
        Some(Self(status(from)?, status(to)?)).filter(|Self(from, to)| from <= to)
    }
}

settings! {
    Statuses, read_as::Text:
        Some(Value::Text(text)) => Self::read(text).expect("the checks have read it once");
}
