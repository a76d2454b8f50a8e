//! What a column takes, and how a value of a record gets there: exactly as it was given, or not at all.
//!
//! Databases round numbers, cut fractions of seconds, forget time zones and take base64 for text, and
//! report no error. So each driver says for each parameter which column it goes into, where it knows
//! that. A value that the column would change is refused before it is sent; what a database refuses by
//! itself is left to it.

mod operand;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fields::Value;
use serde_json::value::RawValue;

use crate::{Decimal, EnumValues, Mismatch, Name, PlainWrite, is_blank, time};

const NOT_ARRAY: &str = "takes a JSON array";
const NOT_WHOLE: &str = "takes whole numbers";
const NOT_DECIMAL: &str = "takes a decimal number, such as `1.5` or `15e-1`";
const NOT_JSON_NUMBER: &str = "takes numbers as JSON writes them";
const NOT_BASE64: &str = "takes a string of bytes in base64";

/// Dimensions of an array of PostgreSQL at most (`MAXDIM`).
const DIMENSIONS_MAX: u32 = 6;

/// What a column takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Takes {
    /// It is not known, or takes anything: `true` and `false` are the numbers 1 and 0.
    #[default]
    Any,
    /// Text, or what is read from text: JSON is its text.
    Text,
    /// Text of so many letters, beyond which databases cut blanks.
    Limited(usize),
    /// Text of so many bytes, beyond which databases cut blanks.
    LimitedBytes(usize),
    /// One of a list of words, or several, which numbers would count.
    Word(EnumValues),
    /// `true` and `false`.
    Bool,
    /// Whole numbers.
    Integer,
    /// Whole numbers from 0 to this one.
    Unsigned(u64),
    /// SQLite's numbers: whole ones of 64 bits, others as doubles.
    Number,
    /// Numbers of 32 bits.
    Single,
    /// Numbers of 64 bits.
    Double,
    /// Decimal numbers, with so many decimal places where they are limited.
    Decimal(Option<u32>),
    /// Decimal numbers of MySQL and MariaDB with so many decimal places. The servers drop digits of long notations.
    ShortDecimal(u32),
    /// Numbers of so many bits in MySQL and MariaDB, and texts, which are their bytes.
    Bits(u32),
    /// Numbers of these kinds, which are rounded to so many decimal places.
    Rounded(Box<Self>, u32),
    /// Years from 1901 to 2155, and the number 0.
    Year,
    /// Bytes, which JSON has in base64.
    Bytes,
    /// JSON. Records of other formats, which have no strings of their own, hold its text.
    Json,
    /// JSON in SQLite, whose numbers are [`Number`](Self::Number)s.
    JsonOfNumbers,
    /// Days.
    Date,
    /// Times of day, with so many digits of a fraction of a second.
    Time(u32),
    /// The same with a zone.
    ZonedTime(u32),
    /// Days with times without a zone, which are in UTC, with so many digits of a fraction of a second.
    Utc(u32),
    /// Instants with a zone, with so many digits of a fraction of a second.
    Instant(u32),
    /// Arrays of these.
    Array(Box<Self>),
    /// Ranges of these, one or several, in the notation of PostgreSQL.
    Range(Box<Self>),
    /// What several columns take, because one parameter goes into each of them.
    Each(Vec<Self>),
    /// Values that MySQL and MariaDB compare.
    Compared(Compared),
    /// Numbers that MySQL and MariaDB calculate with. They take a text for a double.
    Operand {
        /// The result is a double in any case.
        doubles: bool,
    },
    /// Arguments of `greatest` and `least` of MySQL and MariaDB: texts are compared letter by letter, also those of
    /// numbers.
    Extreme {
        /// Numbers are compared as numbers.
        numbers: bool,
    },
}

