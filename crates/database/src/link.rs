//! The interface between the handlers and a database.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use exchange::{Batch, Stop};

use crate::DatabaseError;
use crate::effects::Effects;
use crate::fault::{Blame, Fault};
use crate::letter::{Letter, StoredLetter};
use crate::logins::Logins;
use crate::resend::KeyColumn;
use crate::rows::{Rows, Shape};
use sql::column::Takes;

/// Opens connections to one database.
pub(crate) trait Driver: Debug + Send + Sync + 'static {
    /// The type of its connections.
    type DatabaseSession: DatabaseSession;

    /// Whether failing logins need a pause between them, because a login has a cost for a server.
    const PACED: bool = true;

    /// Opens a connection that is ready: missing tables are created, the statement is prepared and checked. The
    /// dead-letter table may be [unusable](Opened::unfit).
    ///
    /// # Errors
    /// Returns what an operator must fix, or that the server cannot be reached now.
    fn connect(&self) -> Result<Self::DatabaseSession, DatabaseError>;

    /// Opens a connection for a command beside the daemon. It creates no database.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and an error if the database does not exist yet.
    fn visit(&self) -> Result<Self::DatabaseSession, DatabaseError> {
        self.connect()
    }

    /// Checks on a fresh connection, as far as possible, that the database can be used as configured.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    fn check(&self, _: &mut Self::DatabaseSession) -> Result<(), DatabaseError> {
        Ok(())
    }

    /// Returns the name of the database, for the log.
    fn name(&self) -> String;
}

/// The outcome of a COMMIT.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// It took effect.
    Done,
    /// It did not take effect and never will.
    RolledBack(Fault),
    /// The outcome is unknown.
    Unknown(Fault),
}

impl Commit {
    /// Returns the outcome for the answer of a server to COMMIT: `None` if there was no answer in time, or an error and
    /// whether it proves that nothing took effect. `undo` ends the transaction, which may still be open then.
    pub(crate) fn of_server(
        said: Option<Result<(), (Fault, bool)>>,
        undo: impl FnOnce() -> Result<(), Fault>,
    ) -> Self {
        let lost = |text: &str| Self::Unknown(Fault::new(Blame::Lost, text));
        match said {
            None => lost("the server did not answer a COMMIT"),
            Some(Ok(())) => Self::Done,
            Some(Err((fault, true))) => match undo() {
                Ok(()) => Self::RolledBack(fault),
                Err(kept) if kept.kept => Self::Unknown(kept),
                Err(_) => Self::RolledBack(Fault { blame: Blame::Lost, ..fault }),
            },
            Some(Err((fault, false))) => {
                let text = format!("{} during COMMIT", fault.text);
                Self::Unknown(Fault { blame: Blame::Lost, again: false, text, ..fault })
            }
        }
    }
}

/// The destination of the rows of a query.
pub(crate) struct Sink<'s> {
    /// Receives the columns and the rows. Its previous content is cleared.
    pub(crate) rows: &'s mut fields::Rows,
    /// Called for each row that arrives. It may take the rows out. If it returns an error, the query ends.
    pub(crate) each: &'s mut dyn FnMut(&mut fields::Rows) -> Result<(), Fault>,
    /// Values of binary types are encoded in base64, for formats without bytes.
    pub(crate) in_base64: bool,
}

/// What is known about an open connection and its statement.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The shape of its rows.
    pub(crate) shape: Arc<Shape>,
    /// What the column of each parameter accepts.
    pub(crate) takes: Vec<Takes>,
    /// The key of rows that are kept if they already exist, independent of who stored them. With it, rows may be sent
    /// again when it is unknown whether they are stored. `None` if no row may be sent again.
    pub(crate) resend_key: Option<Vec<KeyColumn>>,
    /// Whether a rollback or the loss of the connection undoes everything that its statement writes, as far as that is
    /// known. If not, rows that failed are not sent again.
    pub(crate) is_atomic: bool,
    /// One sentence for each setting of the server because of which a power failure may lose committed rows, although
    /// [`Job::sync`](crate::Job) requires that it loses none.
    pub(crate) doubts: Vec<String>,
    /// The reason why the dead-letter table cannot be used, found when the connection was opened. No dead letter is
    /// written then.
    pub(crate) unfit: Option<DatabaseError>,
}

