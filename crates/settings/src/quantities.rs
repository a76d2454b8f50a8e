//! Numbers with units, and ranges: parsed from text and formatted.
//!
//! What it is: durations, sizes, percentages and ranges, and the reasons why a text is invalid. What it depends on:
//! text. What it must never depend on: the model.

use std::time::Duration;

/// The reason why a text is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// What is wrong. In a message it follows the text.
    pub(crate) why: String,
    /// The suggested fix.
    pub(crate) suggestion: Option<String>,
}

impl Bad {
    pub(crate) fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), suggestion: None }
    }

    pub(crate) fn suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

const TIMES: &[(&str, u64)] =
    &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Parses a duration: `500ms`, `2s`, `5m`, `1h`, `2d`.
pub(crate) fn duration(text: &str) -> Result<Duration, Bad> {
    let (digits, unit) = split_number(text);
    let Ok(number) = digits.parse::<u64>() else {
        return Err(not_a_number(text, digits, "a duration"));
    };
    if unit.is_empty() {
        return Err(
            Bad::because("has no unit").suggestion(format!("write \"{digits}s\" for seconds"))
        );
    }
    let Some((_, milliseconds)) = TIMES.iter().find(|(name, _)| *name == unit) else {
        let guess = match unit.trim() {
            "sec" | "secs" | "second" | "seconds" | "S" => "s",
            "min" | "mins" | "minute" | "minutes" | "M" => "m",
            "hour" | "hours" | "H" => "h",
            "day" | "days" | "D" => "d",
            "msec" | "millis" | "milliseconds" => "ms",
            other => TIMES.iter().find(|(name, _)| *name == other).map_or("s", |(name, _)| name),
        };
        let bad = Bad::because(format!("has the unknown unit `{unit}`"));
        return Err(bad.suggestion(format!("write \"{digits}{guess}\"")));
    };
    number
        .checked_mul(*milliseconds)
        .map(Duration::from_millis)
        .ok_or_else(|| Bad::because("is too long"))
}

const SIZES: &[(&str, u64)] = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Parses a size: `512B`, `64KiB`, `1MiB`, `2GiB`.
pub(crate) fn size(text: &str) -> Result<u64, Bad> {
    let (digits, unit) = split_number(text);
    let Ok(number) = digits.parse::<u64>() else {
        return Err(not_a_number(text, digits, "a size"));
    };
    if unit.is_empty() {
        return Err(Bad::because("has no unit")
            .suggestion(format!("write {digits} without quotes for bytes, or \"{digits}KiB\"")));
    }
    let Some((_, bytes)) = SIZES.iter().find(|(name, _)| *name == unit) else {
        let guess = match unit.trim().to_lowercase().as_str() {
            "m" | "mb" | "mib" => "MiB",
            "g" | "gb" | "gib" => "GiB",
            "b" | "bytes" => "B",
            _ => "KiB",
        };
        let bad = Bad::because(format!("has the unknown unit `{unit}`"));
        return Err(bad.suggestion(format!("write \"{digits}{guess}\"")));
    };
    number.checked_mul(*bytes).ok_or_else(|| Bad::because("is too large"))
}

/// Splits a text into its leading digits and the rest.
fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Returns the reason why a duration or a size does not begin with a whole number.
fn not_a_number(text: &str, digits: &str, what: &str) -> Bad {
    if !digits.is_empty() {
        return Bad::because("is too large");
    }
    match text.chars().next() {
        None => Bad::because("is empty"),
        Some('-') => Bad::because("is negative"),
        Some(_) => Bad::because(format!("is not {what}")),
    }
}

/// Parses a percentage: `30%`.
pub(crate) fn percent(text: &str) -> Result<u64, Bad> {
    let (digits, unit) = split_number(text);
    match (digits.parse::<u64>(), unit) {
        (Ok(number @ 0..=100), "%") => Ok(number),
        (Ok(0..=100), "") => {
            Err(Bad::because("has no unit").suggestion(format!("write \"{digits}%\"")))
        }
        (Ok(_), "%") => Err(Bad::because("is more than 100%").suggestion("write \"100%\"")),
        _ => Err(Bad::because("is not a percentage").suggestion("write \"50%\" for half")),
    }
}

/// Parses `MIN..MAX`, or one number for both.
pub(crate) fn span(text: &str) -> Result<(u64, u64), Bad> {
    let bad =
        || Bad::because("is not a range").suggestion("write \"2..20\", or 4 for exactly four");
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| bad());
    match text.split_once("..") {
        Some((min, max)) => Ok((number(min)?, number(max)?)),
        None => number(text).map(|number| (number, number)),
    }
}

/// Formats a duration as it is written in a file.
pub(crate) fn duration_text(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds == 0 {
        return "0s".to_owned();
    }
    TIMES
        .iter()
        .rev()
        // One day is written as 24 hours.
        .filter(|(name, unit)| *name != "d" || milliseconds > u128::from(*unit))
        .find(|(_, unit)| milliseconds.is_multiple_of(u128::from(*unit)))
        .map(|(name, unit)| format!("{}{name}", milliseconds / u128::from(*unit)))
        .expect("every time is a whole number of milliseconds")
}

/// Formats a size as it is written in a file.
pub(crate) fn size_text(bytes: u64) -> String {
    let (name, unit) = SIZES
        .iter()
        .rev()
        .find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit))
        .unwrap_or(&SIZES[0]);
    format!("{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_of_a_value_reads_as_that_value() {
        for milliseconds in [0, 1, 999, 1000, 1500, 59_999, 60_000, 90_000, 3_600_000, 86_400_000] {
            let time = Duration::from_millis(milliseconds);
            assert_eq!(duration(&duration_text(time)), Ok(time));
        }
        for bytes in [1, 1023, 1024, 1536, 1 << 20, 3 << 30, (1 << 30) + 1] {
            assert_eq!(size(&size_text(bytes)), Ok(bytes));
        }
        assert_eq!(duration_text(Duration::from_secs(90)), "90s");
        assert_eq!(size_text(64 << 10), "64KiB");
    }
}
