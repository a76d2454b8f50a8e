//! A record that was not stored: the dead letter to write, and the dead letter that is read.

use std::borrow::Cow;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;

use crate::DatabaseError;
use crate::logins::random;

/// The minimum number of characters of a column for [uids](Uids).
pub(crate) const UID_CHARS_MIN: usize = 80;

/// Makes the ids of dead letters: one for each row of each batch. It is the same each time that the row is sent, and
/// never the same as that of another row of any process. All ids have the same length and contain only hexadecimal
/// digits, so every collation distinguishes them.
#[derive(Debug)]
pub(crate) struct Uids {
    writer: [u64; 2],
    batch: u64,
}

impl Default for Uids {
    fn default() -> Self {
        Self { writer: [random(), random()], batch: 0 }
    }
}

impl Uids {
    /// Starts the next batch.
    pub(crate) fn begin_batch(&mut self) {
        self.batch += 1;
    }

    /// Returns the id of row `row` of the batch.
    pub(crate) fn of(&self, row: usize) -> String {
        let Self { writer: [first, second], batch } = self;
        format!("{first:016x}{second:016x}{batch:016x}{row:016x}")
    }
}

/// A rejected row to be written into the table.
#[derive(Clone, Debug)]
pub(crate) struct Letter<'a> {
    /// The unique id of the dead letter.
    pub(crate) uid: String,
    pub(crate) at_us: i64,
    pub(crate) row: &'a [u8],
    pub(crate) code: &'a str,
    pub(crate) text: Cow<'a, str>,
}

impl Letter<'_> {
    /// Returns the dead letter with its text in ASCII, which every encoding contains. `None` if the text is ASCII
    /// already.
    pub(crate) fn in_ascii(&self) -> Option<Self> {
        if self.text.is_ascii() {
            return None;
        }
        let mut text = String::with_capacity(2 * self.text.len());
        for letter in self.text.chars() {
            match letter.is_ascii() {
                true => text.push(letter),
                false => text.extend(letter.escape_unicode()),
            }
        }
        Some(Self { text: text.into(), ..self.clone() })
    }
}

/// Returns the error of a table that does not keep uids as a key. `sql` repairs it.
pub(crate) fn without_uids(table: &str, sql: &str) -> DatabaseError {
    let text = format!(
        "it has no text column `uid` of {UID_CHARS_MIN} characters or more with a unique key of its own; \
         repair it with: {sql}"
    );
    DatabaseError::Dead(table.to_owned(), text.into())
}

/// Returns the error of a view that is named as the table.
pub(crate) fn of_a_view(table: &str) -> DatabaseError {
    let text = "it is no table of its own, and has no unique key: name a table";
    DatabaseError::Dead(table.to_owned(), text.into())
}

/// A dead letter in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLetter {
    /// The number of the dead letter in the table.
    pub number: i64,
    /// The time when the request was received, in microseconds since the Unix epoch.
    pub at_us: i64,
    /// The request as received.
    pub row: Vec<u8>,
    /// The error code of the database.
    pub code: String,
    /// The error message of the database.
    pub message: String,
}

impl StoredLetter {
    /// Returns the request in base64 (RFC 4648, section 4), if it is not text.
    #[must_use]
    pub fn in_base64(&self) -> Option<String> {
        let is_text = std::str::from_utf8(&self.row).is_ok();
        (!is_text).then(|| Base64Display::new(&self.row, &STANDARD).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_each_batch_of_each_writer_has_a_uid_of_its_own() {
        let (mut one, other) = (Uids::default(), Uids::default());
        let first = one.of(0);
        assert_eq!(first, one.of(0));
        assert_ne!(first, one.of(1));
        assert_ne!(first, other.of(0));
        one.begin_batch();
        assert_ne!(first, one.of(0));
        let of = |number: u64, row: usize| Uids { writer: [number; 2], batch: number }.of(row);
        assert!(of(u64::MAX, usize::MAX).len() <= UID_CHARS_MIN);
        // A collation may ignore signs, or compare numbers by their value.
        for uid in [first, of(0, 0), of(u64::MAX, usize::MAX)] {
            assert!(uid.len() == 64 && uid.bytes().all(|it| it.is_ascii_hexdigit()), "{uid}");
        }
    }

    #[test]
    fn a_text_is_written_in_ascii_with_the_numbers_of_its_other_letters() {
        let letter = |text| Letter { uid: String::new(), at_us: 1, row: b"\xff", code: "1", text };
        assert!(letter("plain `x`".into()).in_ascii().is_none());
        let escaped = letter("a \u{65e5} \u{1f600}".into()).in_ascii().unwrap();
        assert_eq!(escaped.text, "a \\u{65e5} \\u{1f600}");
    }
}
