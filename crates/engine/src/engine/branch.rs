//! What a shard keeps of a pool that is at home on another and served here as well.

use exchange::{ByWorker, WorkerId};

/// What a shard keeps of a pool that is at home on another shard and served here as well.
#[derive(Debug, Default)]
pub(super) struct Branch {
    /// Of which workers the last that home was told is bad: it is told the next good.
    doubted: ByWorker<bool>,
}

impl Branch {
    /// Whether its home wants to know how a request ended. Of what is good it need not be told
    /// again.
    pub(super) fn tells(&mut self, worker: WorkerId, good: bool) -> bool {
        std::mem::replace(self.doubted.at(worker), !good) || !good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_told_what_is_bad_and_when_it_is_over() {
        let (mut branch, one, two) = (Branch::default(), WorkerId::new(0, 0), WorkerId::new(1, 0));
        let told = [(one, true), (one, false), (two, true), (one, false), (one, true), (one, true)]
            .map(|(worker, good)| branch.tells(worker, good));
        assert_eq!(told, [false, true, false, true, true, false]);
    }
}
