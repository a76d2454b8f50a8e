//! Which workers have failed a request: it is given to others first.

use exchange::{Cause, WorkerId, WorkerIndex};

/// Places that are remembered: as many as a request is given to while it may be repeated.
const PLACES_MAX: usize = 3;

/// Places of workers that have failed one request, the earliest first; one may be in it several
/// times. Beyond three the earliest is forgotten.
///
/// A place is the same worker's on all shards that serve a pool. Once another worker has it, that
/// one is passed over as well: whoever else is there is as good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    places: [u32; PLACES_MAX],
    count: u8,
    /// How often the request came back.
    times: u8,
    /// Why it was failed last, until that was told.
    why: Option<Cause>,
}

/// That a request came back from a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// From whom; none: that is not known.
    pub worker: Option<WorkerId>,
    /// Why, where that worker has failed it; none: it never reached its worker.
    pub why: Option<Cause>,
    /// How often it came back so far, at most 255.
    pub times: u8,
}

impl Failed {
    /// A worker has failed it, and this is why.
    pub fn add(&mut self, worker: WorkerIndex, why: Cause) {
        self.why = Some(why);
        if self.places().len() == PLACES_MAX {
            self.places.rotate_left(1);
            self.count -= 1;
        }
        self.places[usize::from(self.count)] = worker.get();
        self.count += 1;
    }

    /// The request comes back from this worker.
    pub fn returned(&mut self, worker: Option<WorkerId>) -> Retry {
        self.times = self.times.saturating_add(1);
        Retry { worker, why: self.why.take(), times: self.times }
    }

    /// Whether nobody has failed it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn places(&self) -> &[u32] {
        &self.places[..usize::from(self.count)]
    }

    /// How often the worker at this place has failed it.
    pub(crate) fn times(&self, place: u32) -> usize {
        self.places().iter().filter(|other| **other == place).count()
    }

    /// The places, each once.
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
