//! The line of work that demo, load and the built-in worker use.
//!
//! What it is: `ID AT PATH STATUS`, the hit of a web server as one line, and the same four values as a JSON record
//! `{"id":…,"at":…,"path":"…","status":…}`. Both are read from and written to byte buffers without an allocation. What
//! it depends on: the rules of the four values. What it must never depend on: the sender of a line, or its outcome.
//!
//! ```
//! use roadstead::record::Record;
//!
//! let record = Record::parse(b"7 1700000000000000 /a/17 200").unwrap();
//! let mut json = Vec::new();
//! record.write_json(&mut json);
//! assert_eq!(json, br#"{"id":7,"at":1700000000000000,"path":"/a/17","status":200}"#);
//! assert_eq!(Record::parse_json(&json), Ok(record));
//! ```

use std::fmt;

use exchange::Random;

/// The maximum length of a path in bytes.
pub const PATH_MAX: usize = 1024;

/// The largest id and the largest time: the largest signed number that every database can store.
pub const NUMBER_MAX: u64 = i64::MAX as u64;

/// One hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The id, unique within a run, at most [`NUMBER_MAX`].
    pub id: u64,
    /// The time in microseconds since 1970, at most [`NUMBER_MAX`].
    pub at: u64,
    /// The requested path and query: a slash and further characters that are legal there (RFC 3986 §3.3 and §3.4, so
    /// neither space nor quote), at most [`PATH_MAX`] bytes.
    pub path: &'a str,
    /// The status of the response: 200 to 599.
    pub status: u16,
}

/// The error in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The line is not four values with one space between them.
    Shape,
    /// The line is not a JSON object with the four members in their order.
    Json,
    /// The id is not a number, or too large.
    Id,
    /// The time is not a number, or too large.
    At,
    /// The path does not begin with a slash, contains an illegal character, or is too long.
    Path,
    /// The status is not 200 to 599.
    Status,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shape => "expected ID AT PATH STATUS with one space between them",
            Self::Json => r#"expected {"id":…,"at":…,"path":"…","status":…}"#,
            Self::Id => "the id is not a number up to 2^63-1",
            Self::At => "the time is not in microseconds since 1970",
            Self::Path => "the path must begin with / and hold up to 1024 characters of a path",
            Self::Status => "the status is not 200 to 599",
        })
    }
}

impl std::error::Error for Flaw {}

impl<'a> Record<'a> {
    /// Parses `ID AT PATH STATUS`. `line` has no line end.
    ///
    /// # Errors
    /// The first [`Flaw`] from the left.
    pub fn parse(line: &'a [u8]) -> Result<Self, Flaw> {
        let mut values = line.split(|&byte| byte == b' ');
        let mut value = || values.next().ok_or(Flaw::Shape);
        let (id, at, path, status) = (value()?, value()?, value()?, value()?);
        if value().is_ok() {
            return Err(Flaw::Shape);
        }
        Self::of(id, at, path, status)
    }

    /// Parses the JSON record, in the form that [`Self::write_json`] writes.
    ///
    /// # Errors
    /// The first [`Flaw`] from the left.
    pub fn parse_json(line: &'a [u8]) -> Result<Self, Flaw> {
        let mut rest = line;
        let mut member = |before: &[u8], end: u8| {
            let value = rest.strip_prefix(before)?;
            let length = value.iter().position(|&byte| byte == end)?;
            rest = &value[length + 1..];
            Some(&value[..length])
        };
        let id = member(b"{\"id\":", b',').ok_or(Flaw::Json)?;
        let at = member(b"\"at\":", b',').ok_or(Flaw::Json)?;
        let path = member(b"\"path\":\"", b'"').ok_or(Flaw::Json)?;
        let status = member(b",\"status\":", b'}').ok_or(Flaw::Json)?;
        if rest.is_empty() { Self::of(id, at, path, status) } else { Err(Flaw::Json) }
    }

