//! What the handlers need of a database.

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
    /// What it opens.
    type Link: Link;

    /// A login costs a server something, so that failing ones need a pause between them.
    const PACED: bool = true;

    /// A connection that is ready: missing tables made, the statement prepared and checked. The table of
    /// letters may be [unfit](Link::unfit).
    ///
    /// # Errors
    /// What an operator has to mend, or that the server cannot be reached now.
    fn connect(&self) -> Result<Self::Link, DatabaseError>;

    /// The same for a command beside the daemon, which makes no database.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and that there is no database yet.
    fn visit(&self) -> Result<Self::Link, DatabaseError> {
        self.connect()
    }

    /// Proves on a fresh connection as far as that is possible that the database can be used as it was set
    /// up.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    fn check(&self, _: &mut Self::Link) -> Result<(), DatabaseError> {
        Ok(())
    }

    /// Which database it is, for the log.
    fn name(&self) -> String;
}

/// What became of a COMMIT.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// It took effect.
    Done,
    /// It did not take effect and never will.
    RolledBack(Fault),
    /// Nobody knows.
    Unknown(Fault),
}

impl Commit {
    /// What follows from what a server said to COMMIT: nothing in time, or an error and whether that
    /// proves that nothing took effect. `undo` ends the transaction, which then may still be open.
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

/// Where the rows of a query go.
pub(crate) struct Sink<'s> {
    /// Takes the columns and the rows, and forgets what it had.
    pub(crate) rows: &'s mut fields::Rows,
    /// Is called for each row that came, and may take away what is there; what it refuses ends the
    /// query.
    pub(crate) each: &'s mut dyn FnMut(&mut fields::Rows) -> Result<(), Fault>,
    /// Values of binary types come in base64, for formats that have no bytes.
    pub(crate) in_base64: bool,
}

/// An open connection with its statement. It has one transaction at a time. Whoever waits for a
/// server heeds `stop`, also for what a server answers at once: the way to it may have gone dark.
///
/// ```text
///   begin ─► (savepoint ─► insert ─► release | undo)* ─► commit | rollback
/// ```
pub(crate) trait Link: Send {
    /// What its rows are like.
    fn shape(&self) -> &Arc<Shape>;

    /// The key of rows that stay as they are when they are there already, whoever stored them: then
    /// rows with the same key may be sent again when nobody knows whether they are stored. None where
    /// no row may be.
    fn resend_key(&self) -> Option<&[KeyColumn]>;

    /// What the column of each parameter takes.
    fn takes(&self) -> &[Takes];

    /// Whether everything that its statement writes is undone by a rollback or when the connection is
    /// lost, as far as that is known. Where it is not, rows that failed are not sent again.
    fn is_atomic(&self) -> bool {
        true
    }

    /// What, in the settings of the server, lets a power failure take rows that are committed, though
    /// [`Job::sync`](crate::Job) asks that it takes none: a sentence for each.
    fn doubts(&self) -> &[String] {
        &[]
    }

    /// Whether its statement was prepared for columns that have changed since: a new link has to be
    /// opened. Is called while no transaction is open. A database that prepares anew by itself has
    /// nothing to check.
    fn is_stale(&mut self, _: &Stop) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Whether the columns that the open transaction has written to are others than those that its values
    /// were judged by, or those that it has returned others than the acknowledgements were made for. A
    /// database that refuses such values by itself has nothing to check.
    fn has_changed(&mut self, _: &Stop) -> Result<bool, Fault> {
        Ok(false)
    }

    /// From the next transaction on, each statement waits at most so long for a lock; with None as long as
    /// the settings say. A database with one lock for all has nothing to do.
    fn limit_locks(&mut self, _: Option<Duration>, _: &Stop) -> Result<(), Fault> {
        Ok(())
    }

    /// Starts a transaction that may write. Waits for locks as the settings and `stop` allow.
    fn begin(&mut self, stop: &Stop) -> Result<(), Fault>;

    /// Stores the rows of `part`, and notes what that did where it is wanted. A row that is neither
    /// stored nor, with [`OnConflict::Nothing`](crate::OnConflict), in conflict on the key is an error
    /// of that row, unless the settings say otherwise ([`Affected`](crate::Affected)). After an error some of them may be stored, up to the next
    /// [`undo`](Self::undo) or [`rollback`](Self::rollback).
    fn insert(
        &mut self,
        rows: &Rows,
        part: Range<usize>,
        batch: &Batch,
        effects: &mut Effects,
        stop: &Stop,
    ) -> Result<(), Fault>;