/// An open connection with its statement. It has one transaction at a time. Every wait for a server observes `stop`,
/// also for answers that the server gives immediately, because the connection may be unresponsive.
///
/// ```text
///   begin ─► (savepoint ─► insert ─► release | undo)* ─► commit | rollback
/// ```
pub(crate) trait DatabaseSession: Send {
    /// Returns what is known about the connection and its statement.
    fn opened(&self) -> &Opened;

    /// Whether the columns have changed since its statement was prepared, so that a new link must be opened. Called
    /// while no transaction is open. A database that prepares statements again by itself has nothing to check.
    fn is_stale(&mut self, _: &Stop) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Whether the columns that the open transaction has written to differ from those that its values were checked
    /// against, or the columns that it has returned differ from those that the acknowledgements were made for. A
    /// database that rejects such values by itself has nothing to check.
    fn has_changed(&mut self, _: &Stop) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Sets the maximum time that each statement waits for a lock, from the next transaction on. With `None` the value
    /// of the settings applies. A database with one lock for everything has nothing to do.
    fn limit_locks(&mut self, _: Option<Duration>, _: &Stop) -> Result<(), Fault> {
        Ok(())
    }

    /// Starts a transaction that may write. Waits for locks as the settings and `stop` allow.
    fn begin(&mut self, stop: &Stop) -> Result<(), Fault>;

    /// Stores the rows of `part`, and records the effects if they are needed. A row that is neither stored nor, with
    /// [`OnConflict::Nothing`](crate::OnConflict), in conflict on the key is an error of that row, unless the settings
    /// allow it ([`Affected`](crate::Affected)). After an error some rows may be stored, until the next
    /// [`undo`](Self::undo) or [`rollback`](Self::rollback).
    fn insert(
        &mut self,
        rows: &Rows,
        part: Range<usize>,
        batch: &Batch,
        effects: &mut Effects,
        stop: &Stop,
    ) -> Result<(), Fault>;

    /// Sets the savepoint that [`undo`](Self::undo) returns to.
    fn savepoint(&mut self, stop: &Stop) -> Result<(), Fault>;

    /// Keeps the changes since the savepoint.
    fn release(&mut self, stop: &Stop) -> Result<(), Fault>;

    /// Undoes the changes since the savepoint. If that is not possible, the fault has [`kept`](Fault::kept), as for
    /// [`rollback`](Self::rollback).
    fn undo(&mut self, stop: &Stop) -> Result<(), Fault>;

    /// Commits the transaction.
    fn commit(&mut self, stop: &Stop) -> Commit;

    /// Undoes the transaction, if one is still open.
    fn rollback(&mut self, stop: &Stop) -> Result<(), Fault>;

    /// Whether a transaction is open: some errors undo it.
    fn is_open(&self) -> bool;

    /// Runs the query of the settings for row `row`. Its rows go to `sink`.
    fn query(
        &mut self,
        rows: &Rows,
        row: usize,
        batch: &Batch,
        sink: &mut Sink<'_>,
        stop: &Stop,
    ) -> Result<(), Fault>;

