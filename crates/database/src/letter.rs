//! A record that was not stored, as it is kept and as it is read again.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;

use crate::logins::random;

/// Characters that a [uid](Uids) has at most.
pub(crate) const UID_CHARS_MAX: usize = 80;

/// Makes ids of letters: one for each row of each batch, the same however often that is sent, and never
/// that of another row, whichever process wrote it.
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
    /// The rows of another batch follow.
    pub(crate) fn begin_batch(&mut self) {
        self.batch += 1;
    }

    /// The id of row `row` of the batch.
    pub(crate) fn of(&self, row: usize) -> String {
        let Self { writer: [first, second], batch } = self;
        format!("{first:016x}{second:016x}-{batch}-{row}")
    }
}

/// A refused row on its way into the table.
#[derive(Clone, Debug)]
pub(crate) struct Letter<'a> {
    /// Tells it from all other letters, where the table has a column for that.
    pub(crate) uid: String,
    pub(crate) at_us: i64,
    pub(crate) row: &'a [u8],
    pub(crate) code: &'a str,
    pub(crate) text: Cow<'a, str>,
    /// The batch is sent again, and its letters may be in the table. Where they have no uid there, so many
    /// of this request there must be in the end. None where it is new.
    pub(crate) count: Option<i64>,
}

/// What an operator should know of a table without uids.
pub(crate) fn doubt(table: &str) -> String {
    format!(
        "the table `{table}` of dead letters has no readable column `uid` (text of {UID_CHARS_MAX} characters) \
         with a unique key that is not deferrable: after a lost COMMIT a letter may be missing or there twice"
    )
}

/// Says of letters that may be in the table how many of each there must be: one for each that has
/// the same bytes and came at the same time. All those of their batch must be among them.
pub(crate) fn count(letters: &mut [Letter<'_>]) {
    let mut counts: HashMap<(i64, &[u8]), i64> = HashMap::new();
    for letter in letters {
        let count = counts.entry((letter.at_us, letter.row)).or_default();
        *count += 1;
        letter.count = Some(*count);
    }
}

/// A letter as it lies in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLetter {
    /// Its number in the table.
    pub number: i64,
    /// When the request was received, in microseconds since the Unix epoch.
    pub at_us: i64,
    /// The request as it came.
    pub row: Vec<u8>,
    /// The database's code for what was wrong.
    pub code: String,
    /// What was wrong, in the words of the database.
    pub message: String,
}

impl StoredLetter {
    /// The request in base64 (RFC 4648, section 4), where it is no text.
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
        let longest = Uids { writer: [u64::MAX; 2], batch: u64::MAX }.of(usize::MAX);
        assert!(longest.len() <= UID_CHARS_MAX);
    }
}