    /// Marks the place that [`undo`](Self::undo) goes back to.
    fn savepoint(&mut self, stop: &Stop) -> Result<(), Fault>;

    /// Keeps what happened since the savepoint.
    fn release(&mut self, stop: &Stop) -> Result<(), Fault>;

    /// Forgets what happened since the savepoint. A fault with [`kept`](Fault::kept) where that is not
    /// possible, as of [`rollback`](Self::rollback).
    fn undo(&mut self, stop: &Stop) -> Result<(), Fault>;

    /// Ends the transaction for good.
    fn commit(&mut self, stop: &Stop) -> Commit;

    /// Undoes the transaction, if there still is one.
    fn rollback(&mut self, stop: &Stop) -> Result<(), Fault>;

    /// Whether a transaction is open: some errors undo it.
    fn is_open(&self) -> bool;

    /// Runs the query of the settings for row `row`; what it gives goes to `sink`.
    fn query(
        &mut self,
        rows: &Rows,
        row: usize,
        batch: &Batch,
        sink: &mut Sink<'_>,
        stop: &Stop,
    ) -> Result<(), Fault>;

    /// Why its table of letters takes none, as was found when the connection was opened: none is written.
    fn unfit(&self) -> Option<&DatabaseError>;

    /// Writes those of the letters into the table `table` that are not there yet, by their uids, within the
    /// transaction that is open. A fault of the statement where the table is not as it was.
    fn bury(&mut self, table: &str, letters: &[Letter<'_>], stop: &Stop) -> Result<(), Fault>;

    /// Reads up to `limit` letters with numbers beyond `after`, in their order.
    fn letters(
        &mut self,
        table: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<StoredLetter>, Fault>;

    /// Removes a letter, within the transaction where one is open. True when it was there.
    fn unbury(&mut self, table: &str, number: i64) -> Result<bool, Fault>;
}

/// A database and what is done with its requests.
#[derive(Debug)]
pub(crate) struct Setup<D> {
    pub(crate) driver: D,
    pub(crate) job: Arc<crate::Job>,
    /// When its handlers may log in.
    pub(crate) logins: Logins,
    /// The doubts that the last connection raised are logged.
    doubted: AtomicBool,
    /// A connection has found a table of letters that is fit. From then on rows are stored also while it
    /// is not.
    kept_letters: AtomicBool,
    /// The last connection found it unfit, which is logged.
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

    /// Connects, [checks](Driver::check) the database and its table of letters, and gives the
    /// [doubts](Link::doubts). A database that the daemon would make is one where there is none, unless it
    /// `may_make` it.
    ///
    /// # Errors
    /// As those of the driver, and the table of letters where it is unfit.
    pub(crate) fn prove(&self, may_make: bool) -> Result<Vec<String>, DatabaseError> {
        let opened = if may_make { self.driver.connect() } else { self.driver.visit() };
        let mut link = match opened {
            Err(error @ DatabaseError::NotMade(_)) => {
                return Ok(vec![format!("{error}; until then nothing can be checked there")]);
            }
            opened => opened?,
        };
        if let Some(error) = link.unfit() {
            return Err(error.clone());
        }
        self.driver.check(&mut link)?;
        self.kept_letters.store(true, Ordering::Relaxed);
        Ok(link.doubts().to_vec())
    }

    /// A connection as [`Driver::connect`] opens it. What it raises doubts about is logged, once for
    /// all connections.
    ///
    /// # Errors
    /// As those of the driver, and the table of letters as long as it was never found fit.
    pub(crate) fn connect(&self) -> Result<D::Link, DatabaseError> {
        let link = self.driver.connect()?;
        self.note_letters(link.unfit())?;
        let doubts = link.doubts();
        if !self.doubted.swap(!doubts.is_empty(), Ordering::Relaxed) {
            let database = self.driver.name();
            doubts.iter().for_each(|doubt| tracing::warn!(database, "{doubt}"));
        }
        Ok(link)
    }

    /// A connection has found the table of letters fit or not.
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
