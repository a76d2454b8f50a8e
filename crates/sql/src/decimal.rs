//! Decimal numbers, and whether a binary number preserves them.

use crate::blank::is_blank;

/// The number of decimal digits that a double always preserves (IEEE 754, `DBL_DIG`).
const DOUBLE_DIGITS: usize = 15;
/// The number of decimal digits that a single always preserves (`FLT_DIG`).
const SINGLE_DIGITS: usize = 6;
/// The number of digits that distinguish a double from all others. More precise numbers are written with it (`%.17g`).
const DOUBLE_DIGITS_MAX: usize = 17;
/// The number of digits that distinguish a single from all others.
const SINGLE_DIGITS_MAX: usize = 9;

/// A number as it was written.
#[derive(Clone, Copy, Debug)]
pub struct Decimal<'t> {
    text: &'t str,
    /// The digits before and after the point.
    mantissa: (&'t str, &'t str),
    exponent: i64,
}

impl<'t> Decimal<'t> {
    /// Reads a number: a sign, digits with an optional point, an exponent. Returns `None` if the text is not a number.
    #[must_use]
    pub fn of(text: &'t [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim_matches(is_blank);
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, saturating(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = is_digits(whole) && is_digits(fraction) && whole.len() + fraction.len() > 0;
        is_number.then_some(Self { text, mantissa: (whole, fraction), exponent })
    }

    fn digits(&self) -> impl DoubleEndedIterator<Item = u8> + Clone + use<'t> {
        self.mantissa.0.bytes().chain(self.mantissa.1.bytes())
    }

