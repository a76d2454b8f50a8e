//! Times in the notations of ISO 8601 that databases read: `2026-01-02T03:04:05.6+07:00`, with a blank
//! for the `T`, with `Z` or without a zone. Whatever else is given is left to the database.

use std::ops::RangeInclusive;

use super::Misfit;

/// Years that every database keeps.
const YEARS: RangeInclusive<i64> = 1..=9999;

/// A day with a time of day.
struct Instant<'t> {
    day: i64,
    /// Minutes of the day.
    minute: i64,
    /// Seconds with their fraction, and a colon before, where there are any.
    seconds: &'t str,
    /// Minutes that its clock is ahead of UTC, where it has a zone.
    ahead: Option<i64>,
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Days since 1970-01-01 (H. Hinnant, `days_from_civil`).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The reverse.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn day_of(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let mut part = |digits| parts.next().and_then(|part| number(part, digits));
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let days = days_from_civil(year, month, day);
    (parts.next().is_none() && civil_from_days(days) == (year, month, day)).then_some(days)
}

/// The minutes of a time of day, and its seconds with a colon before.
fn time_of(text: &str) -> Option<(i64, &str)> {
    let (hour, rest) = (number(text.get(..2)?, 2)?, text.get(2..)?.strip_prefix(':')?);
    let minute = number(rest.get(..2)?, 2)?;
    let seconds = rest.get(2..)?;
    if let Some(given) = seconds.strip_prefix(':') {
        let (whole, fraction) = given.split_once('.').unwrap_or((given, "0"));
        let second = number(whole, 2)?;
        let is_fraction = !fraction.is_empty() && fraction.bytes().all(|it| it.is_ascii_digit());
        if second > 59 || !is_fraction {
            return None;
        }
    } else if !seconds.is_empty() {
        return None;
    }
    (hour <= 23 && minute <= 59).then_some((hour * 60 + minute, seconds))
}