/// What a value is compared with in MySQL and MariaDB. They convert values of another type: `abc` is the number 0, and a
/// number is compared with texts as a double.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Whole numbers.
    Integer {
        /// `true` and `false` are 1 and 0.
        booleans: bool,
    },
    /// Decimal numbers.
    Decimal {
        /// A double distinguishes all numbers of the column.
        is_short: bool,
    },
    /// Binary numbers.
    Double,
    /// Times, as a column takes them.
    Time(Box<Takes>),
    /// The names of an `enum` or a `set`.
    Word(EnumValues),
    /// Text.
    Text,
    /// Another parameter: numbers are compared as numbers, texts as texts.
    Parameter,
    /// It is not known: numbers are passed as text.
    Expression,
}

/// A value as its column takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit<'v> {
    /// None.
    Null,
    /// Text.
    Text(Cow<'v, [u8]>),
    /// The digits of a number.
    Number(Cow<'v, [u8]>),
    /// No text.
    Bytes(Cow<'v, [u8]>),
}

impl Takes {
    /// Whether there is no value that [`fit`](Self::fit) refuses.
    #[must_use]
    pub const fn takes_all(&self) -> bool {
        matches!(self, Self::Any | Self::Text | Self::Bool)
    }

    /// Whether it is a binary number.
    pub(crate) fn is_double(&self) -> bool {
        matches!(self, Self::Single | Self::Double | Self::Rounded(..))
    }

    /// Whether it is another number of MySQL and MariaDB.
    pub(crate) const fn is_number(&self) -> bool {
        matches!(self, Self::Integer | Self::ShortDecimal(_) | Self::Bits(_) | Self::Year)
    }

    /// The value as the column takes it. `is_json`: it was read from a format that has strings of its
    /// own.
    ///
    /// # Errors
    /// When the column would change it.
    pub fn fit<'v>(&self, value: Value<'v>, is_json: bool) -> Result<Fit<'v>, Mismatch> {
        if value.is_null() {
            return Ok(Fit::Null);
        }
        let bytes = value.bytes_or_empty();
        match self {
            Self::Bytes => return fit_bytes(value, is_json),
            Self::Json => return fit_json(value, is_json),
            Self::JsonOfNumbers => {
                // The database takes a text for a number where it looks like one.
                let is_string = matches!(value, Value::Bytes(_)) && is_json;
                if !is_string && bytes.contains(&0) {
                    return Err(NOT_JSON_NUMBER.into());
                }
                if !is_string && Decimal::of(bytes).is_some() {
                    serde_json::from_slice::<&RawValue>(bytes).map_err(|_| NOT_JSON_NUMBER)?;
                    Self::Number.check_number(bytes)?;
                }
                return fit_json(value, is_json);
            }
            Self::Each(columns) => return fit_each(columns, value, is_json),
            Self::Compared(of) => return of.fit(value, is_json),
            Self::Operand { doubles } => {
                return operand::number(value, *doubles).map(|it| Fit::Number(it.into()));
            }
            Self::Extreme { numbers } => {
                let number = operand::argument(value, is_json, *numbers)?;
                return Ok(match number {
                    Some(digits) => Fit::Number(digits.into()),
                    None => Fit::Text(bytes.into()),
                });
            }
            Self::Array(_)
                if matches!(value, Value::Number(_) | Value::Json(b"true" | b"false")) =>
            {
                return Err(NOT_ARRAY.into());
            }
            Self::Array(of) => {
                return match value {
                    Value::Json(text) => of.fit_array(text, 1).map(|it| Fit::Text(it.into())),
                    _ => Ok(plain(value)),
                };
            }
            // A JSON array of two is a range as well.
            Self::Range(of) => return of.fit_range(bytes).map(|it| Fit::Text(it.into())),
            Self::Word(_) if matches!(value, Value::Number(_)) => {
                return Err("takes a string".into());
            }
            // `false` would become the day 0000-00-00, `true` the year 2001.
            Self::Year
            | Self::Date
            | Self::Time(_)
            | Self::ZonedTime(_)
            | Self::Utc(_)
            | Self::Instant(_)
                if matches!(value, Value::Json(_)) =>
            {
                return Err("takes a string".into());
            }
            Self::Limited(letters) if cuts_blanks(bytes, *letters) => {
                return Err(format!("keeps {letters} letters, also of blanks").into());
            }
            Self::LimitedBytes(most) if bytes.len() > *most && ends_with_blank(bytes) => {
                return Err(format!("keeps {most} bytes, also of blanks").into());
            }
            Self::Word(words) => {
                words.check(bytes)?;
                return Ok(plain(value));
            }
            Self::Text | Self::Limited(_) | Self::LimitedBytes(_) | Self::Bool => {
                return Ok(plain(value));
            }
            _ => {}
        }
        if let Value::Json(text) = value {
            return Ok(match text {
                b"true" => Fit::Number(Cow::Borrowed(b"1")),
                b"false" => Fit::Number(Cow::Borrowed(b"0")),
                _ => Fit::Text(text.into()),
            });
        }
        match self {
            Self::Integer
            | Self::Number
            | Self::Single
            | Self::Double
            | Self::Decimal(_)
            | Self::Rounded(..) => self.check_number(bytes)?,
            Self::Unsigned(most) => check_unsigned(bytes, *most)?,
            Self::ShortDecimal(_) => self.check_number(bytes)?,
            Self::Bits(bits) if matches!(value, Value::Number(_)) => {
                check_unsigned(bytes, u64::MAX.checked_shr(64 - bits).unwrap_or(0))?;
            }
            Self::Year => check_year(value)?,
            Self::Date => time::check_date(bytes)?,
            Self::Time(digits) => time::check_time(bytes, *digits, false)?,
            Self::ZonedTime(digits) => time::check_time(bytes, *digits, true)?,
            Self::Instant(digits) => time::check_fraction(bytes, *digits)?,
            Self::Utc(digits) => {
                if let Some(text) = time::to_utc(bytes, *digits)? {
                    return Ok(Fit::Text(text.into_bytes().into()));
                }
            }
            _ => {}
        }
        Ok(plain(value))
    }

    /// Refuses a number that is not kept, and a text with digits that is no decimal number where a database
    /// may read one in it and round it: `0x1F`, `1_000`, `1.6e`, `1.6e 1`. A text without digits is left to the
    /// database.
    fn check_number(&self, text: &[u8]) -> Result<(), Mismatch> {
        let Some(number) = Decimal::of(text) else {
            return match self {
                _ if !text.iter().any(u8::is_ascii_digit) => Ok(()),
                // SQLite reads the number before the NUL.
                Self::Number if text.contains(&0) => Err(NOT_DECIMAL.into()),
                // These are not rounded.
                Self::Number | Self::Decimal(None) => Ok(()),
                Self::Integer if !may_be_fraction(text) => Ok(()),
                Self::Integer => Err(NOT_WHOLE.into()),
                _ => Err(NOT_DECIMAL.into()),
            };
        };
        match self {
            Self::Integer if number.places() > 0 => Err(NOT_WHOLE.into()),
            Self::Number if !number.is_kept_by_sqlite() => Err("would round the number".into()),
            Self::Single if !number.is_kept_by_single() => Err("would round the number".into()),
            Self::Double if !number.is_kept_by_double() => Err("would round the number".into()),
            Self::Decimal(Some(places)) | Self::ShortDecimal(places) | Self::Rounded(_, places)
                if number.places() > u64::from(*places) =>
            {
                Err(format!("keeps {places} decimal places").into())
            }
            Self::ShortDecimal(_) if !number.is_short() => Err("takes a shorter notation".into()),
            Self::Rounded(of, _) => of.check_number(text),
            _ => Ok(()),
        }
    }

    /// A range as PostgreSQL writes it, each of its bounds as the column takes it.
    fn fit_range(&self, text: &[u8]) -> Result<Vec<u8>, Mismatch> {
        let mut out = Vec::with_capacity(text.len());
        let is_mark = |byte: &u8| b"[](){},\"".contains(byte);
        for part in text.chunk_by(|one, other| is_mark(one) == is_mark(other)) {
            let bound = trimmed(part);
            if bound.is_empty() || is_mark(&part[0]) || bound.eq_ignore_ascii_case(b"empty") {
                out.extend_from_slice(part);
                continue;
            }
            match self.fit(Value::Bytes(bound), true)? {
                Fit::Text(fitted) => out.extend_from_slice(&fitted),
                _ => out.extend_from_slice(part),
            }
        }
        Ok(out)
    }

    /// A JSON array as PostgreSQL reads one.
    fn fit_array(&self, text: &[u8], dimension: u32) -> Result<Vec<u8>, Mismatch> {
        if dimension > DIMENSIONS_MAX {
            return Err("takes arrays of up to 6 dimensions".into());
        }
        let elements: Vec<&RawValue> = serde_json::from_slice(text).map_err(|_| NOT_ARRAY)?;
        let mut out = vec![b'{'];
        for element in elements {
            if out.len() > 1 {
                out.push(b',');
            }
            let raw = element.get().as_bytes();
            let unescaped: String;
            let value = match raw {
                b"null" => Value::Null,
                [b'"', ..] => {
                    unescaped = serde_json::from_slice(raw).map_err(|_| "takes valid strings")?;
                    Value::Bytes(unescaped.as_bytes())
                }
                [b'[', ..] if *self != Self::Json => {
                    out.extend(self.fit_array(raw, dimension + 1)?);
                    continue;
                }
                [b'[' | b'{' | b't' | b'f', ..] => Value::Json(raw),
                _ => Value::Number(raw),
            };
            self.fit(value, true)?.push_element(&mut out);
        }
        out.push(b'}');
        Ok(out)
    }
}

