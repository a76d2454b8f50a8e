//! What the settings say of a file.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Job;

/// What every connection of a pool has in common.
#[derive(Debug)]
pub(super) struct SqliteDriver {
    pub(super) path: PathBuf,
    pub(super) job: Arc<Job>,
    pub(super) sql: String,
}
