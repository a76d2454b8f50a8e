//! A database with what is done with its requests, whichever kind it is.

use std::fmt;
use std::sync::Arc;

use exchange::{Factory, Handler, HandlerError};

use crate::handler::RowsHandler;
use crate::letters::Letters;
use crate::link::{Driver, Setup};
use crate::reading::{QueryHandler, Reader};
use crate::{Action, DatabaseError};

/// Makes the handlers of a pool that stands before a database.
#[derive(Clone)]
pub struct Database(Arc<dyn Kind>);

/// What does not depend on the driver.
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

    /// Connects as a handler would, makes what `create` says, prepares the statement, and closes the
    /// connection again. To be called at start, so that a wrong name is told at once.
    ///
    /// # Errors
    /// What an operator has to mend: a missing table or column is named, with those that exist.
    pub fn check(&self) -> Result<(), DatabaseError> {
        self.0.check(true).map(drop)
    }

    /// The same for a command beside the daemon: it makes no database file, and says so where there is none.
    /// It also says what in the settings of the server lets a power failure take rows that were
    /// acknowledged, though [`Job::sync`](crate::Job) asks that it takes none. A sentence for each.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn doubts(&self) -> Result<Vec<String>, DatabaseError> {
        self.0.check(false)
    }

    /// The rows that were refused and kept. Makes no database file.
    ///
    /// # Errors
    /// When none are kept, or as [`check`](Self::check).
    pub fn letters(&self) -> Result<Letters, DatabaseError> {
        self.0.letters()
    }

    /// A connection for the query of the settings, without a handler.
    ///
    /// # Errors
    /// When the settings have no query, or as [`check`](Self::check).
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