    fn of(id: &[u8], at: &[u8], path: &'a [u8], status: &[u8]) -> Result<Self, Flaw> {
        let id = number(id).ok_or(Flaw::Id)?;
        let at = number(at).ok_or(Flaw::At)?;
        let path = checked_path(path).ok_or(Flaw::Path)?;
        let status = number(status)
            .and_then(|status| u16::try_from(status).ok())
            .filter(|status| (200..600).contains(status))
            .ok_or(Flaw::Status)?;
        Ok(Self { id, at, path, status })
    }

    /// Appends `ID AT PATH STATUS`, without a line end.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_number(out, self.id);
        out.push(b' ');
        write_number(out, self.at);
        out.push(b' ');
        out.extend_from_slice(self.path.as_bytes());
        out.push(b' ');
        write_number(out, self.status.into());
    }

    /// Appends the JSON record, without a line end. A path contains no characters that JSON would escape.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":");
        write_number(out, self.id);
        out.extend_from_slice(b",\"at\":");
        write_number(out, self.at);
        out.extend_from_slice(b",\"path\":\"");
        out.extend_from_slice(self.path.as_bytes());
        out.extend_from_slice(b"\",\"status\":");
        write_number(out, self.status.into());
        out.push(b'}');
    }
}

/// Parses decimal digits without sign or leading zero, up to [`NUMBER_MAX`].
#[must_use]
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let mut number = 0_u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Nineteen digits are less than 2^64.
        number = number * 10 + u64::from(digit);
    }
    (number <= NUMBER_MAX).then_some(number)
}

/// Appends `number` in decimal.
pub fn write_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b"0123456789"[(number % 10) as usize];
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

fn checked_path(path: &[u8]) -> Option<&str> {
    let legal = path.first() == Some(&b'/')
        && path.len() <= PATH_MAX
        && path.iter().all(|&byte| LEGAL[usize::from(byte)]);
    if legal { std::str::from_utf8(path).ok() } else { None }
}

/// The legal characters of a path and its query (RFC 3986 §3.3, §3.4).
const LEGAL: [bool; 256] = {
    let mut legal = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        legal[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let marks = b"-._~%!$&'()*+,;=:@/?";
    let mut index = 0;
    while index < marks.len() {
        legal[marks[index] as usize] = true;
        index += 1;
    }
    legal
};

/// Generates the contents of the records of a run: a pure function of seed and id. So a record that is received or
/// stored can be compared with the record that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The seed of the random values.
    pub seed: u64,
}

/// The path and status that a [`Recipe`] generates for one id.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    path: [u8; 7],
    path_length: usize,
    status: u16,
}

impl Recipe {
    /// Returns the path and status of the record `id`.
    #[must_use]
    pub fn sample(self, id: u64) -> Sample {
        let random = Random::new(self.seed ^ Random::new(id).draw()).draw();
        let number = (random >> 32) % 1000;
        let mut path = *b"/a/\0\0\0\0";
        path[1] = b"abcdefghijklmnopqrstuvwxyz"[(random % 26) as usize];
        let mut path_length = 3;
        for divisor in [100, 10, 1] {
            if number >= divisor || divisor == 1 {
                path[path_length] = b"0123456789"[(number / divisor % 10) as usize];
                path_length += 1;
            }
        }
        // The index has 8 bits, so the cast loses nothing.
        let status = STATUSES[((random >> 16) & 0xff) as usize % STATUSES.len()];
        Sample { path, path_length, status }
    }
}

/// The statuses to choose from. Most are successes, as in real traffic.
const STATUSES: [u16; 12] = [200, 200, 200, 200, 200, 200, 204, 301, 304, 404, 500, 599];