/// Minutes that a zone is ahead of UTC: `+02`, `+0200`, `+02:00`.
fn zone_of(text: &str) -> Option<i64> {
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

impl<'t> Instant<'t> {
    fn of(text: &'t [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim_matches(' ');
        let (date, time) = text.split_at_checked(10)?;
        let time = time.strip_prefix(['T', 't', ' '])?;
        let (time, ahead) = match time.find(['Z', 'z', '+', '-']) {
            None => (time, None),
            Some(at) => {
                let (time, zone) = time.split_at(at);
                let is_utc = zone.eq_ignore_ascii_case("z");
                (time.trim_end_matches(' '), Some(if is_utc { 0 } else { zone_of(zone)? }))
            }
        };
        let (minute, seconds) = time_of(time)?;
        Some(Self { day: day_of(date)?, minute, seconds, ahead })
    }
}

const ODD_ZONE: &str = "takes a zone as `Z` or as hours and minutes, like `+02:00`";

/// Whether something stands behind a day and a time that is no zone we know, nor a part of the time: a
/// database may pass over it.
fn has_odd_zone(text: &[u8]) -> bool {
    let Some((date, time)) = std::str::from_utf8(text).ok().and_then(|it| it.split_at_checked(10))
    else {
        return false;
    };
    let time = time.trim_start_matches(['T', 't', ' ']);
    let behind = time.trim_start_matches(|it: char| it.is_ascii_digit() || it == ':' || it == '.');
    let behind = behind.trim_matches(' ');
    let is_known = ["", "am", "pm", "ad", "bc"].iter().any(|it| behind.eq_ignore_ascii_case(it));
    day_of(date).is_some() && time.starts_with(|it: char| it.is_ascii_digit()) && !is_known
}

fn too_fine(digits: u32) -> Misfit {
    match digits {
        0 => "keeps whole seconds".into(),
        _ => format!("keeps {digits} digits of a fraction of a second").into(),
    }
}

/// Whether the seconds have no more digits behind the point than that.
fn fits(seconds: &str, digits: u32) -> bool {
    let fraction = seconds.split_once('.').map_or("", |(_, fraction)| fraction);
    fraction.trim_end_matches('0').len() <= digits as usize
}

/// Refuses a time, with or without its day, with a finer fraction of a second than that.
pub(super) fn check_fraction(text: &[u8], digits: u32) -> Result<(), Misfit> {
    let time = || time_of(std::str::from_utf8(text).ok()?.trim_matches(' '));
    let seconds = Instant::of(text).map(|it| it.seconds).or_else(|| Some(time()?.1));
    if seconds.is_none_or(|seconds| fits(seconds, digits)) { Ok(()) } else { Err(too_fine(digits)) }
}

/// Refuses a day with a time.
pub(super) fn check_date(text: &[u8]) -> Result<(), Misfit> {
    if Instant::of(text).is_some() { Err("takes a day without a time".into()) } else { Ok(()) }
}

/// The same instant in UTC, without its zone. None of what has no zone, or is left to the database.
pub(super) fn in_utc(text: &[u8], digits: u32) -> Result<Option<String>, Misfit> {
    let Some(Instant { day, minute, seconds, ahead }) = Instant::of(text) else {
        return if has_odd_zone(text) { Err(ODD_ZONE.into()) } else { Ok(None) };
    };
    if !fits(seconds, digits) {
        return Err(too_fine(digits));
    }
    let Some(ahead) = ahead else { return Ok(None) };
    let minutes = day * 1440 + minute - ahead;
    let (year, month, day) = civil_from_days(minutes.div_euclid(1440));
    if !YEARS.contains(&year) {
        return Err("takes years from 1 to 9999, in UTC".into());
    }
    let (hour, minute) = (minutes.rem_euclid(1440) / 60, minutes.rem_euclid(60));
    Ok(Some(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}{seconds}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_with_a_zone_is_the_same_instant_in_utc() {
        let utc = |text: &str| in_utc(text.as_bytes(), 6).map(Option::unwrap_or_default);
        for (text, expected) in [
            ("2024-01-01T10:00:00Z", "2024-01-01 10:00:00"),
            ("2024-01-01 10:00:00 +00:00", "2024-01-01 10:00:00"),
            ("2024-01-01T01:30:00.25+02:00", "2023-12-31 23:30:00.25"),
            ("2024-02-28T23:30-0045", "2024-02-29 00:15"),
            ("2023-02-28T23:30:59-01", "2023-03-01 00:30:59"),
            ("1969-12-31t23:59:59z", "1969-12-31 23:59:59"),
            ("0001-01-01T00:00:00Z", "0001-01-01 00:00:00"),
            // Left to the database.
            ("2024-01-01T10:00:00", ""),
            ("2024-02-30T10:00:00Z", ""),
            ("2024-01-01T24:00:00", ""),
            ("2024-01-01T10:00:60", ""),
            ("2024-01-01 10:00 PM", ""),
            ("20240101", ""),
            ("now", ""),
            ("2024-01-01\u{e4}10:00:00Z", ""),
        ] {
            assert_eq!(utc(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(
            utc("2024-01-01T10:00:00.1234560Z").as_deref(),
            Ok("2024-01-01 10:00:00.1234560")
        );
        assert!(utc("2024-01-01T10:00:00.1234567Z").is_err());
        assert!(utc("0001-01-01T00:00:00+01:00").is_err());
        for odd in ["+2", " Europe/Berlin", "+02:00:00", " CET", "+2 hours"] {
            assert_eq!(utc(&format!("2024-01-01T10:00:00{odd}")), Err(ODD_ZONE.into()), "{odd}");
        }
        for days in [-719_162, -1, 0, 59, 11_016, 19_782, 2_932_896] {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    #[test]
    fn fractions_and_times_that_would_be_cut_are_told() {
        assert!(check_fraction(b"10:00:00.500", 1).is_ok());
        assert_eq!(check_fraction(b"10:00:00.5", 0), Err("keeps whole seconds".into()));
        assert!(check_fraction(b"2024-01-01 10:00:00.1234567+02", 6).is_err());
        assert!(check_fraction(b"whatever.123456789", 0).is_ok());
        assert!(check_date(b"2024-01-01").is_ok() && check_date(b"2024-01-01 00:00").is_err());
    }
}
