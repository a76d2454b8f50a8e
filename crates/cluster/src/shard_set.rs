//! A set of shards.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardSet([u64; 4]);

impl ShardSet {
    pub(crate) const ALL: Self = Self([u64::MAX; 4]);

    const fn at(shard: u8) -> (usize, u64) {
        ((shard >> 6) as usize, 1 << (shard & 63))
    }

    pub(crate) const fn insert(&mut self, shard: u8) {
        let (word, bit) = Self::at(shard);
        self.0[word] |= bit;
    }

    pub(crate) const fn remove(&mut self, shard: u8) {
        let (word, bit) = Self::at(shard);
        self.0[word] &= !bit;
    }

    pub(crate) const fn contains(&self, shard: u8) -> bool {
        let (word, bit) = Self::at(shard);
        self.0[word] & bit != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn length(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn first(&self) -> Option<u8> {
        (0..=u8::MAX).find(|&shard| self.contains(shard))
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut both = *self;
        for (word, other) in both.0.iter_mut().zip(other.0) {
            *word |= other;
        }
        both
    }
}