/// A text without the blanks beside it.
fn trimmed(text: &[u8]) -> &[u8] {
    let is_letter = |byte: &u8| !is_blank(char::from(*byte));
    let Some(start) = text.iter().position(is_letter) else { return b"" };
    let end = text.iter().rposition(is_letter).unwrap_or(start);
    &text[start..=end]
}

/// Whether a database may read a fraction in the text. Hexadecimal numbers and the like have none.
fn may_be_fraction(text: &[u8]) -> bool {
    let text = trimmed(text);
    let unsigned = if let [b'-' | b'+', rest @ ..] = text { rest } else { text };
    let has_prefix = matches!(unsigned, [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..]);
    !has_prefix && text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// Refuses what is no whole number up to `most`, and one that is read as octal digits.
fn check_unsigned(text: &[u8], most: u64) -> Result<(), Mismatch> {
    let text = trimmed(text);
    let is_plain =
        text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || !text.starts_with(b"0"));
    let number = std::str::from_utf8(text).ok().filter(|_| is_plain);
    let number: Option<u64> = number.and_then(|number| number.parse().ok());
    let is_kept = number.is_some_and(|number| number <= most);
    if is_kept { Ok(()) } else { Err(format!("takes whole numbers from 0 to {most}").into()) }
}

/// Refuses a year that a database would take for another one.
fn check_year(value: Value<'_>) -> Result<(), Mismatch> {
    let digits = value.bytes_or_empty();
    let is_year = digits.len() == 4 && digits.iter().all(u8::is_ascii_digit);
    let is_stored = digits == b"0000" || (&b"1901"[..]..=b"2155").contains(&digits);
    let is_kept = is_year && is_stored || matches!(value, Value::Number(b"0"));
    if is_kept { Ok(()) } else { Err("takes a year from 1901 to 2155, or 0000".into()) }
}

