//! A table that reads the replica, like that of a pool: it decides, reports uses, and adopts changes.

use std::collections::BTreeMap;

use cluster::{Key, Target, Update};

#[derive(Clone, Copy, Debug)]
struct Held {
    target: Target,
    used_ms: u64,
    reported_ms: u64,
    /// The last use was at another daemon.
    is_remote: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Reader(BTreeMap<Key, Held>);

impl Reader {
    pub(crate) fn adopt(&mut self, now_ms: u64, update: Update) {
        match update.target {
            Some(target) => {
                let held = Held { target, used_ms: now_ms, reported_ms: now_ms, is_remote: true };
                self.0.insert(update.key, held);
            }
            None => drop(self.0.remove(&update.key)),
        }
    }

    pub(crate) fn find(&self, now_ms: u64, key: &Key, lifetime_ms: u64) -> Option<Target> {
        let held = self.0.get(key)?;
        let late = if held.is_remote { lifetime_ms / 4 } else { 0 };
        (now_ms < held.used_ms + lifetime_ms + late).then_some(held.target)
    }

    /// A request went to `target`. Returns what the table had before, if the use must be reported.
    pub(crate) fn used(
        &mut self,
        now_ms: u64,
        key: Key,
        target: Target,
        lifetime_ms: u64,
    ) -> Option<Option<Target>> {
        let before = self.find(now_ms, &key, lifetime_ms);
        let held = self.0.get(&key).copied().filter(|_| before == Some(target));
        let is_due = |held: &Held| held.is_remote || now_ms >= held.reported_ms + lifetime_ms / 16;
        let is_reported = held.as_ref().is_none_or(is_due);
        let reported_ms = if is_reported { now_ms } else { held?.reported_ms };
        self.0.insert(key, Held { target, used_ms: now_ms, reported_ms, is_remote: false });
        is_reported.then_some(before)
    }
}
