//! Doubly linked lists of places in a table. The links are stored in the table, so every operation is O(1), and nothing
//! is allocated once the table has its full size.
//!
//! Several [`List`]s may share one [`Links`]. A place is in at most one of them.

/// Marks the absence of a place.
const NONE: u32 = u32::MAX;
/// Marks a place that is in no list.
const LOOSE: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

/// The links of all places of a table.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

impl Links {
    /// Creates the links for all places up to and including `place`.
    pub(crate) fn cover(&mut self, place: u32) {
        let length = place as usize + 1;
        if self.0.len() < length {
            self.0.resize(length, Link { before: LOOSE, after: LOOSE });
        }
    }

    /// Reserves memory for this number of places. The memory is not touched before it is used.
    pub(crate) fn reserve(&mut self, places: usize) {
        self.0.reserve_exact(places);
    }

    /// Whether `place` is in one of the lists.
    pub(crate) fn holds(&self, place: u32) -> bool {
        self.0.get(place as usize).is_some_and(|link| link.before != LOOSE)
    }

    fn at(&mut self, place: u32) -> &mut Link {
        &mut self.0[place as usize]
    }
}

/// An ordered list of places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
    length: u32,
}

impl Default for List {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl List {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE, length: 0 };

    pub(crate) const fn first(&self) -> Option<u32> {
        if self.first == NONE { None } else { Some(self.first) }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.first == NONE
    }

    pub(crate) const fn length(&self) -> u32 {
        self.length
    }

    /// Adds `place`, which is in no list, at the head or at the end.
    pub(crate) fn push(&mut self, links: &mut Links, place: u32, first: bool) {
        if first {
            self.push_first(links, place);
        } else {
            self.push_last(links, place);
        }
    }

    /// Adds `place`, which is in no list, at the end.
    pub(crate) fn push_last(&mut self, links: &mut Links, place: u32) {
        assert!(!links.holds(place), "a place is in at most one list");
        *links.at(place) = Link { before: self.last, after: NONE };
        if self.last == NONE {
            self.first = place;
        } else {
            links.at(self.last).after = place;
        }
        self.last = place;
        self.length += 1;
    }

    /// Adds `place`, which is in no list, at the head.
    pub(crate) fn push_first(&mut self, links: &mut Links, place: u32) {
        assert!(!links.holds(place), "a place is in at most one list");
        *links.at(place) = Link { before: NONE, after: self.first };
        if self.first == NONE {
            self.last = place;
        } else {
            links.at(self.first).before = place;
        }
        self.first = place;
        self.length += 1;
    }

    /// Removes `place` from this list. The place must be in it.
    pub(crate) fn remove(&mut self, links: &mut Links, place: u32) {
        assert!(links.holds(place), "only what is in the list can be taken out");
        let Link { before, after } = *links.at(place);
        if before == NONE {
            self.first = after;
        } else {
            links.at(before).after = after;
        }
        if after == NONE {
            self.last = before;
        } else {
            links.at(after).before = before;
        }
        *links.at(place) = Link { before: LOOSE, after: LOOSE };
        self.length -= 1;
    }

    /// Returns the places in their order, and checks the links on the way.
    pub(crate) fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + 'a {
        let mut before = NONE;
        let mut next = self.first;
        let last = self.last;
        std::iter::from_fn(move || {
            if next == NONE {
                assert_eq!(before, last, "the list ends at its last place");
                return None;
            }
            let link = links.0[next as usize];
            assert_eq!(link.before, before, "links point both ways");
            before = next;
            next = link.after;
            Some(before)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(list: &List, links: &Links) -> Vec<u32> {
        list.iter(links).collect()
    }

    #[test]
    fn places_come_and_go_at_both_ends_and_in_the_middle() {
        let mut links = Links::default();
        links.cover(9);
        let mut list = List::EMPTY;
        for place in [3, 1, 4] {
            list.push_last(&mut links, place);
        }
        list.push_first(&mut links, 5);
        assert_eq!(places(&list, &links), [5, 3, 1, 4]);
        list.remove(&mut links, 1);
        list.remove(&mut links, 5);
        list.remove(&mut links, 4);
        assert_eq!((places(&list, &links), list.length()), (vec![3], 1));
        assert!(links.holds(3) && !links.holds(4));
        list.remove(&mut links, 3);
        assert!(list.is_empty() && list.first().is_none());
    }

    #[test]
    #[should_panic(expected = "at most one list")]
    fn a_place_cannot_be_in_two_lists() {
        let mut links = Links::default();
        links.cover(0);
        let (mut one, mut other) = (List::EMPTY, List::EMPTY);
        one.push_last(&mut links, 0);
        other.push_last(&mut links, 0);
    }
}