    /// Writes the dead letters that do not exist yet, identified by their uids, into the table `table`, within the open
    /// transaction. Returns a fault of the statement if the table has changed.
    fn write_dead_letters(
        &mut self,
        table: &str,
        letters: &[Letter<'_>],
        stop: &Stop,
    ) -> Result<(), Fault>;

    /// Reads up to `limit` dead letters with numbers above `after`, in their order.
    fn letters(
        &mut self,
        table: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<StoredLetter>, Fault>;

    /// Removes a dead letter, within the open transaction if there is one. Returns whether it existed.
    fn remove_dead_letter(&mut self, table: &str, number: i64) -> Result<bool, Fault>;
}

/// A database and the action for its requests.
#[derive(Debug)]
pub(crate) struct Setup<D> {
    pub(crate) driver: D,
    pub(crate) job: Arc<crate::Job>,
    /// When its handlers may log in.
    pub(crate) logins: Logins,
    /// The doubts of the last connection are logged.
    doubted: AtomicBool,
    /// A connection has found a usable dead-letter table. From then on rows are stored even while it is unusable.
    kept_letters: AtomicBool,
    /// The last connection found the table unusable. This is logged.
    is_unfit: AtomicBool,
}

impl<D: Driver> Setup<D> {
    pub(crate) fn new(driver: D, job: Arc<crate::Job>) -> Self {
        Self {
            driver,
            job,
            logins: Logins::new(D::PACED),
            doubted: AtomicBool::default(),
            kept_letters: AtomicBool::default(),
            is_unfit: AtomicBool::default(),
        }
    }

    /// Connects, [checks](Driver::check) the database and its dead-letter table, and returns the
    /// [doubts](Opened::doubts). A missing database that the daemon would create is a doubt, unless `may_make` allows to
    /// create it.
    ///
    /// # Errors
    /// Returns the errors of the driver, and that of the dead-letter table if it is unusable.
    pub(crate) fn prove(&self, may_make: bool) -> Result<Vec<String>, DatabaseError> {
        let opened = if may_make { self.driver.connect() } else { self.driver.visit() };
        let mut link = match opened {
            Err(error @ DatabaseError::NotMade(_)) => {
                return Ok(vec![format!("{error}; until then nothing can be checked there")]);
            }
            opened => opened?,
        };
        if let Some(error) = &link.opened().unfit {
            return Err(error.clone());
        }
        self.driver.check(&mut link)?;
        self.kept_letters.store(true, Ordering::Relaxed);
        Ok(link.opened().doubts.clone())
    }

    /// Opens a connection with [`Driver::connect`]. Its doubts are logged, once for all connections.
    ///
    /// # Errors
    /// Returns the errors of the driver, and that of the dead-letter table while it has never been found usable.
    pub(crate) fn connect(&self) -> Result<D::DatabaseSession, DatabaseError> {
        let link = self.driver.connect()?;
        let Opened { doubts, unfit, .. } = link.opened();
        self.note_letters(unfit.as_ref())?;
        if !self.doubted.swap(!doubts.is_empty(), Ordering::Relaxed) {
            let database = self.driver.name();
            doubts.iter().for_each(|doubt| tracing::warn!(database, "{doubt}"));
        }
        Ok(link)
    }

    /// Records whether a connection has found the dead-letter table usable.
    fn note_letters(&self, unfit: Option<&DatabaseError>) -> Result<(), DatabaseError> {
        let database = self.driver.name();
        let Some(error) = unfit else {
            self.kept_letters.store(true, Ordering::Relaxed);
            if self.is_unfit.swap(false, Ordering::Relaxed) {
                tracing::info!(database, "dead letters are kept again");
            }
            return Ok(());
        };
        if !self.kept_letters.load(Ordering::Relaxed) {
            return Err(error.clone());
        }
        if !self.is_unfit.swap(true, Ordering::Relaxed) {
            let error = error.to_string();
            tracing::error!(database, error, "dead letters are not kept, rows are stored");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_as_certain_as_what_was_said() {
        let fault = || Fault::new(Blame::Row, "twice").coded("23505");
        let undone = || -> Result<(), Fault> { Ok(()) };
        let never = || -> Result<(), Fault> { unreachable!("there is nothing to undo") };
        assert_eq!(Commit::of_server(Some(Ok(())), never), Commit::Done);
        let refused = Commit::of_server(Some(Err((fault(), true))), undone);
        assert_eq!(refused, Commit::RolledBack(fault()));
        let stuck = Commit::of_server(Some(Err((fault(), true))), || Err(Fault::stopped()));
        assert_eq!(stuck, Commit::RolledBack(Fault { blame: Blame::Lost, ..fault() }));
        let unknown = |text| Commit::Unknown(Fault::new(Blame::Lost, text));
        let cut = Commit::of_server(Some(Err((fault(), false))), never);
        let during = Fault::new(Blame::Lost, "twice during COMMIT").coded("23505");
        assert_eq!(cut, Commit::Unknown(during));
        assert_eq!(Commit::of_server(None, never), unknown("the server did not answer a COMMIT"));
    }
}