/// Whether a text has more than so many letters, all blanks. Some databases cut spaces only and refuse
/// others.
fn cuts_blanks(text: &[u8], letters: usize) -> bool {
    let count = |text: &[u8]| String::from_utf8_lossy(text).chars().count();
    let blanks = text.iter().rev().take_while(|byte| is_blank(char::from(**byte))).count();
    text.len() > letters && blanks > 0 && {
        let rest = count(&text[..text.len() - blanks]);
        rest <= letters && rest + blanks > letters
    }
}

fn ends_with_blank(text: &[u8]) -> bool {
    text.last().is_some_and(|byte| is_blank(char::from(*byte)))
}

/// A value whose column takes it as it is.
fn plain(value: Value<'_>) -> Fit<'_> {
    match value {
        Value::Null => Fit::Null,
        Value::Number(digits) => Fit::Number(digits.into()),
        Value::Bytes(text) | Value::Json(text) => Fit::Text(text.into()),
    }
}

fn fit_bytes(value: Value<'_>, is_json: bool) -> Result<Fit<'_>, Mismatch> {
    match value {
        Value::Bytes(bytes) if !is_json => Ok(Fit::Bytes(bytes.into())),
        Value::Bytes(text) => {
            let mut bytes = vec![0; base64::decoded_len_estimate(text.len())];
            let length = STANDARD.decode_slice(text, &mut bytes).map_err(|_| NOT_BASE64)?;
            bytes.truncate(length);
            Ok(Fit::Bytes(bytes.into()))
        }
        _ => Err(NOT_BASE64.into()),
    }
}

fn fit_json(value: Value<'_>, is_json: bool) -> Result<Fit<'_>, Mismatch> {
    match value {
        Value::Bytes(text) if is_json => {
            let text = std::str::from_utf8(text).map_err(|_| "takes UTF-8")?;
            let quoted = serde_json::to_vec(text).map_err(|_| "takes a JSON string")?;
            Ok(Fit::Text(quoted.into()))
        }
        other => Ok(plain(other)),
    }
}

impl Fit<'_> {
    /// Appends an element of an array of PostgreSQL.
    pub fn push_element(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            // Nothing in a number needs quotes.
            Self::Number(digits) => out.extend_from_slice(digits),
            Self::Text(text) => push_quoted(out, text),
            Self::Bytes(bytes) => {
                out.extend_from_slice(b"\"\\");
                push_hexadecimal(out, bytes);
                out.push(b'"');
            }
        }
    }
}

fn push_quoted(out: &mut Vec<u8>, mut bytes: &[u8]) {
    out.push(b'"');
    while let Some(at) = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        out.extend_from_slice(&bytes[..at]);
        out.extend_from_slice(&[b'\\', bytes[at]]);
        bytes = &bytes[at + 1..];
    }
    out.extend_from_slice(bytes);
    out.push(b'"');
}

