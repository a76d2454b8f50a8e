//! A list with one value for each worker of a pool, indexed by the worker's index.
//!
//! What it is: the only place where a worker's index is converted to the index of a list. What it must never depend on:
//! a pool.

use std::ops::{Index, IndexMut};

use crate::WorkerIndex;

/// The values of the workers of one pool.
#[derive(Clone, Debug)]
pub struct ByWorker<T>(Vec<T>);

impl<T> Default for ByWorker<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<T> for ByWorker<T> {
    /// The first value belongs to the worker with index 0, the second to the worker with index 1, and so on.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

fn place(worker: impl Into<WorkerIndex>) -> usize {
    worker.into().get() as usize
}

impl<T> ByWorker<T> {
    /// The value of a worker, if it has one.
    #[inline]
    pub fn get(&self, worker: impl Into<WorkerIndex>) -> Option<&T> {
        self.0.get(place(worker))
    }

    /// The value of a worker, if it has one.
    #[inline]
    pub fn get_mut(&mut self, worker: impl Into<WorkerIndex>) -> Option<&mut T> {
        self.0.get_mut(place(worker))
    }

    /// The value of a worker. Missing values up to this worker are created with `make`.
    #[inline]
    pub fn at_with(&mut self, worker: impl Into<WorkerIndex>, make: impl FnMut() -> T) -> &mut T {
        let place = place(worker);
        if self.0.len() <= place {
            self.0.resize_with(place + 1, make);
        }
        &mut self.0[place]
    }

    /// The value of a worker. Missing values up to this worker are created with `T::default`.
    #[inline]
    pub fn at(&mut self, worker: impl Into<WorkerIndex>) -> &mut T
    where
        T: Default,
    {
        self.at_with(worker, T::default)
    }

    /// The index of each worker that has a value.
    pub fn indices(&self) -> impl Iterator<Item = WorkerIndex> + use<T> {
        let length = u32::try_from(self.0.len()).expect("a pool has fewer than 2^32 workers");
        (0..length).map(WorkerIndex::new)
    }

    /// Each value with the index of its worker.
    pub fn iter(&self) -> impl Iterator<Item = (WorkerIndex, &T)> {
        self.indices().zip(&self.0)
    }

    /// The values in the order of the indices.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// The values in the order of the indices.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The values in the order of the indices.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

/// Panics if the worker has no value. Use [`ByWorker::get`] if the worker may have none.
impl<W: Into<WorkerIndex>, T> Index<W> for ByWorker<T> {
    type Output = T;

    #[inline]
    fn index(&self, worker: W) -> &T {
        &self.0[place(worker)]
    }
}

/// Panics if the worker has no value. Use [`ByWorker::get_mut`] if the worker may have none.
impl<W: Into<WorkerIndex>, T> IndexMut<W> for ByWorker<T> {
    #[inline]
    fn index_mut(&mut self, worker: W) -> &mut T {
        &mut self.0[place(worker)]
    }
}

#[cfg(test)]
mod tests {
    use crate::WorkerId;

    use super::*;

    #[test]
    fn those_before_a_new_worker_have_values_too() {
        let mut values = ByWorker::default();
        *values.at(WorkerId::new(2, 7)) = 5;
        assert_eq!(values.values().copied().collect::<Vec<_>>(), [0, 0, 5]);
        assert_eq!(values.get(WorkerIndex::new(2)), Some(&5));
        assert_eq!(values.get(WorkerIndex::new(3)), None);
        let last = values.iter().last();
        assert_eq!(last, Some((WorkerIndex::new(2), &5)));
    }
}
