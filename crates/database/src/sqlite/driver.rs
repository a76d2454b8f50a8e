//! The settings of a file.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Job;

/// The common data of all connections of a pool.
#[derive(Debug)]
pub(super) struct SqliteDriver {
    pub(super) path: PathBuf,
    pub(super) job: Arc<Job>,
    pub(super) sql: String,
}