/// Appends bytes as a `bytea` reads them.
pub fn push_hexadecimal(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    out.extend_from_slice(b"\\x");
    out.extend(bytes.iter().flat_map(digits));
}

/// Whether a number is read back from a double as it is.
#[must_use]
pub fn is_kept_by_double(digits: &[u8]) -> bool {
    Decimal::of(digits).is_some_and(|number| number.is_kept_by_double())
}

impl Compared {
    /// The value as the server compares it without a change.
    fn fit<'v>(&self, value: Value<'v>, is_json: bool) -> Result<Fit<'v>, Mismatch> {
        const NOT_INTEGER: &str =
            "is compared with a whole number of up to 64 bits, in plain digits";
        const NOT_A_TIME: &str = "is compared with a time, and there is no such time";
        let bytes = value.bytes_or_empty();
        let text = || Ok(Fit::Text(bytes.into()));
        let number = match value {
            Value::Json(b"true") => &b"1"[..],
            Value::Json(b"false") => b"0",
            _ => bytes,
        };
        let is_boolean = matches!(value, Value::Json(b"true" | b"false"));
        match self {
            Self::Integer { booleans: false } if is_boolean => Err(NOT_INTEGER.into()),
            Self::Integer { .. } | Self::Decimal { .. }
                if operand::is_whole(number) && (!is_boolean || self.takes_booleans()) =>
            {
                Ok(Fit::Number(number.into()))
            }
            Self::Integer { .. } => Err(NOT_INTEGER.into()),
            Self::Decimal { is_short: true } | Self::Double
                if !is_boolean
                    && trimmed(bytes).len() == bytes.len()
                    && is_kept_by_double(bytes) =>
            {
                Ok(Fit::Number(bytes.into()))
            }
            Self::Double | Self::Decimal { is_short: true } => {
                Err("is compared with a number that a double keeps".into())
            }
            Self::Decimal { is_short: false } => {
                Err(format!("{NOT_INTEGER}; `cast(:x as decimal(65,30))` compares others").into())
            }
            // MySQL and MariaDB compare it with the time 0.
            Self::Time(_) if std::str::from_utf8(bytes).is_ok_and(time::is_word) => {
                Err("is compared with a time, and not with a word such as `now`".into())
            }
            Self::Time(of) => {
                let (Fit::Text(text) | Fit::Number(text)) = of.fit(value, is_json)? else {
                    return Err(NOT_A_TIME.into());
                };
                let in_full = match **of {
                    Takes::Date => time::day_in_full(&text),
                    Takes::Time(_) => time::duration_in_full(&text),
                    _ => time::time_in_full(&text),
                };
                // Another text is compared as the time 0 as well.
                let in_full = in_full.ok_or(NOT_A_TIME)?;
                Ok(Fit::Text(in_full.into_bytes().into()))
            }
            Self::Word(_) if matches!(value, Value::Number(_)) || is_boolean => {
                Err("is compared with a string".into())
            }
            Self::Word(words) if words.is_number(bytes) => {
                Err("is compared with one of its values, not the number of one".into())
            }
            Self::Parameter if is_boolean || matches!(value, Value::Number(_)) => {
                operand::number(value, true).map(|it| Fit::Number(it.into()))
            }
            // The server would compare it with a number as a double.
            Self::Expression
                if matches!(value, Value::Number(_)) && !operand::is_compared_exactly(bytes) =>
            {
                Err("is compared with an expression, and has more digits than a double keeps; \
                     `cast(:x as decimal(65,30))` compares them"
                    .into())
            }
            Self::Expression if is_boolean => {
                Err("is compared with an expression, and cannot be `true` or `false`".into())
            }
            Self::Word(_) | Self::Text | Self::Parameter | Self::Expression => text(),
        }
    }

    const fn takes_booleans(&self) -> bool {
        matches!(self, Self::Integer { booleans: true })
    }
}

