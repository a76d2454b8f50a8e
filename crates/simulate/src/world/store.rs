//! Commits batches.

use std::time::Duration;

use crate::store::Fate;
use crate::world::World;

impl World {
    /// Draws the course of a batch, and the duration of its three steps.
    pub(crate) fn fate_of_batch(&mut self) -> (Fate, [Duration; 3]) {
        let most = self.scenario.commit_max;
        let mut time = || self.chance.time(Duration::from_micros(20), most);
        let mut steps = [time(), time(), time()];
        if self.fault(25) {
            // Longer than the deadline of its pool.
            steps[1] = self.scenario.deadline * 2;
        }
        let fate = if self.fault(150) {
            self.chance.pick(&[
                Fate::Fails,
                Fate::Lost { stored: true },
                Fate::Lost { stored: false },
                Fate::Panics { stored: true },
                Fate::Panics { stored: false },
                Fate::Forgets,
                Fate::InParts,
            ])
        } else {
            Fate::Commits
        };
        self.trace(|| format!("a batch will end as {fate:?}, after {steps:?}"));
        (fate, steps)
    }

    pub(crate) fn commit(&mut self, rows: &[(usize, u64)]) {
        self.note("rows are committed", rows.len(), 0);
        for (_, id) in rows {
            *self.workers.store.rows.entry(*id).or_default() += 1;
        }
    }
}
