//! SQLite files as handlers.
//!
//! The file is in WAL mode, so readers never wait for us and a commit under [`Sync::Full`] costs
//! one fdatasync. One connection a handler, opened on its thread; SQLite lets one of them write at
//! a time, so a pool is served best by one handler.
//!
//! How a value of a record is bound: NULL as NULL; text as TEXT, and as BLOB where it is not
//! UTF-8; a number as INTEGER or REAL where that keeps its value, else as the TEXT of its digits,
//! which the column's affinity then judges. Nested JSON is its text. TSV and logfmt know no numbers:
//! their values are text, and the affinity makes them what the column wants.

mod bind;
mod connect;
mod fault;
mod handler;
mod link;
mod statement;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use exchange::{Factory, Handler, HandlerError};

use crate::ack::{self, Piece};
use crate::source::Members;
use crate::{Action, DatabaseError, Record, Sync};
use handler::SqliteHandler;

/// An SQLite file and what is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The file.
    pub path: PathBuf,
    /// What is done with a request.
    pub action: Action,
    /// Statements that make what is missing, run each time the file is opened; they also allow the
    /// file itself to be made.
    pub create: Option<String>,
    /// How a request is read into named values.
    pub record: Record,
    /// The reply after the commit. `{name}` stands for a value of the record (NULL is empty),
    /// `{_id}`, `{_client}` and `{_at}` for those of the request, `{{` and `}}` for braces.
    pub ack: String,
    /// What a commit waits for.
    pub sync: Sync,
    /// How long a batch waits for a lock that another connection holds, before it fails.
    pub lock_wait: Duration,
}

/// Checks `options` as far as that is possible without the file.
///
/// # Errors
/// When the acknowledgement is no template, a name cannot be one, or the statement is not one
/// statement that writes.
pub fn factory(options: SqliteOptions) -> Result<SqliteFactory, DatabaseError> {
    let mut members = Members::default();
    let ack = ack::parse(&options.ack, &mut members)?;
    let sql = statement::sql_of(&options.action)?;
    if options.path.as_os_str().is_empty() || options.path.as_os_str() == ":memory:" {
        return Err(DatabaseError::NotAFile(options.path));
    }
    Ok(SqliteFactory(Arc::new(Setup { options, sql, members, ack })))
}

/// Makes the handlers of a pool that writes into an SQLite file.
#[derive(Clone, Debug)]
pub struct SqliteFactory(Arc<Setup>);

/// What every handler of a pool has in common.
#[derive(Debug)]
struct Setup {
    options: SqliteOptions,
    sql: String,
    /// The names that the acknowledgement needs.
    members: Members,
    ack: Vec<Piece>,
}

impl SqliteFactory {
    /// Opens the file as a handler would, makes what `create` says, prepares the statement, and
    /// closes it again. To be called at start, so that a wrong name is told at once.
    ///
    /// # Errors
    /// What an operator has to mend: a missing table or column is named, with those that exist.
    pub fn check(&self) -> Result<(), DatabaseError> {
        connect::check(&self.0)
    }
}

impl Factory for SqliteFactory {
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError> {
        match SqliteHandler::open(Arc::clone(&self.0)) {
            Ok(handler) => Ok(Box::new(handler)),
            Err(error) => Err(HandlerError::Open(error.to_string().into())),
        }
    }
}