/// The value as all of these columns take it.
fn fit_each<'v>(columns: &[Takes], value: Value<'v>, is_json: bool) -> Result<Fit<'v>, Mismatch> {
    const DIFFERENTLY: &str = "goes into columns that store it differently";
    // A column without a type keeps a number, and would keep its digits as a text as well.
    let has = |takes| columns.contains(&takes);
    if matches!(value, Value::Number(_)) && has(Takes::Any) && has(Takes::Text) {
        return Err(DIFFERENTLY.into());
    }
    let mut fits = columns.iter().map(|column| column.fit(value, is_json));
    let first = fits.next().unwrap_or(Ok(Fit::Null))?;
    for fit in fits {
        if fit? != first {
            return Err(DIFFERENTLY.into());
        }
    }
    Ok(first)
}

/// What the parameter `name` of a statement takes: as the columns that it goes into, where the statement
/// says that plainly. `of` finds what a column takes.
#[must_use]
pub fn of_parameter(
    write: Option<&PlainWrite>,
    name: &str,
    of: impl Fn(&Name) -> Option<Takes>,
) -> Option<Takes> {
    let mut columns = Vec::new();
    for given in write?.given.iter().filter(|given| given.name == name) {
        let takes = of(&given.column)?;
        if !columns.contains(&takes) {
            columns.push(takes);
        }
    }
    if columns.len() < 2 { columns.pop() } else { Some(Takes::Each(columns)) }
}

#[cfg(test)]
mod tests;
