//! A table that reuses its places, but not its ids.
//!
//! An id consists of a place and a generation. When a value is removed, the generation of its place is incremented. An
//! outdated id therefore finds nothing, and never a later value in the same place. All operations take constant time.

/// The maximum number of places of a table; the kernel's token needs two bits for the kind.
pub(crate) const PLACES_MAX: u32 = 1 << 30;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    /// The free places; the most recently freed is last, because its memory is still in the cache.
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// The number of values in the table.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Inserts a value and returns its place and generation.
    pub(crate) fn insert(&mut self, value: T) -> (u32, u32) {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.value = Some(value);
            return (index, place.generation);
        }
        let index = u32::try_from(self.places.len())
            .ok()
            .filter(|&index| index < PLACES_MAX)
            .expect("descriptors and memory run out long before 2^30 places");
        self.places.push(Place { generation: 0, value: Some(value) });
        (index, 0)
    }

    /// Returns the value of this id, unless it was removed.
    #[inline]
    pub(crate) fn get(&self, index: u32, generation: u32) -> Option<&T> {
        let place = self.places.get(index as usize)?;
        if place.generation == generation { place.value.as_ref() } else { None }
    }

    /// Returns the value of this id, unless it was removed.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        let place = self.places.get_mut(index as usize)?;
        if place.generation == generation { place.value.as_mut() } else { None }
    }

    /// Removes the value and invalidates its id.
    pub(crate) fn remove(&mut self, index: u32, generation: u32) -> Option<T> {
        let place = self.places.get_mut(index as usize)?;
        if place.generation != generation {
            return None;
        }
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_id_never_finds_what_took_its_place() {
        let mut slab = Slab::new();
        let (index, first) = slab.insert('a');
        assert_eq!(slab.remove(index, first), Some('a'));
        let (again, second) = slab.insert('b');
        assert_eq!(again, index);
        assert_ne!(second, first);
        assert_eq!(slab.get(index, first), None);
        assert_eq!(slab.get_mut(index, first), None);
        assert_eq!(slab.remove(index, first), None);
        assert_eq!(slab.get(index, second), Some(&'b'));
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn a_free_place_is_not_found_under_its_next_generation() {
        let mut slab = Slab::new();
        let (index, generation) = slab.insert('a');
        slab.remove(index, generation);
        assert_eq!(slab.get(index, generation + 1), None);
        assert_eq!(slab.remove(index, generation + 1), None);
        assert_eq!(slab.len(), 0);
    }
}
