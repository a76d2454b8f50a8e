//! Times in the notations of ISO 8601 that databases read: `2026-01-02T03:04:05.6+07:00`, with a blank instead of the
//! `T`, with `Z` or without a zone, `20260102T030405Z`, and with slashes instead of the dashes. A database may ignore a
//! zone in any other notation. So where no zone is allowed, a text that is not understood here is rejected.

use std::ops::RangeInclusive;

use exchange::{civil_from_days, days_from_civil};

use crate::Mismatch;
use crate::blank::is_blank;

/// Years that every database can store.
const YEARS: RangeInclusive<i64> = 1..=YEAR_MAX;
const YEAR_MAX: i64 = 9999;

/// Words that databases read as a time, without a zone.
const WORDS: [&str; 7] =
    ["-infinity", "epoch", "infinity", "now", "today", "tomorrow", "yesterday"];

/// A day with a time of day.
struct DateTime<'t> {
    day: i64,
    time: Time<'t>,
    zone: Zone,
}

#[derive(Clone, Copy)]
struct Time<'t> {
    /// Minutes of the day.
    minute: i64,
    /// Seconds with their fraction, if there are any.
    seconds: &'t str,
}

/// The text after a time of day.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    None,
    /// The offset from UTC in minutes, positive to the east.
    Ahead(i64),
    /// A word for the half of the day, one for the era, or both.
    Words {
        half: bool,
        era: bool,
    },
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Splits a text after its leading digits.
fn leading_digits(text: &str) -> (&str, &str) {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Reads the day at the start of a text. Returns it and the rest.
fn day_of(text: &str) -> Option<(i64, &str)> {
    let ([year, month, day], rest) = date_of(text)?;
    let days = days_from_civil(year, month, day);
    (civil_from_days(days) == (year, month, day)).then_some((days, rest))
}

/// Reads the year, month and day at the start of a text, even if there is no such day. Returns them and the rest.
fn date_of(text: &str) -> Option<([i64; 3], &str)> {
    let (digits, rest) = leading_digits(text);
    let (year, month, day, rest) = match digits.len() {
        8 | 14 => (&digits[..4], &digits[4..6], &digits[6..8], &text[8..]),
        4..=7 => {
            let between = rest.chars().next().filter(|it| matches!(it, '-' | '/'))?;
            let (month, rest) = leading_digits(&rest[1..]);
            let (day, rest) = leading_digits(rest.strip_prefix(between)?);
            (digits, month, day, rest)
        }
        _ => return None,
    };
    let short = |text: &str| number(text, text.len()).filter(|_| matches!(text.len(), 1 | 2));
    Some(([number(year, year.len())?, short(month)?, short(day)?], rest))
}

/// Reads the time of day at the start of a text. Returns it and the rest.
fn time_of(text: &str) -> Option<(Time<'_>, &str)> {
    let (digits, rest) = leading_digits(text);
    let (hour, minute, seconds) = match digits.len() {
        1 | 2 => match rest.strip_prefix(':') {
            None => (digits, "00", rest),
            Some(rest) => {
                let (minute, rest) = leading_digits(rest);
                (digits, minute, rest.strip_prefix(':').unwrap_or(rest))
            }
        },
        4 | 6 => (&digits[..2], &digits[2..4], &text[4..]),
        _ => return None,
    };
    let (whole, mut rest) = leading_digits(seconds);
    let mut length = whole.len();
    if let Some(fraction) = rest.strip_prefix('.').filter(|_| length > 0) {
        let (fraction, after) = leading_digits(fraction);
        (length, rest) = (length + 1 + fraction.len(), after);
        if fraction.is_empty() {
            return None;
        }
    }
    let (hour, minute) = (number(hour, hour.len())?, number(minute, 2)?);
    let second = if whole.is_empty() { 0 } else { number(whole, 2)? };
    let seconds = &seconds[..length];
    // 24:00 is the end of a day, and 60 is a leap second.
    let is_end = hour == 24 && minute == 0 && seconds.bytes().all(|it| matches!(it, b'0' | b'.'));
    let is_time = (hour <= 23 || is_end) && minute <= 59 && second <= 60;
    is_time.then_some((Time { minute: hour * 60 + minute, seconds }, rest))
}

impl Zone {
    fn of(text: &str) -> Option<Self> {
        let text = text.trim_matches(is_blank);
        let count = |words: [&str; 2]| {
            let found = text.split(is_blank).filter(|it| !it.is_empty());
            found.filter(|it| words.iter().any(|word| it.eq_ignore_ascii_case(word))).count()
        };
        match text {
            "" => Some(Self::None),
            "Z" | "z" => Some(Self::Ahead(0)),
            _ if text.starts_with(['+', '-']) => ahead_of(text).map(Self::Ahead),
            _ => {
                let (half, era) = (count(["am", "pm"]), count(["ad", "bc"]));
                let all = text.split(is_blank).filter(|it| !it.is_empty()).count();
                let is_known = half <= 1 && era <= 1 && half + era == all;
                is_known.then_some(Self::Words { half: half > 0, era: era > 0 })
            }
        }
    }
}

/// Reads the offset of a zone from UTC in minutes: `+02`, `+0200`, `+02:00`.
fn ahead_of(text: &str) -> Option<i64> {
    let digits = text.get(1..)?;
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        _ => digits.split_once(':')?,
    };
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    let ahead = hours * 60 + minutes;
    let is_zone = hours <= 23 && minutes <= 59;
    is_zone.then_some(if text.starts_with('-') { -ahead } else { ahead })
}

