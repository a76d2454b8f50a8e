//! Answers to orders, held back until every shard follows them.
//!
//! ```text
//!   home    order ─▶ carried out ─▶ News, Barrier ─▶ numbers stored ─▶ lets go
//!   others                              └─────────▶ followed ─▶ numbers stored ─▶ lets go
//!                                                             the last of all answers ──┘
//! ```
//!
//! What it is: handles that all shards share, and who holds them how long. A shard that is gone has let go as
//! well. What it must never know: an order.

use std::sync::Arc;

use crate::aggregator::Aggregator;

/// Whoever gave an order is answered when the last shard has let go of this.
pub(crate) type Barrier = Arc<Aggregator<()>>;

/// Barriers in the hands of one shard.
#[derive(Debug, Default)]
pub struct Barriers {
    /// Of orders that were carried out in this turn; no other shard knows of them.
    new: Vec<Barrier>,
    /// Until this turn ends.
    held: Vec<Barrier>,
}

impl Barriers {
    /// An order was carried out here. `answer` is called once, when every shard follows it, on the
    /// thread of the last that does; it must not block.
    pub fn owe(&mut self, answer: impl FnOnce() + Send + 'static) {
        self.new.push(Aggregator::new(move |_| answer()));
    }

    /// One of another shard, all of whose mail before it was read.
    pub fn hold(&mut self, barrier: Barrier) {
        self.held.push(barrier);
    }

    /// Those that the other shards are to be given, behind what follows from their orders.
    pub(crate) fn hand_on(&mut self) -> &[Barrier] {
        let before = self.held.len();
        self.held.append(&mut self.new);
        &self.held[before..]
    }

    /// The turn ends: whoever asks this shard now sees what was ordered.
    pub fn let_go(&mut self) {
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn an_order_is_answered_when_the_last_shard_has_ended_its_turn_or_is_gone() {
        let answered = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&answered);
        let (mut home, mut branch, mut gone) =
            (Barriers::default(), Barriers::default(), Barriers::default());
        home.owe(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        for barrier in home.hand_on() {
            branch.hold(Arc::clone(barrier));
            gone.hold(Arc::clone(barrier));
        }
        assert!(home.hand_on().is_empty(), "each goes once");
        branch.let_go();
        home.let_go();
        assert_eq!(answered.load(Ordering::Relaxed), 0, "one has not read it");
        drop(gone);
        assert_eq!(answered.load(Ordering::Relaxed), 1);
    }
}