    /// The digits from the first to the last one that is not 0.
    fn significant(&self) -> impl Iterator<Item = u8> + Clone + use<'t> {
        let leading = self.digits().take_while(|digit| *digit == b'0').count();
        let trailing = self.digits().rev().take_while(|digit| *digit == b'0').count();
        let all = self.mantissa.0.len() + self.mantissa.1.len();
        self.digits().skip(leading).take(all.saturating_sub(leading + trailing))
    }

    fn is_zero(&self) -> bool {
        self.digits().all(|digit| digit == b'0')
    }

    /// The power of ten of the last digit that is not 0.
    fn last_power(&self) -> i64 {
        let trailing = self.digits().rev().take_while(|digit| *digit == b'0').count();
        let fraction = signed(self.mantissa.1.len());
        self.exponent.saturating_sub(fraction).saturating_add(signed(trailing))
    }

    /// The number of digits after the point that are needed to write the number without an exponent.
    #[must_use]
    pub fn places(&self) -> u64 {
        if self.is_zero() { 0 } else { self.last_power().min(0).unsigned_abs() }
    }

    /// Whether the number is a 64-bit integer, written without a point or an exponent.
    #[must_use]
    pub fn is_i64(&self) -> bool {
        self.text.parse::<i64>().is_ok()
    }

    /// Whether a double preserves the number. A fraction may also be written with more digits than the double needs, as
    /// `%.17g` does.
    #[must_use]
    pub fn is_kept_by_double(&self) -> bool {
        let Ok(double) = self.text.parse::<f64>() else { return false };
        let class = (double == 0.0, double.is_finite(), double.is_normal());
        self.is_kept(class, (DOUBLE_DIGITS, DOUBLE_DIGITS_MAX), |digits| match digits {
            None => format!("{double:e}"),
            Some(digits) => format!("{double:.digits$e}"),
        })
    }

    /// Whether a double distinguishes the number from all others with as many places: all its digits, with those before
    /// the point, are no more than a double always preserves.
    #[must_use]
    pub fn is_distinguished_by_double(&self) -> bool {
        let whole = self.last_power().saturating_add(signed(self.significant().count()));
        let digits = u64::try_from(whole).unwrap_or(0).saturating_add(self.places());
        self.is_zero() || digits <= DOUBLE_DIGITS as u64
    }

    /// Whether SQLite preserves the number in a column of numbers. It stores a double that is a whole number of 64 bits
    /// as an integer, so such a double must be exactly this number: its shortest digits are not enough.
    #[must_use]
    pub fn is_kept_by_sqlite(&self) -> bool {
        const BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;
        let double: f64 = self.text.parse().unwrap_or(f64::NAN);
        let is_real = self.places() > 0 || self.is_zero() || double.abs() >= BEYOND_I64;
        let is_exact =
            || Decimal::of(format!("{double:.0}").as_bytes()).is_some_and(|it| it.is_same(self));
        self.is_i64() || self.is_kept_by_double() && (is_real || is_exact())
    }

    /// Whether MySQL and MariaDB read all digits of this notation as a decimal: they read up to 81 digits, in groups of
    /// nine on each side of the point, before they apply the exponent. Zeros at the end have no effect.
    #[must_use]
    pub fn is_short(&self) -> bool {
        const GROUP: usize = 9;
        const GROUPS_MAX: usize = 9;
        let (whole, fraction) = self.mantissa;
        let fraction = fraction.trim_end_matches('0');
        whole.len().div_ceil(GROUP) + fraction.len().div_ceil(GROUP) <= GROUPS_MAX
    }

    /// Whether both have the same digits at the same places.
    fn is_same(&self, other: &Decimal<'_>) -> bool {
        self.last_power() == other.last_power() && self.significant().eq(other.significant())
    }

    /// Whether a single preserves the number. The same rules apply.
    #[must_use]
    pub fn is_kept_by_single(&self) -> bool {
        let Ok(single) = self.text.parse::<f32>() else { return false };
        let class = (single == 0.0, single.is_finite(), single.is_normal());
        self.is_kept(class, (SINGLE_DIGITS, SINGLE_DIGITS_MAX), |digits| match digits {
            None => format!("{single:e}"),
            Some(digits) => format!("{single:.digits$e}"),
        })
    }

    /// `written` returns the binary number with the fewest digits that distinguish it from others, or with this number
    /// of digits after the point.
    fn is_kept(
        &self,
        (is_zero, is_finite, is_normal): (bool, bool, bool),
        (any, most): (usize, usize),
        written: impl Fn(Option<usize>) -> String,
    ) -> bool {
        if is_zero || self.is_zero() {
            return self.is_zero();
        }
        let count = self.significant().count();
        if !is_finite || count <= any && is_normal {
            return is_finite;
        }
        let is_same =
            |digits| Decimal::of(written(digits).as_bytes()).is_some_and(|it| it.is_same(self));
        is_same(None) || self.places() > 0 && count <= most && is_same(Some(count - 1))
    }
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Reads an exponent. An exponent that is too large is replaced by the largest one.
fn saturating(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let most = if text.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
    Some(text.parse().unwrap_or(most).clamp(i64::MIN / 2, i64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_numbers_keep_what_is_read_back_alike() {
        for (text, double, single) in [
            ("0", true, true),
            ("-0.0", true, true),
            ("0e-400", true, true),
            ("0.1", true, true),
            ("2.50", true, true),
            ("1e21", true, true),
            ("1e38", true, true),
            ("1e39", true, false),
            ("16777216", true, true),
            ("16777217", true, false),
            ("9007199254740992", true, false),
            ("9007199254740993", false, false),
            ("-9007199254740993", false, false),
            ("9007199254740993.0", false, false),
            ("1e23", true, true),
            ("18446744073709551616", false, false),
            ("18446744073709551615", false, false),
            ("0.12345678901234566", true, false),
            ("0.12345678901234567", false, false),
            ("0.10000000000000001", true, false),
            ("0.10000000000000000001", false, false),
            ("5e-324", true, false),
            ("1e-400", false, false),
            ("1e400", false, false),
            ("1e99999999999999999999", false, false),
        ] {
            let number = Decimal::of(text.as_bytes()).unwrap();
            let kept = (number.is_kept_by_double(), number.is_kept_by_single());
            assert_eq!(kept, (double, single), "{text}");
        }
    }

    #[test]
    fn a_double_distinguishes_numbers_of_up_to_15_digits() {
        for (text, expected) in [
            ("0", true),
            ("0e400", true),
            ("999999999999999", true),
            ("-1e14", true),
            ("0.000000000000001", true),
            ("12345.6789", true),
            ("1e15", false),
            ("9007199254740990", false),
            ("0.0000000000000001", false),
            ("123456789012.3456", false),
            ("1e400", false),
        ] {
            let number = Decimal::of(text.as_bytes()).unwrap();
            assert_eq!(number.is_distinguished_by_double(), expected, "{text}");
        }
    }

    #[test]
    fn blanks_beside_a_number_are_skipped_as_databases_do() {
        for blank in [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'] {
            let text = format!("{blank}{blank}-1.5{blank}");
            assert_eq!(Decimal::of(text.as_bytes()).unwrap().places(), 1, "{blank:?}");
            let number = Decimal::of(b"\t9007199254740993\n").unwrap();
            assert!(number.is_i64() && !number.is_kept_by_double());
        }
        assert!(Decimal::of("\u{a0}1".as_bytes()).is_none());
    }

    #[test]
    fn the_digits_before_an_exponent_are_counted_in_groups_of_nine_on_each_side() {
        let zeros = |count| "0".repeat(count);
        for (text, is_short) in [
            ("1.5e300".to_owned(), true),
            (format!("0.{}5e75", zeros(74)), false),
            (format!("0.{}5e72", zeros(71)), true),
            (format!("0.{}5e73", zeros(72)), false),
            (format!("1.5{}", zeros(300)), true),
            (format!("{}1.5", zeros(71)), true),
            (format!("{}1.5", zeros(72)), false),
            ("1".repeat(81), true),
            (format!("{}.5", "1".repeat(81)), false),
        ] {
            assert_eq!(Decimal::of(text.as_bytes()).unwrap().is_short(), is_short, "{text}");
        }
    }

    #[test]
    fn decimal_places_are_counted_up_to_the_last_digit_that_counts() {
        for (text, places) in [
            ("1", 0),
            ("1.10", 1),
            ("1.105", 3),
            ("100", 0),
            ("0.000", 0),
            ("1e-3", 3),
            ("1.5e1", 0),
            ("1200e-2", 0),
            ("+.5", 1),
        ] {
            assert_eq!(Decimal::of(text.as_bytes()).unwrap().places(), places, "{text}");
        }
        for text in ["", "a", "-", ".", "1e", "1.2.3", "0x1", "NaN", "1 2"] {
            assert!(Decimal::of(text.as_bytes()).is_none(), "{text}");
        }
    }
}
