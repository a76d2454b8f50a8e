//! Acknowledgements of operator commands, delayed until every shard has applied the command.
//!
//! ```text
//!   owner    command ─▶ applied ─▶ News, Barrier ─▶ metrics stored ─▶ dropped
//!   others                              └─────────▶ applied ─▶ metrics stored ─▶ dropped
//!                                                  the last drop acknowledges ──────┘
//! ```
//!
//! What it is: shared handles, and how long each shard keeps them. A shard that ends drops its handles as well. What it
//! must never depend on: a command.

use std::sync::Arc;

use crate::aggregator::Aggregator;

/// The command is acknowledged when the last clone is dropped.
pub(crate) type Barrier = Arc<Aggregator<()>>;

/// The barriers that one shard keeps.
#[derive(Debug, Default)]
pub struct Barriers {
    /// Barriers of commands that were applied in this turn and not yet sent to other shards.
    new: Vec<Barrier>,
    /// Barriers that are kept until this turn ends.
    held: Vec<Barrier>,
}

impl Barriers {
    /// Registers a command that was applied on this shard. `answer` is called once, when every shard has applied it, on
    /// the thread of the last one. It must not block.
    pub fn owe(&mut self, answer: impl FnOnce() + Send + 'static) {
        self.new.push(Aggregator::new(move |_| answer()));
    }

    /// Keeps a barrier of another shard. All earlier messages of that shard were handled.
    pub(crate) fn hold(&mut self, barrier: Barrier) {
        self.held.push(barrier);
    }

    /// The barriers to send to other shards, after the effects of their commands.
    pub(crate) fn hand_on(&mut self) -> &[Barrier] {
        let before = self.held.len();
        self.held.append(&mut self.new);
        &self.held[before..]
    }

    /// Drops the barriers at the end of the turn, when the effects of their commands are visible.
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
        let (mut owner, mut member_shard, mut gone) =
            (Barriers::default(), Barriers::default(), Barriers::default());
        owner.owe(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        for barrier in owner.hand_on() {
            member_shard.hold(Arc::clone(barrier));
            gone.hold(Arc::clone(barrier));
        }
        assert!(owner.hand_on().is_empty(), "each goes once");
        member_shard.let_go();
        owner.let_go();
        assert_eq!(answered.load(Ordering::Relaxed), 0, "one has not read it");
        drop(gone);
        assert_eq!(answered.load(Ordering::Relaxed), 1);
    }
}
