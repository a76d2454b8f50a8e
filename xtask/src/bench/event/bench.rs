//! What all parts of `bench loop` share.

use std::path::PathBuf;
use std::time::Duration;

/// Where things are, and how long is measured.
#[derive(Debug)]
pub(super) struct Bench {
    /// Where examples are built as they are released.
    pub(super) examples: PathBuf,
    /// A folder of ours.
    pub(super) folder: PathBuf,
    pub(super) rounds: u32,
    pub(super) window: Duration,
    /// Of the order of the servers within the rounds.
    pub(super) seed: u64,
}

impl Bench {
    pub(super) fn built(&self, name: &str) -> PathBuf {
        self.examples.join(name)
    }
}
