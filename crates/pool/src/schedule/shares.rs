//! Places with shares of a whole, for weighted random draws: a binary indexed tree. Every operation is O(log n).

/// Shares by place.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// The share of each place; 0: the place has none.
    each: Vec<u32>,
    /// Sums of shares over ranges whose lengths are powers of two. `sums[0]` is not used.
    sums: Vec<u64>,
    total: u64,
    count: u32,
}

impl Shares {
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// The number of places with a share.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn share(&self, place: u32) -> u32 {
        self.each.get(place as usize).copied().unwrap_or(0)
    }

    /// Sets the share of `place`; 0 removes it.
    pub(crate) fn set(&mut self, place: u32, share: u32) {
        let old = self.share(place);
        if old == share {
            return;
        }
        self.cover(place as usize);
        self.each[place as usize] = share;
        self.count += u32::from(old == 0);
        self.count -= u32::from(share == 0);
        self.total = self.total + u64::from(share) - u64::from(old);
        let mut at = place as usize + 1;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at] + u64::from(share) - u64::from(old);
            at += at & at.wrapping_neg();
        }
    }

    /// Returns the place that owns `point` of the whole. `point` is below the total.
    pub(crate) fn owner(&self, mut point: u64) -> u32 {
        assert!(point < self.total, "only a point of the whole has an owner");
        let mut at = 0;
        let mut step = (self.sums.len() - 1).next_power_of_two();
        while step > 0 {
            if let Some(sum) = self.sums.get(at + step).filter(|sum| **sum <= point) {
                point -= sum;
                at += step;
            }
            step /= 2;
        }
        u32::try_from(at).expect("places are 32 bits")
    }

    /// The sum of the shares of all places before this one.
    pub(crate) fn before(&self, place: u32) -> u64 {
        let mut at = (place as usize).min(self.each.len());
        let mut sum = 0;
        while at > 0 {
            sum += self.sums[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }

    /// Returns the places with a share, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.each).filter(|(_, share)| **share > 0).map(|(place, _)| place)
    }

    /// Enlarges the tree if necessary. It doubles in size, so that adding a place costs O(log n) on average.
    fn cover(&mut self, place: usize) {
        if place < self.each.len() {
            return;
        }
        let length = (place + 1).next_power_of_two();
        self.each.resize(length, 0);
        self.sums = vec![0; length + 1];
        for at in 1..=length {
            self.sums[at] += u64::from(self.each[at - 1]);
            let above = at + (at & at.wrapping_neg());
            if above <= length {
                self.sums[above] += self.sums[at];
            }
        }
    }

    /// Checks every invariant.
    pub(crate) fn check(&self) {
        let mut sum = 0;
        for (place, share) in (0..).zip(&self.each) {
            assert_eq!(self.before(place), sum, "sums are those of the shares");
            sum += u64::from(*share);
        }
        assert_eq!(sum, self.total, "the total is that of the shares");
        assert_eq!(self.iter().count(), self.count as usize, "who has a share is counted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn every_point_has_the_owner_that_a_walk_finds() {
        let mut random = Random::new(3);
        let mut shares = Shares::default();
        let mut naive = [0_u32; 41];
        for _ in 0..3000 {
            let place = u32::try_from(random.below(41)).unwrap();
            let share = u32::try_from(random.below(4)).unwrap();
            shares.set(place, share);
            naive[place as usize] = share;
            shares.check();
            if shares.total() == 0 {
                continue;
            }
            let point = random.below(shares.total());
            let mut left = point;
            let walked = naive.iter().position(|share| {
                let mine = left < u64::from(*share);
                left = left.saturating_sub(u64::from(*share));
                mine
            });
            assert_eq!(Some(shares.owner(point) as usize), walked);
        }
    }
}
