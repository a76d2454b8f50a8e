//! Medians and quartiles of samples, and of ratios within rounds. Pure.

/// The median of some samples, and the medians of their halves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quartiles {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

impl Quartiles {
    pub(super) fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self { low: at(&sorted, 1), median: at(&sorted, 2), high: at(&sorted, 3) }
    }

    /// Returns the quartiles of the ratio, round by round. If the machine is slower in one round than in another, the
    /// ratio does not change.
    pub(super) fn ratio(over: &[f64], under: &[f64]) -> Self {
        let ratios = over.iter().zip(under).map(|(over, under)| over / under);
        Self::of(&ratios.collect::<Vec<_>>())
    }

    /// Returns the quartiles of other numbers, which grow with these.
    pub(super) fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { low: of(self.low), median: of(self.median), high: of(self.high) }
    }

    /// Formats with this number of decimal places: `2.5 [2.0–3.1]`, or `–` if there were no samples.
    pub(super) fn digits(self, digits: usize) -> String {
        let Self { low, median, high } = self;
        if median.is_nan() {
            return "–".to_owned();
        }
        format!("{median:.digits$} [{low:.digits$}–{high:.digits$}]")
    }

    /// Formats with fewer decimal places for larger numbers.
    pub(super) fn shown(self) -> String {
        self.digits(usize::from(self.median < 100.0) + usize::from(self.median < 10.0))
    }
}

/// Returns the value at this number of quarters of the sorted samples, interpolated between neighbours; NaN if there
/// are no samples.
fn at(sorted: &[f64], quarters: usize) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let steps = last * quarters;
    let (below, part) = (steps / 4, (steps % 4) as f64 / 4.0);
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * part
}

/// Formats `12345.6` as `12,346`.
pub(super) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_odd_even_one_and_none() {
        let of = Quartiles::of;
        assert_eq!(of(&[5.0, 1.0, 3.0, 2.0, 4.0]), Quartiles { low: 2.0, median: 3.0, high: 4.0 });
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Quartiles { low: 1.75, median: 2.5, high: 3.25 });
        assert_eq!(of(&[7.0]), Quartiles { low: 7.0, median: 7.0, high: 7.0 });
        assert!(of(&[]).median.is_nan());
    }

    #[test]
    fn larger_numbers_have_fewer_digits() {
        assert_eq!(Quartiles::of(&[2.0]).shown(), "2.00 [2.00–2.00]");
        assert_eq!(Quartiles::of(&[20.0]).shown(), "20.0 [20.0–20.0]");
        assert_eq!(Quartiles::of(&[200.0]).digits(0), "200 [200–200]");
        assert_eq!([999.6, 1_234_567.0].map(thousands), ["1,000", "1,234,567"]);
    }
}
