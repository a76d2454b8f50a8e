//! Decides which rows may be sent again when it is unknown whether their COMMIT took effect.
//!
//! A unique key makes this safe if a row has the same key each time it is sent. But a database may replace a given
//! value by a new one: NULL (a row number, a counter, a default), 0 (a counter of MySQL) or `now`. Such rows are found
//! by their values.

use std::ops::Range;

use exchange::Batch;
use fields::Value;

use crate::rows::{Given, Rows, Shape};

/// A column of the key by which an existing row is found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyColumn {
    /// The parameter of the statement that is its value.
    pub(crate) parameter: usize,
    pub(crate) of: KeyType,
}

/// How a column of a key treats the values that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyType {
    /// Stores the same value each time, for anything except NULL.
    Plain,
    /// A counter: stores a new number for 0, and for values that are rounded to it.
    Counter,
    /// A time, which may be given as a word.
    Time,
}

/// The words that PostgreSQL accepts for a time relative to the present.
const WORDS: [&[u8]; 4] = [b"now", b"today", b"tomorrow", b"yesterday"];

impl KeyType {
    /// Whether the column stores the same value each time that it is given this one.
    fn keeps(self, given: Given<'_>) -> bool {
        match (self, given) {
            (_, Given::Value(Value::Null)) => false,
            (Self::Plain, _) | (Self::Time, Given::Integer(_) | Given::Client(_)) => true,
            (Self::Counter, Given::Integer(number)) => number != 0,
            (Self::Counter, Given::Client(_)) => false,
            (Self::Counter, Given::Value(value)) => {
                let text = std::str::from_utf8(value.bytes_or_empty());
                text.ok().and_then(|it| it.parse::<i128>().ok()).is_some_and(|number| number != 0)
            }
            (Self::Time, Given::Value(value)) => {
                let text = value.bytes_or_empty().to_ascii_lowercase();
                WORDS.iter().all(|word| !text.windows(word.len()).any(|it| it == *word))
            }
        }
    }
}

/// Returns the rows of `range` that may be sent again, as ranges in their order. They include rows that stay rejected,
/// because of their dead letters. `key`: `None` if no row is sent again that may be stored.
pub(crate) fn repeatable(
    key: Option<&[KeyColumn]>,
    shape: &Shape,
    rows: &Rows,
    range: Range<usize>,
    batch: &Batch,
) -> Vec<Range<usize>> {
    let keeps = |row: usize, column: &KeyColumn| {
        column.of.keeps(rows.given(row, shape.parameters[column.parameter], batch))
    };
    let mut found: Vec<Range<usize>> = Vec::new();
    for row in range {
        let may_be_sent = match rows.is_unsure(row) {
            true => key.is_some_and(|key| key.iter().all(|column| keeps(row, column))),
            false => rows.is_settled(row),
        };
        if !may_be_sent {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.end == row => last.end = row + 1,
            _ => found.push(row..row + 1),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_the_database_replaces_is_not_kept() {
        let text = |text: &'static str| Given::Value(Value::Bytes(text.as_bytes()));
        for of in [KeyType::Plain, KeyType::Counter, KeyType::Time] {
            assert!(!of.keeps(Given::Value(Value::Null)), "{of:?}");
            assert!(of.keeps(Given::Integer(7)), "{of:?}");
            assert!(of.keeps(text("7")), "{of:?}");
        }
        for given in ["0", "00", "-0", "0.4", "1e-9", "", " 0", "false", "0x0"] {
            assert!(!KeyType::Counter.keeps(text(given)), "{given}");
            assert!(KeyType::Plain.keeps(text(given)), "{given}");
        }
        assert!(!KeyType::Counter.keeps(Given::Integer(0)));
        for given in ["now", " NOW ", "tomorrow 10:00", "Yesterday", "{today}"] {
            assert!(!KeyType::Time.keeps(text(given)), "{given}");
            assert!(KeyType::Plain.keeps(text(given)), "{given}");
        }
        assert!(KeyType::Time.keeps(text("2026-11-22 10:00:00+00")));
    }
}