impl<'t> DateTime<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let (day, rest) = day_of(text)?;
        let midnight = Time { minute: 0, seconds: "" };
        // Without a time, `pm` would be noon.
        if let Some(zone @ (Zone::None | Zone::Words { half: false, .. })) = Zone::of(rest) {
            return Some(Self { day, time: midnight, zone });
        }
        let time =
            rest.strip_prefix(['T', 't']).unwrap_or_else(|| rest.trim_start_matches(is_blank));
        // Digits alone can also be a day and a time.
        let is_apart = time.len() < rest.len() || leading_digits(text).0.len() == 14;
        let (time, zone) = time_of(time).filter(|_| is_apart)?;
        Some(Self { day, time, zone: Zone::of(zone)? })
    }
}

fn trimmed(text: &[u8]) -> Option<&str> {
    Some(std::str::from_utf8(text).ok()?.trim_matches(is_blank))
}

pub(crate) fn is_word(text: &str) -> bool {
    WORDS.iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}

const NOT_ISO: &str =
    "takes a time as in ISO 8601, such as `2024-01-01T10:00:00+02:00`, or without a zone";
const NOT_TIME: &str = "takes a time of day without a day and a zone, such as `10:00:00`";
const NOT_ZONED: &str = "takes a time of day without a day, such as `10:00:00+02:00`";
const NOT_DAY: &str = "takes a day without a time and a zone, such as `2024-01-31`";

fn too_fine(digits: u32) -> Mismatch {
    match digits {
        0 => "keeps whole seconds".into(),
        _ => format!("keeps {digits} digits of a fraction of a second").into(),
    }
}

/// Whether the seconds have at most this number of digits after the point.
fn fits(seconds: &str, digits: u32) -> bool {
    let fraction = seconds.split_once('.').map_or("", |(_, fraction)| leading_digits(fraction).0);
    fraction.trim_end_matches('0').len() <= digits as usize
}

/// Finds the parts of a text that is not understood which may be seconds with a fraction: digits with one point, as in
/// `1011.5`, or a part after a colon. Several points belong to a day: `1.2.2024`.
fn seconds_of(text: &str) -> impl Iterator<Item = &str> {
    let is_outside = |letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | ':');
    let times = text.split(is_outside).map(|time| (time, time.rsplit(':').next().unwrap_or(time)));
    times.filter_map(|(time, part)| {
        let (whole, _) = part.split_once('.')?;
        let is_time = time.len() > part.len() || part.matches('.').count() == 1;
        (!whole.is_empty() && is_time).then_some(part)
    })
}

/// Rejects a time, in any notation, whose fraction of a second has more than `digits` digits.
///
/// # Errors
/// When the column would change the time.
pub fn check_fraction(text: &[u8], digits: u32) -> Result<(), Mismatch> {
    let Some(text) = trimmed(text) else { return Ok(()) };
    let is_kept = match DateTime::of(text) {
        Some(instant) => fits(instant.time.seconds, digits),
        None => seconds_of(text).all(|seconds| fits(seconds, digits)),
    };
    if is_kept { Ok(()) } else { Err(too_fine(digits)) }
}

