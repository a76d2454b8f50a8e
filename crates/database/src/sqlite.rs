//! SQLite files as handlers.
//!
//! The file is in WAL mode, so readers never wait for us and a commit under [`Sync::Full`](crate::Sync::Full)
//! costs one fdatasync. One connection a handler, opened on its thread; SQLite lets one of them write at
//! a time, so a pool that writes is served best by one handler.
//!
//! How a value of a record is bound: NULL as NULL; text as TEXT, and as BLOB where it is not
//! UTF-8; a number as INTEGER or REAL where that keeps its value, else as the TEXT of its digits,
//! which the column's affinity then judges. Nested JSON is its text. TSV and logfmt know no numbers:
//! their values are text, and the affinity makes them what the column wants. Of a query a BLOB leaves
//! in base64 where the reply is JSON, whatever is in it.

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

/// An SQLite file and what is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The file. `create` also allows the file itself to be made.
    pub path: PathBuf,
    /// What is done with a request.
    pub job: Job,
}

/// Checks `options` as far as that is possible without the file.
///
/// # Errors
/// When the acknowledgement is no template, a name cannot be one, or the statement is not one
/// statement that does what it is there for.
pub fn factory(options: SqliteOptions) -> Result<Database, DatabaseError> {
    setup(options).map(Database::new)
}

fn setup(options: SqliteOptions) -> Result<Arc<Setup<SqliteDriver>>, DatabaseError> {
    let SqliteOptions { path, job } = options;
    let mut members = Members::default();
    // What the statement returns is known when it is prepared.
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
    type Link = SqliteLink;

    const PACED: bool = false;

    fn connect(&self) -> Result<SqliteLink, DatabaseError> {
        connect::connect(self, self.job.create.is_some())
    }

    fn visit(&self) -> Result<SqliteLink, DatabaseError> {
        connect::connect(self, false)
    }

    /// Also that the file can be written.
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
