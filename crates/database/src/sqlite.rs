//! SQLite files as handlers.
//!
//! The file is in WAL mode, so readers never wait for the daemon, and a commit with [`Sync::Full`](crate::Sync::Full)
//! costs one fdatasync. Each handler has one connection, opened on its thread. SQLite lets one connection write at a
//! time, so a pool that writes works best with one handler.
//!
//! How a value of a record is bound: NULL as NULL; text as TEXT, or as BLOB if it is not UTF-8; a number as INTEGER or
//! REAL if that keeps its value, otherwise as the TEXT of its digits, which the affinity of the column then converts.
//! Nested JSON is bound as its text. TSV and logfmt have no numbers: their values are text, and the affinity converts
//! them. A BLOB in a query result is encoded in base64 in JSON replies, with any content.

mod bind;
mod connect;
mod driver;
mod fault;
mod identity;
mod keys;
mod letters;
mod link;
mod log;
mod statement;
#[cfg(test)]
mod tests;
mod types;

use std::path::PathBuf;
use std::sync::Arc;

use crate::ack;
use crate::link::{Driver, Setup};
use crate::source::Members;
use crate::{Database, DatabaseError, Job};
use driver::SqliteDriver;
use link::SqliteLink;

/// An SQLite file and the action for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The file. With `create`, a missing file is created.
    pub path: PathBuf,
    /// The action for a request.
    pub job: Job,
}

/// Checks `options` as far as possible without the file.
///
/// # Errors
/// Returns an error if the acknowledgement is not a valid template, a name is invalid, or the statement is not a single
/// statement of the required kind.
pub fn factory(options: SqliteOptions) -> Result<Database, DatabaseError> {
    setup(options).map(Database::new)
}

fn setup(options: SqliteOptions) -> Result<Arc<Setup<SqliteDriver>>, DatabaseError> {
    let SqliteOptions { path, job } = options;
    let mut members = Members::default();
    // The returned columns are known when the statement is prepared.
    ack::of(&job, &mut members, &[])?;
    let sql = statement::sql_of(&job.action)?;
    if path.as_os_str().is_empty() || path.as_os_str() == ":memory:" {
        return Err(DatabaseError::NotAFile(path));
    }
    let job = Arc::new(job);
    let driver = SqliteDriver { path, job: Arc::clone(&job), sql };
    Ok(Arc::new(Setup::new(driver, job)))
}

impl Driver for SqliteDriver {
    type DatabaseSession = SqliteLink;

    const PACED: bool = false;

    fn connect(&self) -> Result<SqliteLink, DatabaseError> {
        connect::connect(self, self.job.create.is_some())
    }

    fn visit(&self) -> Result<SqliteLink, DatabaseError> {
        connect::connect(self, false)
    }

    /// Also checks that the file can be written.
    fn check(&self, link: &mut SqliteLink) -> Result<(), DatabaseError> {
        if matches!(self.job.action, crate::Action::Query(_)) {
            return Ok(());
        }
        link.try_lock()
            .map_err(|fault| DatabaseError::Open(self.path.clone(), fault.for_operators().into()))
    }

    fn name(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }
}
