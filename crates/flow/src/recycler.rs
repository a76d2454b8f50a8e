//! Values that are reused together with their memory.

/// The number of values that a thread always keeps.
const KEPT_MIN: usize = 64;
/// The number of uses after which the peak of values in use at once is measured again.
const PERIOD: u32 = 4096;

/// Unused values of a thread. Invariant: it keeps at most as many as were in use at once in this period or the last
/// one, and at least 64. So a steady load allocates nothing, and memory is freed after a peak.
#[derive(Debug)]
pub struct Recycler<T> {
    free: Vec<T>,
    in_use: usize,
    /// The most that were in use at once, in this period and in the last one.
    most: [usize; 2],
    /// Values that were taken in this period.
    taken: u32,
}

impl<T> Recycler<T> {
    /// Without unused values.
    #[must_use]
    pub const fn new() -> Self {
        Self { free: Vec::new(), in_use: 0, most: [0; 2], taken: 0 }
    }

    /// Takes an unused value, if there is one. In any case one more is in use.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        self.arrive();
        self.taken += 1;
        if self.taken == PERIOD {
            self.taken = 0;
            self.most = [self.in_use, self.most[0]];
        }
        self.free.pop()
    }

    /// Returns a value that is no longer in use.
    #[inline]
    pub fn give(&mut self, value: T) {
        // One that another thread took was not counted here.
        self.leave();
        let most = self.most[0].max(self.most[1]).max(KEPT_MIN);
        if self.free.len() < most {
            self.free.push(value);
        } else if self.free.len() > most {
            self.free.pop();
        }
    }

    /// A value goes to another thread.
    pub const fn leave(&mut self) {
        self.in_use = self.in_use.saturating_sub(1);
    }

    /// A value has come from another thread.
    #[inline]
    pub fn arrive(&mut self) {
        self.in_use += 1;
        self.most[0] = self.most[0].max(self.in_use);
    }

    /// The number of unused values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.free.len()
    }

    /// Whether there is no unused value.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.free.is_empty()
    }
}

impl<T> Default for Recycler<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn use_at_once(recycler: &mut Recycler<u32>, count: usize) {
        let values: Vec<u32> = (0..count).map(|_| recycler.take().unwrap_or(0)).collect();
        values.into_iter().for_each(|value| recycler.give(value));
    }

    #[test]
    fn as_many_are_kept_as_were_in_use_at_once() {
        let mut recycler = Recycler::new();
        let many = 10 * KEPT_MIN;
        use_at_once(&mut recycler, many);
        assert_eq!(recycler.len(), many);
        use_at_once(&mut recycler, many);
        assert_eq!(recycler.len(), many, "the same values again");
        for _ in 0..2 * PERIOD as usize + many {
            use_at_once(&mut recycler, 1);
        }
        assert_eq!(recycler.len(), KEPT_MIN, "so many were needed long ago");
    }

    #[test]
    fn values_that_come_from_another_thread_are_counted_there() {
        let (mut here, mut there) = (Recycler::new(), Recycler::<u32>::new());
        for _ in 0..10 * KEPT_MIN {
            let value = here.take().unwrap_or(0);
            here.leave();
            there.arrive();
            there.give(value);
        }
        assert_eq!((here.in_use, there.in_use, there.len()), (0, 0, KEPT_MIN));
    }
}