impl Sample {
    /// Returns the complete record.
    #[must_use]
    pub fn record(&self, id: u64, at: u64) -> Record<'_> {
        Record { id, at, path: self.path(), status: self.status }
    }

    /// Returns the path, for example `/a/17`.
    #[must_use]
    pub fn path(&self) -> &str {
        std::str::from_utf8(&self.path[..self.path_length]).expect("a sample's path is ASCII")
    }

    /// Returns the status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(record: &Record<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        record.write(&mut out);
        out
    }

    fn json(record: &Record<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        record.write_json(&mut out);
        out
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            id in 0..=NUMBER_MAX, at in 0..=NUMBER_MAX,
            path in "/[a-zA-Z0-9._~%!$&'()*+,;=:@/?-]{0,60}", status in 200_u16..600,
        ) {
            let record = Record { id, at, path: &path, status };
            let (line, json) = (line(&record), json(&record));
            prop_assert_eq!(Record::parse(&line), Ok(record));
            prop_assert_eq!(Record::parse_json(&json), Ok(record));
            let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
            prop_assert_eq!(value, serde_json::json!(
                {"id": id, "at": at, "path": path, "status": status}));
        }

        #[test]
        fn no_bytes_are_read_as_anything_else(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(record) = Record::parse(&bytes) {
                prop_assert_eq!(line(&record), bytes.clone());
            }
            if let Ok(record) = Record::parse_json(&bytes) {
                prop_assert_eq!(json(&record), bytes);
            }
        }

        #[test]
        fn one_changed_byte_is_refused_or_another_record(
            id in 0..=NUMBER_MAX, place in 0_usize..200, to in any::<u8>(),
        ) {
            let sample = Recipe { seed: 3 }.sample(id);
            for form in [line, json] {
                let mut bytes = form(&sample.record(id, 1));
                let place = place % bytes.len();
                prop_assume!(bytes[place] != to);
                bytes[place] = to;
                let read = Record::parse(&bytes).or_else(|_| Record::parse_json(&bytes));
                prop_assert_ne!(read, Ok(sample.record(id, 1)));
            }
        }

        #[test]
        fn a_recipe_makes_legal_records_and_the_same_again(seed in any::<u64>(), id in 0..=NUMBER_MAX) {
            let recipe = Recipe { seed };
            let (line, again) = (line(&recipe.sample(id).record(id, 5)), recipe.sample(id));
            prop_assert_eq!(Record::parse(&line), Ok(again.record(id, 5)));
        }
    }

    #[test]
    fn each_flaw_is_named() {
        let table: &[(&str, Flaw)] = &[
            ("", Flaw::Shape),
            ("1 2 /a", Flaw::Shape),
            ("1 2 /a 200 x", Flaw::Shape),
            ("1 2 /a 200 ", Flaw::Shape),
            ("1  2 /a 200", Flaw::Shape),
            ("x 2 /a 200", Flaw::Id),
            ("-1 2 /a 200", Flaw::Id),
            ("01 2 /a 200", Flaw::Id),
            (" 2 /a 200", Flaw::Id),
            ("9223372036854775808 2 /a 200", Flaw::Id),
            ("99999999999999999999 2 /a 200", Flaw::Id),
            ("1 yesterday /a 200", Flaw::At),
            ("1 2 a 200", Flaw::Path),
            ("1 2 /a\"b 200", Flaw::Path),
            ("1 2 /a\\b 200", Flaw::Path),
            ("1 2 /a\0b 200", Flaw::Path),
            ("1 2 /ä 200", Flaw::Path),
            ("1 2 /a 199", Flaw::Status),
            ("1 2 /a 600", Flaw::Status),
            ("1 2 /a 65736", Flaw::Status),
        ];
        for (line, flaw) in table {
            assert_eq!(Record::parse(line.as_bytes()), Err(*flaw), "{line:?}");
        }
        let long = format!("1 2 /{} 200", "a".repeat(PATH_MAX));
        assert_eq!(Record::parse(long.as_bytes()), Err(Flaw::Path));
    }

    #[test]
    fn a_json_record_with_more_or_less_is_refused() {
        for line in [
            r#"{"id":1,"at":2,"path":"/a","status":200}x"#,
            r#"{"id":1,"at":2,"path":"/a"}"#,
            r#"{"id":1,"path":"/a","at":2,"status":200}"#,
            r#"{"id":1,"at":2,"path":"/a","status":200,"more":1}"#,
        ] {
            assert!(Record::parse_json(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn ids_do_not_all_have_the_same_path() {
        let recipe = Recipe { seed: 1 };
        let paths: std::collections::BTreeSet<_> =
            (0..1000).map(|id| recipe.sample(id).path().to_owned()).collect();
        assert!(paths.len() > 900, "{}", paths.len());
    }
}
