//! A table that reuses indexes but not ids: a lookup with a stale id finds nothing.
//!
//! What it is: values by typed ids. What it must never depend on: the meaning of an id.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use crate::mutant::{Mutant, active};
use crate::{ListenerId, PoolId, RequestId};

/// An index in a table, with the generation of the value at that index. Ids consist of a place. A place alone finds no
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The index in the table. Indexes are reused.
    pub index: u32,
    /// The number of values that this index has had, including the first.
    pub generation: u32,
}

impl Place {
    /// The place at `index` with this generation.
    #[must_use]
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    fn at(index: usize, generation: u32) -> Self {
        let index = u32::try_from(index).expect("fewer than 2^32 values at once");
        Self { index, generation }
    }
}

/// The id of a value in one kind of table.
pub trait TableId: Copy + fmt::Debug {
    /// The place in the id.
    fn place(self) -> Place;
}

impl TableId for RequestId {
    fn place(self) -> Place {
        Place::at(self.index(), self.generation())
    }
}

impl TableId for PoolId {
    fn place(self) -> Place {
        Place::at(self.index(), self.generation())
    }
}

impl TableId for ListenerId {
    fn place(self) -> Place {
        Place::at(self.index(), self.generation())
    }
}

impl From<Place> for ListenerId {
    fn from(Place { index, generation }: Place) -> Self {
        Self::new(index, generation)
    }
}

impl From<Place> for PoolId {
    fn from(Place { index, generation }: Place) -> Self {
        Self::new(index, generation)
    }
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Entry<T> {
    /// Whether an id of this generation belongs to the current value.
    #[inline]
    fn is(&self, generation: u32) -> bool {
        self.generation == generation || active(Mutant::StaleId)
    }
}

/// Values by their ids. Insertion, lookup and removal take O(1).
#[derive(Debug)]
pub struct Table<I, T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    ids: PhantomData<fn(I)>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new(), ids: PhantomData }
    }
}

impl<I: TableId, T> Table<I, T> {
    /// Inserts the value that `make` returns for a free place.
    pub fn insert_with(&mut self, make: impl FnOnce(Place) -> T) -> Place {
        if let Some(index) = self.free.pop() {
            let entry = &mut self.entries[index as usize];
            entry.generation = entry.generation.wrapping_add(1);
            let place = Place { index, generation: entry.generation };
            entry.value = Some(make(place));
            return place;
        }
        let place = Place::at(self.entries.len(), 1);
        self.entries.push(Entry { generation: 1, value: Some(make(place)) });
        place
    }

    /// Returns a place that has no value and will never have one.
    pub fn skip(&mut self) -> Place {
        match self.free.last() {
            Some(&index) => {
                let entry = &mut self.entries[index as usize];
                entry.generation = entry.generation.wrapping_add(1);
                Place { index, generation: entry.generation }
            }
            None => {
                let place = Place::at(self.entries.len(), 1);
                self.entries.push(Entry { generation: 1, value: None });
                self.free.push(place.index);
                place
            }
        }
    }

    /// Inserts a value in a free place.
    pub fn insert(&mut self, value: T) -> Place {
        self.insert_with(|_| value)
    }

    /// The value of an id. `None` if the value was removed.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        let Place { index, generation } = id.place();
        let entry = self.entries.get(index as usize)?;
        if entry.is(generation) { entry.value.as_ref() } else { None }
    }

    /// The value of an id. `None` if the value was removed.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        let Place { index, generation } = id.place();
        let entry = self.entries.get_mut(index as usize)?;
        if entry.is(generation) { entry.value.as_mut() } else { None }
    }

    /// Removes a value and returns it. `None` if it was removed before.
    pub fn remove(&mut self, id: I) -> Option<T> {
        let Place { index, generation } = id.place();
        let entry = self.entries.get_mut(index as usize)?;
        let value = if entry.is(generation) { entry.value.take() } else { None };
        if value.is_some() {
            self.free.push(index);
        }
        value
    }

    /// Drops a value in place.
    pub fn vacate(&mut self, id: I) {
        self.vacate_if(id, |_| true);
    }

    /// Drops a value in place if `may` returns true.
    pub fn vacate_if(&mut self, id: I, may: impl FnOnce(&mut T) -> bool) {
        let Place { index, generation } = id.place();
        let Some(entry) = self.entries.get_mut(index as usize) else { return };
        let same = entry.is(generation);
        if entry.value.as_mut().is_some_and(|value| same && may(value)) {
            entry.value = None;
            self.free.push(index);
        }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// The places of all values.
    pub fn places(&self) -> Vec<Place> {
        self.iter().map(|(place, _)| place).collect()
    }

    /// All values with their places.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &T)> {
        self.entries.iter().zip(0..).filter_map(|(entry, index)| {
            Some((Place { index, generation: entry.generation }, entry.value.as_ref()?))
        })
    }

    /// Whether the table has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().filter_map(|entry| entry.value.as_mut())
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|entry| entry.value.as_ref())
    }
}

