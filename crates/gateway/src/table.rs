//! A table whose places are reused and whose ids are not: a stale id finds nothing.

use exchange::plant::{Plant, active};

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Values by index and generation, both O(1).
#[derive(Debug)]
pub(crate) struct Table<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Puts the value made for a free place into it and returns its index and generation.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(u32, u32) -> T) -> (u32, u32) {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.generation = place.generation.wrapping_add(1);
            place.value = Some(make(index, place.generation));
            return (index, place.generation);
        }
        let index = u32::try_from(self.places.len()).expect("fewer than 2^32 values at once");
        self.places.push(Place { generation: 1, value: Some(make(index, 1)) });
        (index, 1)
    }

    /// Index and generation that no value has or will have.
    pub(crate) fn skip(&mut self) -> (u32, u32) {
        match self.free.last() {
            Some(&index) => {
                let place = &mut self.places[index as usize];
                place.generation = place.generation.wrapping_add(1);
                (index, place.generation)
            }
            None => {
                let index =
                    u32::try_from(self.places.len()).expect("fewer than 2^32 values at once");
                self.places.push(Place { generation: 1, value: None });
                self.free.push(index);
                (index, 1)
            }
        }
    }

    /// Puts a value in a free place and returns its index and generation.
    pub(crate) fn insert(&mut self, value: T) -> (u32, u32) {
        self.insert_with(|_, _| value)
    }

    pub(crate) fn get_mut(&mut self, index: usize, generation: u32) -> Option<&mut T> {
        let place = self.places.get_mut(index)?;
        let same = place.generation == generation || active(Plant::StaleId);
        if same { place.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, index: usize, generation: u32) -> Option<T> {
        self.get_mut(index, generation)?;
        let value = self.places[index].value.take();
        self.free.push(u32::try_from(index).expect("the index came from this table"));
        value
    }

    /// Drops a value where it is.
    pub(crate) fn vacate(&mut self, index: usize, generation: u32) {
        self.vacate_if(index, generation, |_| true);
    }

    /// Drops a value where it is, if `may` says so.
    pub(crate) fn vacate_if(
        &mut self,
        index: usize,
        generation: u32,
        may: impl FnOnce(&mut T) -> bool,
    ) {
        let Some(place) = self.places.get_mut(index) else { return };
        let same = place.generation == generation || active(Plant::StaleId);
        if place.value.as_mut().is_some_and(|value| same && may(value)) {
            place.value = None;
            self.free.push(u32::try_from(index).expect("the index came from this table"));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Index and generation of every value there is.
    pub(crate) fn ids(&self) -> Vec<(u32, u32)> {
        let filled = self.places.iter().enumerate().filter(|(_, place)| place.value.is_some());
        filled
            .map(|(index, place)| (u32::try_from(index).unwrap_or(u32::MAX), place.generation))
            .collect()
    }

    /// Index, generation and value of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32, &T)> {
        self.places
            .iter()
            .zip(0..)
            .filter_map(|(place, index)| Some((index, place.generation, place.value.as_ref()?)))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().filter_map(|place| place.value.as_mut())
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_id_finds_nothing_though_its_place_is_taken_again() {
        let mut table = Table::default();
        let (index, old) = table.insert('a');
        assert_eq!(table.remove(index as usize, old), Some('a'));
        let (again, new) = table.insert('b');
        assert_eq!(index, again);
        assert_eq!(table.get_mut(index as usize, old), None);
        assert_eq!(table.remove(index as usize, old), None);
        assert_eq!(table.get_mut(index as usize, new), Some(&mut 'b'));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn only_what_may_go_goes_and_only_by_its_own_id() {
        let mut table = Table::default();
        let (index, generation) = table.insert('a');
        let place = index as usize;
        table.vacate_if(place, generation + 1, |_| unreachable!("nobody has this id"));
        table.vacate_if(place, generation, |value| *value == 'b');
        assert_eq!(table.get_mut(place, generation), Some(&mut 'a'));
        table.vacate_if(place, generation, |value| *value == 'a');
        assert_eq!(table.get_mut(place, generation), None);
        assert_eq!(table.len(), 0);
        table.vacate_if(place, generation, |_| unreachable!("it has gone"));
        assert_eq!(table.insert('c'), (index, generation + 1));
    }
}
