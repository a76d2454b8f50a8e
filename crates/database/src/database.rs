//! A database with the action for its requests, independent of its kind.

use std::fmt;
use std::sync::Arc;

use exchange::{Factory, Handler, HandlerError};

use crate::handler::RowsHandler;
use crate::letters::Letters;
use crate::link::{Driver, Setup};
use crate::reading::{QueryHandler, Reader};
use crate::{Action, DatabaseError};

/// Makes the handlers of a pool with a database.
#[derive(Clone)]
pub struct Database(Arc<dyn Kind>);

/// The operations that do not depend on the driver.
trait Kind: Send + Sync {
    fn check(&self, may_make: bool) -> Result<Vec<String>, DatabaseError>;
    fn handler(self: Arc<Self>) -> Result<Box<dyn Handler>, DatabaseError>;
    fn letters(&self) -> Result<Letters, DatabaseError>;
    fn reader(&self) -> Result<Reader, DatabaseError>;
    fn name(&self) -> String;
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({})", self.0.name())
    }
}

impl Database {
    pub(crate) fn new<D: Driver>(setup: Arc<Setup<D>>) -> Self {
        Self(setup)
    }

    /// Connects as a handler would, runs `create`, prepares the statement, and closes the connection. Called at
    /// startup, so that a wrong name is reported immediately.
    ///
    /// # Errors
    /// Returns what an operator must fix: a missing table or column is named, together with the existing ones.
    pub fn check(&self) -> Result<(), DatabaseError> {
        self.0.check(true).map(drop)
    }

    /// The same check for a command beside the daemon: it creates no database file, and reports a missing one. Returns
    /// one sentence for each setting of the server because of which a power failure may lose acknowledged rows,
    /// although [`Job::sync`](crate::Job) requires that it loses none.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn doubts(&self) -> Result<Vec<String>, DatabaseError> {
        self.0.check(false)
    }

    /// Opens the dead letters. Creates no database file.
    ///
    /// # Errors
    /// Returns an error if the pool keeps no dead letters. Otherwise as [`check`](Self::check).
    pub fn letters(&self) -> Result<Letters, DatabaseError> {
        self.0.letters()
    }

    /// Opens a connection for the query of the settings, without a handler.
    ///
    /// # Errors
    /// Returns an error if the settings have no query. Otherwise as [`check`](Self::check).
    pub fn reader(&self) -> Result<Reader, DatabaseError> {
        self.0.reader()
    }
}

impl<D: Driver> Kind for Setup<D> {
    fn check(&self, may_make: bool) -> Result<Vec<String>, DatabaseError> {
        self.prove(may_make)
    }

    fn handler(self: Arc<Self>) -> Result<Box<dyn Handler>, DatabaseError> {
        Ok(match self.job.action.clone() {
            Action::Query(query) => Box::new(QueryHandler::open(self, query)?),
            Action::Insert { .. } | Action::Statement(_) => Box::new(RowsHandler::open(self)?),
        })
    }

    fn letters(&self) -> Result<Letters, DatabaseError> {
        Letters::open(self)
    }

    fn reader(&self) -> Result<Reader, DatabaseError> {
        match self.job.action {
            Action::Query(_) => Reader::open(self),
            _ => Err(DatabaseError::Statement("there is no query".into())),
        }
    }

    fn name(&self) -> String {
        self.driver.name()
    }
}

impl Factory for Database {
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError> {
        Arc::clone(&self.0).handler().map_err(|error| HandlerError::Open(error.to_string().into()))
    }
}
