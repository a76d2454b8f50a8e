//! A record that was not stored, as it is kept and as it is read again.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;

/// A refused row on its way into the table.
#[derive(Clone, Debug)]
pub(crate) struct Letter<'a> {
    pub(crate) at_us: i64,
    pub(crate) row: &'a [u8],
    pub(crate) code: &'a str,
    pub(crate) text: Cow<'a, str>,
    /// The batch is sent again, and its letters may be in the table: so many of this request there
    /// must be in the end. None where it is new.
    pub(crate) count: Option<i64>,
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
