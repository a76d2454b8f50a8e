//! State of a pool on a member shard.

use exchange::{ByWorker, WorkerId};

/// State of a pool on a member shard.
#[derive(Debug, Default)]
pub(super) struct MemberShard {
    /// Workers whose last reported outcome was a failure. The next success is reported.
    doubted: ByWorker<bool>,
}

impl MemberShard {
    /// Whether an outcome is reported to the owner shard: each failure, and the first success after one.
    pub(super) fn tells(&mut self, worker: WorkerId, good: bool) -> bool {
        std::mem::replace(self.doubted.at(worker), !good) || !good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_told_what_is_bad_and_when_it_is_over() {
        let (mut member_shard, one, two) =
            (MemberShard::default(), WorkerId::new(0, 0), WorkerId::new(1, 0));
        let told = [(one, true), (one, false), (two, true), (one, false), (one, true), (one, true)]
            .map(|(worker, good)| member_shard.tells(worker, good));
        assert_eq!(told, [false, true, false, true, true, false]);
    }
}
