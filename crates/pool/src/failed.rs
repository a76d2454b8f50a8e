//! The workers that have failed a request. The request is sent to other workers first.

use exchange::{Cause, WorkerId, WorkerIndex};

/// The number of places that are recorded. It equals the number of attempts for a request that may be repeated.
const PLACES_MAX: usize = 3;

/// The places of the workers that have failed one request, the earliest first. A place may be in the list several
/// times. When the list is full, the earliest place is removed.
///
/// A place is the index of a worker. It is the same on all shards that serve a pool. If another worker takes the place,
/// that worker is avoided too, because any other worker is equally good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    places: [u32; PLACES_MAX],
    count: u8,
    /// How often the request was returned.
    times: u8,
    /// The cause of the last failure, until [`returned`](Self::returned) has reported it.
    why: Option<Cause>,
}

/// The return of a request from a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// The worker that returned the request; `None`: unknown.
    pub worker: Option<WorkerId>,
    /// Why the worker failed the request; `None`: the request never reached the worker.
    pub why: Option<Cause>,
    /// How often the request was returned so far, at most 255.
    pub times: u8,
}

impl Failed {
    /// Records that a worker has failed the request, and the cause.
    pub fn add(&mut self, worker: WorkerIndex, why: Cause) {
        self.why = Some(why);
        if self.places().len() == PLACES_MAX {
            self.places.rotate_left(1);
            self.count -= 1;
        }
        self.places[usize::from(self.count)] = worker.get();
        self.count += 1;
    }

    /// Records that the request was returned by this worker.
    pub fn returned(&mut self, worker: Option<WorkerId>) -> Retry {
        self.times = self.times.saturating_add(1);
        Retry { worker, why: self.why.take(), times: self.times }
    }

    /// Whether no worker has failed the request.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn places(&self) -> &[u32] {
        &self.places[..usize::from(self.count)]
    }

    /// Returns how often the worker at this place has failed the request.
    pub(crate) fn times(&self, place: u32) -> usize {
        self.places().iter().filter(|other| **other == place).count()
    }

    /// Returns the places, each once.
    pub(crate) fn each(&self) -> impl Iterator<Item = u32> + '_ {
        let places = self.places();
        let first = |(nth, place): &(usize, &u32)| !places[..*nth].contains(place);
        places.iter().enumerate().filter(first).map(|(_, place)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_three_are_remembered_and_told_once_each() {
        let mut failed = Failed::default();
        assert!(failed.is_empty() && failed.each().next().is_none());
        for place in [0, 7, 0] {
            failed.add(WorkerIndex::new(place), Cause::Died);
        }
        assert_eq!(failed.each().collect::<Vec<_>>(), [0, 7]);
        assert_eq!((failed.times(0), failed.times(7), failed.times(9)), (2, 1, 0));
        failed.add(WorkerIndex::new(9), Cause::Died);
        failed.add(WorkerIndex::new(9), Cause::Unreached);
        assert_eq!(failed.each().collect::<Vec<_>>(), [0, 9]);
        let (why, worker) = (Some(Cause::Unreached), Some(WorkerId::new(9, 0)));
        assert_eq!(failed.returned(worker), Retry { worker, why, times: 1 });
        assert_eq!(failed.returned(None), Retry { worker: None, why: None, times: 2 });
    }
}
