//! Collects one answer from each shard.
//!
//! What it is: a shared handle. When the last shard drops its clone, with or without an answer, a callback receives
//! all answers; so a shard that ends delays nothing. What it must never depend on: the question.

use std::sync::{Arc, Mutex, PoisonError};

/// The answers of several shards.
pub struct Aggregator<T: Send + 'static> {
    answers: Mutex<Vec<T>>,
    tell: Mutex<Option<Tell<T>>>,
}

type Tell<T> = Box<dyn FnOnce(Vec<T>) + Send>;

impl<T: Send + 'static> Aggregator<T> {
    /// `tell` is called once with all answers, on the thread that drops the last clone. It must not block.
    pub fn new(tell: impl FnOnce(Vec<T>) + Send + 'static) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::default(), tell: Mutex::new(Some(Box::new(tell))) })
    }

    /// Adds the answer of one shard.
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
