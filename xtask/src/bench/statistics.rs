//! Medians and quartiles of paired samples. Pure.

/// Samples of two sides, taken right after each other.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Pairs {
    pub(super) fn push(&mut self, ours: f64, theirs: f64) {
        self.ours.push(ours);
        self.theirs.push(theirs);
    }

    pub(super) fn ours(&self) -> Quartiles {
        Quartiles::of(&self.ours)
    }

    pub(super) fn theirs(&self) -> Quartiles {
        Quartiles::of(&self.theirs)
    }

    /// How many times theirs is ours, pair by pair.
    pub(super) fn theirs_by_ours(&self) -> Quartiles {
        Quartiles::of(&ratios(&self.theirs, &self.ours))
    }

    /// How many times ours is theirs, pair by pair.
    pub(super) fn ours_by_theirs(&self) -> Quartiles {
        Quartiles::of(&ratios(&self.ours, &self.theirs))
    }
}

fn ratios(over: &[f64], under: &[f64]) -> Vec<f64> {
    over.iter().zip(under).map(|(over, under)| over / under).collect()
}

/// The middle of some samples, and the middles of their halves.
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
}

/// The value at so many quarters of the way through sorted samples, between neighbours where it
/// falls between them; not a number when there are none.
fn at(sorted: &[f64], quarters: usize) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let steps = last * quarters;
    let (below, part) = (steps / 4, (steps % 4) as f64 / 4.0);
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * part
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
    fn ratios_are_taken_within_a_pair() {
        // The machine was twice as slow in the second round; the ratio does not notice.
        let mut pairs = Pairs::default();
        pairs.push(1.0, 20.0);
        pairs.push(2.0, 40.0);
        assert_eq!(pairs.theirs_by_ours().median, 20.0);
        assert_eq!(pairs.theirs_by_ours().low, 20.0);
        assert_eq!(pairs.ours_by_theirs().median, 0.05);
        assert_eq!(pairs.ours().median, 1.5);
        assert_eq!(pairs.theirs().median, 30.0);
    }
}
