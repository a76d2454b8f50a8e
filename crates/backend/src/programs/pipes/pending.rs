//! Bytes of one kind that are written to a program and not read yet.
//!
//! Slots limit how many requests wait for a program that does not read. They do not limit the answers to requests of
//! the program, nor requests that were cancelled before the program has read them. Therefore these bytes are counted.
//! Bytes of other kinds are between them:
//!
//! ```text
//!   input    [ request ][ answer ][ request ][ request ][ answer ]   offered
//!   counted                 ▲├───┤                      ├────────┤
//!                           accepted
//! ```

use std::collections::VecDeque;
use std::ops::Range;

/// The ranges of these bytes in all the bytes offered, in order and not adjacent.
#[derive(Debug, Default)]
pub(super) struct Pending {
    places: VecDeque<Range<u64>>,
    /// The sum of their lengths.
    bytes: u64,
}

impl Pending {
    /// Adds bytes that were offered. None of them was added before.
    pub(super) fn add(&mut self, place: Range<u64>) {
        if place.is_empty() {
            return;
        }
        self.bytes += place.end - place.start;
        let at = self.places.partition_point(|it| it.start < place.start);
        match at.checked_sub(1).and_then(|before| self.places.get_mut(before)) {
            Some(before) if before.end == place.start => before.end = place.end,
            _ => self.places.insert(at, place),
        }
    }

    /// Returns how many bytes were not sent, given that the first `accepted` of all the bytes offered were.
    pub(super) fn unread(&mut self, accepted: u64) -> usize {
        while let Some(first) = self.places.front_mut().filter(|it| it.start < accepted) {
            let read_to = first.end.min(accepted);
            self.bytes -= read_to - first.start;
            first.start = read_to;
            if !first.is_empty() {
                break;
            }
            self.places.pop_front();
        }
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_not_counted_and_what_stands_between_never_is() {
        let mut pending = Pending::default();
        for place in [10..20, 30..40, 40..45, 22..25, 60..60] {
            pending.add(place);
        }
        assert_eq!(pending.places.len(), 3, "two follow each other, and one is empty");
        for (accepted, unread) in [(0, 28), (10, 28), (14, 24), (21, 18), (30, 15), (44, 1)] {
            assert_eq!(pending.unread(accepted), unread, "{accepted}");
        }
        assert_eq!((pending.unread(1000), pending.places.len()), (0, 0));
        pending.add(1000..1001);
        assert_eq!(pending.unread(1000), 1);
    }
}
