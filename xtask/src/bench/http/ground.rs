//! What all measurements share.

use super::subject::Subject;
use crate::bench::page::machine;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Connections, active ones, bytes of a reply.
pub(super) type Shape = (usize, usize, usize);

/// What is measured, where things are, and how long.
pub(super) struct Ground {
    pub(super) root: PathBuf,
    /// Where the example programs lie.
    pub(super) programs: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) subjects: Vec<Subject>,
    /// HAProxy without splicing, where large bodies are measured.
    pub(super) copying: Option<Subject>,
    /// Ours on one shard, and on two.
    pub(super) shards: Vec<Subject>,
    pub(super) rounds: u32,
    pub(super) window: Duration,
    pub(super) seed: u64,
}

impl Ground {
    /// How a part was measured, for the page.
    pub(super) fn made(&self, window: Duration) -> Value {
        let Self { rounds, seed, .. } = self;
        let date = machine().date;
        json!({ "rounds": rounds, "window_ms": window.as_millis(), "seed": seed, "date": date })
    }
}
