//! The keys that wait to be written, in two queues: bindings, then touches.
//!
//! Each entry of the table has a flag that says in which queue it waits, so a key waits once; the value is read from
//! the table when the key is written. A key whose entry lost the flag since is skipped by the reader.

use std::collections::VecDeque;

use crate::key::Key;
use crate::settings::Settings;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    first: VecDeque<Key>,
    touches: VecDeque<Key>,
    /// Since when the oldest key has waited, unless a flush is under way.
    since_ms: Option<u64>,
    is_flushing: bool,
}

impl Pending {
    pub(crate) fn length(&self) -> usize {
        self.first.len() + self.touches.len()
    }

    pub(crate) fn push_first(&mut self, now_ms: u64, key: Key) {
        self.first.push_back(key);
        self.since_ms.get_or_insert(now_ms);
    }

    pub(crate) fn push_touch(&mut self, now_ms: u64, key: Key) {
        self.touches.push_back(key);
        self.since_ms.get_or_insert(now_ms);
    }

    /// Drops the touch that waited longest.
    pub(crate) fn drop_touch(&mut self) -> Option<Key> {
        self.touches.pop_front()
    }

    /// Whether keys are to be written now. A flush that has begun continues until no key waits.
    pub(crate) fn is_due(&mut self, now_ms: u64, settings: &Settings) -> bool {
        let waits = |since| now_ms >= since + settings.flush_ms;
        self.is_flushing |=
            self.since_ms.is_some_and(waits) || self.length() >= settings.flush_keys;
        self.is_flushing
    }

    /// When [`Pending::is_due`] becomes true.
    pub(crate) fn due_ms(&self, settings: &Settings) -> Option<u64> {
        let since = self.since_ms?;
        let at_once = self.is_flushing || self.length() >= settings.flush_keys;
        Some(if at_once { since } else { since + settings.flush_ms })
    }

    /// Removes the next key. `true`: it is in the queue of touches.
    pub(crate) fn pop(&mut self) -> Option<(Key, bool)> {
        let key = self.first.pop_front().map(|key| (key, false));
        let key = key.or_else(|| Some((self.touches.pop_front()?, true)));
        if self.length() == 0 {
            (self.since_ms, self.is_flushing) = (None, false);
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Secret;

    #[test]
    fn keys_wait_for_the_interval_or_for_others_and_touches_go_last() {
        let settings = Settings { flush_ms: 20, flush_keys: 3, ..Settings::default() };
        let key = |number: u8| Key::new(Secret(0, 0), &[number]);
        let mut pending = Pending::default();
        assert!(!pending.is_due(0, &settings) && pending.due_ms(&settings).is_none());
        pending.push_touch(5, key(1));
        pending.push_first(9, key(2));
        assert!(!pending.is_due(24, &settings));
        assert_eq!(pending.due_ms(&settings), Some(25));
        assert!(pending.is_due(25, &settings));
        assert_eq!(pending.pop(), Some((key(2), false)));
        assert!(pending.is_due(25, &settings), "a flush continues");
        assert_eq!(pending.pop(), Some((key(1), true)));
        assert!(!pending.is_due(99, &settings) && pending.pop().is_none());
        (0..3).for_each(|number| pending.push_touch(100, key(number)));
        assert!(pending.is_due(100, &settings), "many keys do not wait");
        assert_eq!(pending.drop_touch(), Some(key(0)));
    }
}