/// Rejects a day with a time or a zone, because a database ignores them, and a day in another notation. The database
/// decides whether the day exists.
///
/// # Errors
/// When the column would change the day.
pub fn check_date(text: &[u8]) -> Result<(), Mismatch> {
    let text = trimmed(text).ok_or(NOT_DAY)?;
    let is_alone =
        |(_, rest)| matches!(Zone::of(rest), Some(Zone::None | Zone::Words { half: false, .. }));
    let is_day = is_word(text) || date_of(text).is_some_and(is_alone);
    if is_day { Ok(()) } else { Err(NOT_DAY.into()) }
}

/// Returns a day in the only notation that MySQL and MariaDB cannot misread, from a text that [`check_date`] accepts.
/// `None` if there is no such day from the year 0 to 9999. The day 0000-00-00 is one of theirs.
pub(crate) fn day_in_full(text: &[u8]) -> Option<String> {
    let (date, rest) = date_of(trimmed(text)?)?;
    let is_day = rest.is_empty() && is_date(date);
    let [year, month, day] = date;
    is_day.then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Whether MySQL and MariaDB have this day.
fn is_date([year, month, day]: [i64; 3]) -> bool {
    let is_zero = [year, month, day] == [0; 3];
    let exists = || civil_from_days(days_from_civil(year, month, day)) == (year, month, day);
    is_zero || (0..=YEAR_MAX).contains(&year) && exists()
}

/// Returns a day with a time of day in the only notation that MySQL and MariaDB cannot misread, from a text that
/// [`to_utc`] accepts or returns. `None` if there is no such time: these servers have neither 24:00 nor a second 60, and
/// ignore words behind it.
pub(crate) fn time_in_full(text: &[u8]) -> Option<String> {
    let text = trimmed(text)?;
    let (date, rest) = date_of(text)?;
    let rest = rest.strip_prefix(['T', 't']).unwrap_or_else(|| rest.trim_start_matches(is_blank));
    let (Time { minute, seconds }, rest) = match rest {
        "" => (Time { minute: 0, seconds: "" }, rest),
        time => time_of(time)?,
    };
    let seconds = if seconds.is_empty() { "00" } else { seconds };
    let is_time = rest.is_empty() && is_date(date) && minute < 1440 && !seconds.starts_with('6');
    let [year, month, day] = date;
    let (hour, minute) = (minute / 60, minute % 60);
    is_time.then(|| format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{seconds}"))
}

/// Returns a time of MySQL and MariaDB in the only notation that they cannot misread, from a text that [`check_time`]
/// accepts. `None` if there is no such time: up to 838 hours, 59 minutes, 59 seconds.
pub(crate) fn duration_in_full(text: &[u8]) -> Option<String> {
    let text = trimmed(text)?;
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    let text = text.strip_prefix(['T', 't']).unwrap_or(text);
    let (text, fraction) = text.split_once('.').unwrap_or((text, ""));
    let parts: Vec<&str> = match text.len().checked_sub(4).filter(|_| !text.contains(':')) {
        Some(hours) => {
            vec![text.get(..hours)?, text.get(hours..hours + 2)?, text.get(hours + 2..)?]
        }
        None => text.split(':').collect(),
    };
    let (hour, minute, second) = match *parts {
        [hour, minute] => (hour, minute, "0"),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let part = |text: &str, most| number(text, text.len()).filter(|it| *it <= most);
    let (hour, minute, second) = (part(hour, 838)?, part(minute, 59)?, part(second, 59)?);
    let is_digits = fraction.bytes().all(|it| it.is_ascii_digit());
    let is_last = (hour, minute, second) == (838, 59, 59);
    if !is_digits || is_last && !fraction.trim_end_matches('0').is_empty() {
        return None;
    }
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{hour:02}:{minute:02}:{second:02}{point}{fraction}"))
}

/// Rejects a text that is more than a time of day (with a zone, if `may_have_zone`), and a time whose fraction of a
/// second has more than `digits` digits. The database checks hours and signs.
///
/// # Errors
/// When the column would change the time.
pub fn check_time(text: &[u8], digits: u32, may_have_zone: bool) -> Result<(), Mismatch> {
    /// Three digits for hours, two each for minutes and seconds.
    const DIGITS_MAX: usize = 7;
    /// MySQL and MariaDB read fewer digits as seconds, or minutes and seconds; PostgreSQL reads hours.
    const DIGITS_MIN: usize = 6;
    let not = if may_have_zone { NOT_ZONED } else { NOT_TIME };
    let text = trimmed(text).ok_or(not)?;
    if text.eq_ignore_ascii_case("now") {
        return Ok(());
    }
    let text = text.strip_prefix(['T', 't', '-']).unwrap_or(text);
    let end = text.find(|it: char| !it.is_ascii_digit() && !matches!(it, ':' | '.'));
    let (time, zone) = text.split_at(end.unwrap_or(text.len()));
    let is_bare = !may_have_zone && zone.is_empty() && !time.contains(':');
    let digits_min = if is_bare { DIGITS_MIN } else { 1 };
    let is_time = (digits_min..=DIGITS_MAX).contains(&leading_digits(time).0.len());
    let is_known = match Zone::of(zone) {
        None => false,
        Some(Zone::Ahead(_)) => may_have_zone,
        Some(Zone::None | Zone::Words { era: false, .. }) => true,
        Some(Zone::Words { era: true, .. }) => false,
    };
    // MariaDB reads 10:11.5 as a fraction of minute 11, PostgreSQL as minutes and seconds.
    let is_known = is_known && (time.matches(':').count() != 1 || !time.contains('.'));
    match is_time && is_known {
        false => Err(not.into()),
        true if !fits(time, digits) => Err(too_fine(digits)),
        true => Ok(()),
    }
}

/// Converts a time to UTC, without its zone, in a notation that every database reads. Returns `None` if the text has no
/// zone and every database reads it.
///
/// # Errors
/// When the column would change the time.
pub fn to_utc(text: &[u8], digits: u32) -> Result<Option<String>, Mismatch> {
    let text = trimmed(text).ok_or(NOT_ISO)?;
    // The zero date of MariaDB has no zone either.
    let is_zero =
        || text.starts_with("0000-00-00") && text.bytes().all(|it| b"0-: .".contains(&it));
    if is_word(text) || is_zero() {
        return Ok(None);
    }
    let DateTime { day, time: Time { minute, seconds }, zone } =
        DateTime::of(text).ok_or(NOT_ISO)?;
    if !fits(seconds, digits) {
        return Err(too_fine(digits));
    }
    let ahead = match zone {
        Zone::Ahead(ahead) => ahead,
        // If the text consists of digits alone, some databases do not read the time.
        Zone::None if text.len() > 8 && leading_digits(text).0.len() >= 8 => 0,
        Zone::None | Zone::Words { .. } => return Ok(None),
    };
    let minutes = day * 1440 + minute - ahead;
    let (year, month, day) = civil_from_days(minutes.div_euclid(1440));
    if !YEARS.contains(&year) {
        return Err("takes years from 1 to 9999, in UTC".into());
    }
    let (hour, minute) = (minutes.rem_euclid(1440) / 60, minutes.rem_euclid(60));
    let colon = if seconds.is_empty() { "" } else { ":" };
    Ok(Some(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}{colon}{seconds}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_with_a_zone_is_the_same_instant_in_utc() {
        let utc = |text: &str| to_utc(text.as_bytes(), 6).map(Option::unwrap_or_default);
        for (text, expected) in [
            ("2024-01-01T10:00:00Z", "2024-01-01 10:00:00"),
            ("2024-01-01 10:00:00 +00:00", "2024-01-01 10:00:00"),
            ("2024-01-01T01:30:00.25+02:00", "2023-12-31 23:30:00.25"),
            ("2024-02-28T23:30-0045", "2024-02-29 00:15"),
            ("2023-02-28T23:30:59-01", "2023-03-01 00:30:59"),
            ("1969-12-31t23:59:59z", "1969-12-31 23:59:59"),
            ("0001-01-01T00:00:00Z", "0001-01-01 00:00:00"),
            ("2024-1-1 00:00:00+02", "2023-12-31 22:00:00"),
            ("2024/01/01  00:00:00+02", "2023-12-31 22:00:00"),
            ("20240101T000000+0200", "2023-12-31 22:00:00"),
            ("20240101T000000.5Z", "2024-01-01 00:00:00.5"),
            ("20240101T0930-01", "2024-01-01 10:30"),
            ("20240101000000+02", "2023-12-31 22:00:00"),
            ("2024-01-01T24:00:00Z", "2024-01-02 00:00:00"),
            ("20240101100000", "2024-01-01 10:00:00"),
            ("20240101T1000", "2024-01-01 10:00"),
            // Without a zone: left to the database.
            ("2024-01-01T10:00:00", ""),
            ("2024-01-01", ""),
            ("2024-01-01T24:00:00", ""),
            ("2024-01-01T10:00:60", ""),
            ("2024-01-01 10:00 PM", ""),
            ("0044-03-15 10:00:00 BC", ""),
            ("12024-01-01 00:00:00", ""),
            ("20240101", ""),
            ("0000-00-00 00:00:00", ""),
            (" Now ", ""),
            ("-infinity", ""),
        ] {
            assert_eq!(utc(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(
            utc("2024-01-01T10:00:00.1234560Z").as_deref(),
            Ok("2024-01-01 10:00:00.1234560")
        );
        assert!(utc("2024-01-01T10:00:00.1234567Z").is_err());
        assert!(utc("2024-01-01T10:00:00.1234567").is_err());
        assert!(utc("0001-01-01T00:00:00+01:00").is_err());
        assert!(utc("12024-01-01T00:00:00+02:00").is_err());
        for odd in ["+2", " Europe/Berlin", "+02:00:00", " CET", "+2 hours", " PM CET", "+02 BC"] {
            assert_eq!(utc(&format!("2024-01-01T10:00:00{odd}")), Err(NOT_ISO.into()), "{odd}");
        }
        for odd in [
            "Mon, 01 Jan 2024 00:00:00 +0200",
            "Mon Jan  1 00:00:00 PST 2024",
            "Jan 1 2024",
            "1/1/2024 00:00:00 -0800",
            "01.01.2024",
            "2024-001T00:00:00+02",
            "2024-01-01+02",
            "2024-01-01 pm",
            "2024-01-01 10:00 am pm",
            "2024-01-01Z",
            "2024-01-0110:00:00",
            "2024-02-30T10:00:00Z",
            "2024-01-01T24:30:00Z",
            "2024-01-01T10:00:00.Z",
            "2024-01-01\u{e4}10:00:00Z",
            "2024-01-01T",
            "240101",
            "1704067200",
            "today 10:00",
            "",
        ] {
            assert_eq!(utc(odd), Err(NOT_ISO.into()), "{odd}");
        }
    }

    #[test]
    fn a_time_that_is_compared_exists_and_is_written_in_full() {
        type InFull = fn(&[u8]) -> Option<String>;
        type Cases = &'static [(&'static str, Option<&'static str>)];
        let cases: [(InFull, Cases); 3] = [
            (
                day_in_full,
                &[
                    ("2024-02-29", Some("2024-02-29")),
                    (" 2024/2/29", Some("2024-02-29")),
                    ("20240229", Some("2024-02-29")),
                    ("0000-00-00", Some("0000-00-00")),
                    ("9999-12-31", Some("9999-12-31")),
                    ("2023-02-29", None),
                    ("0000-00-01", None),
                    ("10000-01-01", None),
                    ("0044-03-15 bc", None),
                    ("2024-01-01 ad", None),
                    ("now", None),
                ],
            ),
            (
                time_in_full,
                &[
                    ("2024-02-29", Some("2024-02-29 00:00:00")),
                    ("2024-02-29T23:59:59.5", Some("2024-02-29 23:59:59.5")),
                    ("2024/2/29 9:05", Some("2024-02-29 09:05:00")),
                    ("20240229T2301", Some("2024-02-29 23:01:00")),
                    ("2024-02-29\t1011.5", None),
                    ("0000-00-00 00:00:00", Some("0000-00-00 00:00:00")),
                    ("2024-12-31 23:59:60", None),
                    ("2024-12-31T24:00:00", None),
                    ("2024-12-31 24:00", None),
                    ("10000-01-01", None),
                    ("12024-01-01 00:00:00", None),
                    ("2024-01-02 10:00 pm", None),
                    ("5000-01-01 bc", None),
                    ("2024-01-02 10:00:00 ad", None),
                    ("today", None),
                ],
            ),
            (
                duration_in_full,
                &[
                    ("10:30", Some("10:30:00")),
                    ("-838:59:59.0", Some("-838:59:59.0")),
                    ("T10:30:15", Some("10:30:15")),
                    ("1030155.25", Some("103:01:55.25")),
                    ("838:59:59.5", None),
                    ("839:00:00", None),
                    ("10:60:00", None),
                    ("10:00:60", None),
                    ("10:00 pm", None),
                    ("10:00:00.5 am", None),
                    ("now", None),
                ],
            ),
        ];
        for (in_full, cases) in cases {
            for (text, expected) in cases {
                assert_eq!(in_full(text.as_bytes()).as_deref(), *expected, "{text}");
            }
        }
    }

    #[test]
    fn what_would_be_cut_of_a_time_is_refused() {
        for (text, digits) in [
            ("2024-01-01 10:00:00.1234567+02", 6),
            ("Mon, 01 Jan 2024 00:00:00.5 +0200", 0),
            ("1.1.2024 10:00:00.25", 2),
            ("1.1.2024 10:00:00.125", 2),
            ("20240101T1011.9996Z", 3),
            ("2024-01-01 1011.12345678", 6),
            ("2024-01-01T1011.9", 0),
            ("2024-01-01T1011.25", 2),
            ("Jan 1 1011.9996 2024", 3),
            ("2024 Jan 1.99", 1),
            ("J2451187.3", 0),
            ("1.1.2024 10:00:00.25", 2),
        ] {
            let is_fine = check_fraction(text.as_bytes(), digits).is_ok();
            assert_eq!(is_fine, text.contains(".25"), "{text}");
        }
        for day in ["whatever.123456789", "2024.01.01 10:00:00", "1.1.2024", "Jan. 1 2024 10:00"] {
            assert!(check_fraction(day.as_bytes(), 0).is_ok(), "{day}");
        }
        for (text, zone, is_taken) in [
            ("10:00:00.500", false, true),
            ("T10:00", false, true),
            ("-838:59:59", false, true),
            ("101112.5", false, true),
            ("10:00 pm", false, true),
            ("now", false, true),
            ("101112", false, true),
            // MySQL and MariaDB read seconds, PostgreSQL hours.
            ("12", false, false),
            ("-12", false, false),
            ("1011", false, false),
            ("12.5", false, false),
            ("1112", true, true),
            ("10:00:00.55", false, false),
            ("10:00:00+05", false, false),
            ("10:00:00Z", false, false),
            ("10:00:00 CET", true, false),
            ("10:00:00 pm", true, true),
            ("10:00:00 bc", false, false),
            ("10:00:00 ad", true, false),
            ("10:00:00 am pm", false, false),
            // Minutes and seconds, or hours and minutes.
            ("10:11.5", false, false),
            ("10:11.5", true, false),
            ("10:11:12.5", true, true),
            ("10:00:00+05", true, true),
            ("10:00:00Z", true, true),
            ("2024-01-01 10:00:00", true, false),
            ("2024-01-01 10:00:00", false, false),
            ("20240101", false, false),
            ("20240101100000", false, false),
            ("", false, false),
        ] {
            assert_eq!(check_time(text.as_bytes(), 1, zone).is_ok(), is_taken, "{text}");
        }
        assert_eq!(check_time(b"10:00:00.5", 0, false), Err("keeps whole seconds".into()));
        for (text, is_taken) in [
            ("2024-01-01", true),
            ("20240101", true),
            ("2024/1/1", true),
            ("0044-03-15 BC", true),
            ("5874897-12-31", true),
            ("2024-02-30", true),
            ("0000-00-00", true),
            ("today", true),
            ("Jan 1, 2024", false),
            ("Jan 1 2024 101112", false),
            ("2024-Jan-01 1011", false),
            ("2024-Jan-01Z", false),
            ("Jan 1 2024 +05", false),
            ("2024.01.01 10.11.12", false),
            ("24-01-01 10", false),
            ("2024^01^01 10^11^12", false),
            ("1.2.24", false),
            ("", false),
            ("2024-01-01 00:00", false),
            ("2024-01-01 EST", false),
            ("2024-01-01am", false),
            ("2024-01-01 pm", false),
            ("2024-01-01 bc ad", false),
            ("2024-01-01+02", false),
            ("20240101100000", false),
            ("1/1/2024 10:00", false),
        ] {
            assert_eq!(check_date(text.as_bytes()).is_ok(), is_taken, "{text}");
        }
    }
}