/// Tables whose ids consist of a place only. Several shards have such tables with the same ids.
impl<I: TableId + From<Place>, T> Table<I, T> {
    /// Inserts a value with an id that another table has issued. Places are filled in order.
    pub fn insert_as(&mut self, id: I, value: T) {
        let Place { index, generation } = id.place();
        assert_eq!(index as usize, self.entries.len(), "the next place");
        self.entries.push(Entry { generation, value: Some(value) });
    }

    /// All values with their ids.
    pub fn entries(&self) -> impl Iterator<Item = (I, &T)> {
        self.iter().map(|(place, value)| (place.into(), value))
    }

    /// All values with their ids.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        self.entries.iter_mut().zip(0..).filter_map(|(entry, index)| {
            let place = Place { index, generation: entry.generation };
            Some((place.into(), entry.value.as_mut()?))
        })
    }

    /// Returns the next id, for loops that also use the table. Set `next` to 0 before the first call.
    #[inline]
    pub fn next_id(&self, next: &mut usize) -> Option<I> {
        loop {
            let index = *next;
            let entry = self.entries.get(index)?;
            *next += 1;
            if entry.value.is_some() {
                return Some(Place::at(index, entry.generation).into());
            }
        }
    }
}

/// Panics if the id is stale. Use it only for ids that were looked up before. Use [`Table::get`] for ids from
/// elsewhere, which may be stale.
impl<I: TableId, T> Index<I> for Table<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        match self.get(id) {
            Some(value) => value,
            None => stale(id),
        }
    }
}

impl<I: TableId, T> IndexMut<I> for Table<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        match self.get_mut(id) {
            Some(value) => value,
            None => stale(id),
        }
    }
}

#[cold]
fn stale<I: fmt::Debug>(id: I) -> ! {
    panic!("{id:?} has gone: whoever got it from elsewhere was to look it up")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct LetterId(Place);

    impl TableId for LetterId {
        fn place(self) -> Place {
            self.0
        }
    }

    #[test]
    fn a_stale_id_finds_nothing_though_its_place_is_taken_again() {
        let mut table = Table::default();
        let old = LetterId(table.insert('a'));
        assert_eq!(table.remove(old), Some('a'));
        let new = LetterId(table.insert('b'));
        assert_eq!(old.0.index, new.0.index);
        assert_eq!(table.get_mut(old), None);
        assert_eq!(table.remove(old), None);
        assert_eq!(table.get_mut(new), Some(&mut 'b'));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn only_what_may_go_goes_and_only_by_its_own_id() {
        let mut table = Table::default();
        let id = LetterId(table.insert('a'));
        let Place { index, generation } = id.0;
        let next = LetterId(Place::new(index, generation + 1));
        table.vacate_if(next, |_| unreachable!("nobody has this id"));
        table.vacate_if(id, |value| *value == 'b');
        assert_eq!(table.get_mut(id), Some(&mut 'a'));
        table.vacate_if(id, |value| *value == 'a');
        assert_eq!(table.get_mut(id), None);
        assert_eq!(table.len(), 0);
        table.vacate_if(id, |_| unreachable!("it has gone"));
        assert_eq!(LetterId(table.insert('c')), next);
    }

    #[test]
    fn the_id_of_a_pool_that_was_removed_never_finds_the_pool_in_its_place() {
        let (mut fleet, mut shard) = (Table::default(), Table::default());
        for name in ["a", "b", "c"] {
            let id = PoolId::from(fleet.insert(name));
            shard.insert_as(id, name);
        }
        let [_, b, c] = [0, 1, 2].map(|index| PoolId::new(index, 1));
        assert_eq!(
            (fleet.get(b), shard.get(b)),
            (Some(&"b"), Some(&"b")),
            "both know the same ids"
        );
        assert_eq!(shard.remove(b), Some("b"));
        let new = PoolId::from(shard.insert("d"));
        assert_eq!(new.index(), b.index());
        assert_eq!(shard.get(b), None);
        assert_eq!(shard.get_mut(b), None);
        assert_eq!(shard.remove(b), None);
        assert_eq!((shard[new], shard[c]), ("d", "c"));
        assert_eq!(shard.get(PoolId::NONE), None);
        shard.remove(PoolId::new(0, 1));
        let mut next = 0;
        let ids: Vec<PoolId> = std::iter::from_fn(|| shard.next_id(&mut next)).collect();
        assert_eq!(ids, [new, c], "in their order, without those that have gone");
        assert!(ids.into_iter().eq(shard.entries().map(|(id, _)| id)));
        assert!(shard.entries_mut().map(|(id, _)| id).eq([new, c]));
    }

    #[test]
    #[should_panic(expected = "PoolId(0.1) has gone")]
    fn a_stale_id_that_nobody_looked_up_reaches_nothing() {
        let mut table = Table::default();
        let old = PoolId::from(table.insert('a'));
        table.remove(old);
        table.insert('b');
        let _ = table[old];
    }
}
