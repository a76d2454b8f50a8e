//! One answer of several shards.
//!
//! What it is: a handle that shards share; whoever asked is told when the last of them has let go of it,
//! be it that it has answered or that it is gone. So nobody waits for a shard that ends. What it must never
//! know: what was asked.

use std::sync::{Arc, Mutex, PoisonError};

/// Answers of several shards, as far as they have come.
pub struct Aggregator<T: Send + 'static> {
    answers: Mutex<Vec<T>>,
    tell: Mutex<Option<Tell<T>>>,
}

type Tell<T> = Box<dyn FnOnce(Vec<T>) + Send>;

impl<T: Send + 'static> Aggregator<T> {
    /// `tell` is called once, on the thread of the last that lets go; it must not block.
    pub fn new(tell: impl FnOnce(Vec<T>) + Send + 'static) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::default(), tell: Mutex::new(Some(Box::new(tell))) })
    }

    pub fn add(&self, answer: T) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
    }
}

impl<T: Send + 'static> Drop for Aggregator<T> {
    fn drop(&mut self) {
        let answers = self.answers.get_mut().unwrap_or_else(PoisonError::into_inner);
        let tell = self.tell.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(tell) = tell.take() {
            tell(std::mem::take(answers));
        }
    }
}

impl<T: Send + 'static> std::fmt::Debug for Aggregator<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aggregator").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_once_the_last_shard_has_answered_or_gone() {
        let told = Arc::new(Mutex::new(None));
        let place = Arc::clone(&told);
        let aggregator = Aggregator::new(move |all: Vec<u32>| *place.lock().unwrap() = Some(all));
        let (first, second) = (Arc::clone(&aggregator), Arc::clone(&aggregator));
        drop(aggregator);
        first.add(7);
        drop(first);
        assert_eq!(*told.lock().unwrap(), None, "one is waited for");
        drop(second);
        assert_eq!(*told.lock().unwrap(), Some(vec![7]));
    }
}
