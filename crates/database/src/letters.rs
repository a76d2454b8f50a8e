//! Dead letters: requests whose row the database did not accept, stored in a separate table.
//!
//! A dead letter is written in the same transaction as the other rows, so it exists exactly when its client was
//! notified that the row was rejected. The table has these columns: `id`, a number that grows; `at`, the time when the
//! request was received, in microseconds since the Unix epoch; `row`, the request as received, in bytes; `code` and
//! `message`, the complete error of the database. Unlike the answer to the client, the message contains the details of
//! the error, which may show values of other rows: the table is for the operator, as the rows themselves are.
//!
//! A batch that is sent again because its outcome is unknown may have stored its dead letters already. The unique
//! column `uid` identifies each dead letter, so that the second write finds the first one, also if that is not
//! committed yet. Each new connection checks that the column and its key exist. A dead letter is never written into a
//! table without them.

use std::sync::Arc;

use exchange::{Batch, Outcome, Peer, Request, RequestId, Slice, Stop};

use crate::effects::Effects;
use crate::fault::{Blame, Fault};
use crate::letter::StoredLetter;
use crate::link::{Commit, DatabaseSession, Driver, Setup};
use crate::rows::{Rows, Shape};
use crate::source::Source;
use crate::{Action, DatabaseError, OnConflict};

/// The number of dead letters that are read together.
const PAGE: usize = 1000;

/// The result of a retry of a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retried {
    /// The row is stored and the dead letter is removed, in one transaction.
    Stored,
    /// A row with the same key already existed and is unchanged; the dead letter is removed.
    Present,
    /// The row is still not accepted, for this reason; the dead letter is kept.
    Refused(String),
    /// The row cannot be stored now, for this reason; the dead letter is kept. Others may be stored.
    Failed(String),
    /// The connection was lost during COMMIT: either the row is stored and the dead letter is removed, or the dead
    /// letter is kept.
    Unknown(String),
    /// The dead letter does not exist.
    Absent,
}

/// The dead letters of a pool.
#[derive(Debug)]
pub struct Letters(Box<dyn DeadLetterStore>);

trait DeadLetterStore: std::fmt::Debug {
    fn list(&mut self, after: i64, limit: usize) -> Result<Vec<StoredLetter>, Fault>;
    fn retry(&mut self, letter: &StoredLetter) -> Result<Retried, Fault>;
    fn remove_dead_letter(&mut self, number: i64) -> Result<bool, Fault>;
}

impl Letters {
    pub(crate) fn open<D: Driver>(setup: &Setup<D>) -> Result<Self, DatabaseError> {
        let Some(table) = setup.job.dead.clone() else { return Err(DatabaseError::NoDead) };
        if matches!(setup.job.action, Action::Query(_)) {
            return Err(DatabaseError::NoDead);
        }
        let link = setup.driver.visit()?;
        if let Some(error) = &link.opened().unfit {
            return Err(error.clone());
        }
        let (name, rows) = (setup.driver.name(), Rows::default());
        let action = setup.job.action.clone();
        Ok(Self(Box::new(Open { link, action, table, rows, name })))
    }

    /// Calls `each` with all dead letters in their order. They are read in pages.
    ///
    /// # Errors
    /// Returns the error of the database if it cannot be read, or the error of `each`.
    pub fn each<E: From<DatabaseError>>(
        &mut self,
        mut each: impl FnMut(&mut Self, StoredLetter) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut after = i64::MIN;
        loop {
            let page = self.0.list(after, PAGE).map_err(told)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.number;
            for letter in page {
                each(self, letter)?;
            }
        }
    }

    /// Stores the row of this dead letter and removes the dead letter, both or neither.
    ///
    /// # Errors
    /// Returns an error if the database cannot do this now.
    pub fn retry(&mut self, letter: &StoredLetter) -> Result<Retried, DatabaseError> {
        self.0.retry(letter).map_err(told)
    }

    /// Removes the dead letter with this number. Returns whether it existed.
    ///
    /// # Errors
    /// Returns an error if the database cannot do this now.
    pub fn remove(&mut self, number: i64) -> Result<bool, DatabaseError> {
        self.0.remove_dead_letter(number).map_err(told)
    }
}

/// Logs that a dead-letter table was missing: at the first start, or because it was dropped with its dead letters.
pub(crate) fn log_made(table: &str) {
    tracing::info!(table, "the dead-letter table was missing and has been created");
}

fn told(fault: Fault) -> DatabaseError {
    DatabaseError::Letters(fault.for_operators().into())
}

struct Open<L> {
    link: L,
    action: Action,
    table: String,
    rows: Rows,
    name: String,
}

impl<L> std::fmt::Debug for Open<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "letters in `{}` of {}", self.table, self.name)
    }
}

impl<L: DatabaseSession> DeadLetterStore for Open<L> {
    fn list(&mut self, after: i64, limit: usize) -> Result<Vec<StoredLetter>, Fault> {
        self.link.letters(&self.table, after, limit)
    }

    fn retry(&mut self, letter: &StoredLetter) -> Result<Retried, Fault> {
        if is_of_request(&self.link.opened().shape) {
            return Err(Fault::new(Blame::Statement, NOT_TOLD_APART));
        }
        let batch = Batch {
            requests: vec![Request {
                id: RequestId::NONE,
                peer: Peer::Inside,
                body: Slice::copy_of(&letter.row),
                at_us: letter.at_us,
                head: None,
            }],
        };
        let shape = Arc::clone(&self.link.opened().shape);
        self.rows.begin(&shape);
        if let Err(outcome) = self.rows.read(&shape, 0, &batch.requests[0]) {
            return Ok(Retried::Refused(text_of(&outcome)));
        }
        let stop = Stop::default();
        self.link.begin(&stop)?;
        let mut effects = Effects::counting();
        let moved = match self.link.remove_dead_letter(&self.table, letter.number) {
            Ok(true) => self.link.insert(&self.rows, 0..1, &batch, &mut effects, &stop),
            Ok(false) => {
                self.link.rollback(&stop)?;
                return Ok(Retried::Absent);
            }
            Err(fault) => Err(fault),
        };
        let moved = moved.and_then(|()| match self.link.has_changed(&stop) {
            Ok(false) => Ok(()),
            Ok(true) => {
                let text = "the columns of the table have changed meanwhile: try again";
                Err(Fault::new(Blame::Statement, text))
            }
            Err(fault) => Err(fault),
        });
        let fault = match moved {
            Ok(()) => match self.link.commit(&stop) {
                Commit::Done if effects.count(0) == 0 && has_key(&self.action) => {
                    return Ok(Retried::Present);
                }
                Commit::Done => return Ok(Retried::Stored),
                Commit::RolledBack(fault) => fault,
                Commit::Unknown(fault) => return Ok(Retried::Unknown(fault.for_operators())),
            },
            Err(fault) => fault,
        };
        self.link.rollback(&stop)?;
        match fault.blame {
            Blame::Row => Ok(Retried::Refused(fault.for_operators())),
            // The error may concern only this row.
            _ if fault.answered => Ok(Retried::Failed(fault.for_operators())),
            _ => Err(fault),
        }
    }

    fn remove_dead_letter(&mut self, number: i64) -> Result<bool, Fault> {
        let stop = Stop::default();
        self.link.begin(&stop)?;
        let was_there = self.link.remove_dead_letter(&self.table, number)?;
        match self.link.commit(&stop) {
            Commit::Done => Ok(was_there),
            Commit::RolledBack(fault) | Commit::Unknown(fault) => Err(fault),
        }
    }
}

const NOT_TOLD_APART: &str = "the pool stores `_id` or `_client`, and letters have neither: one row could be taken \
     for another. Insert the rows by hand and drop their letters, or retry with a configuration whose pool \
     stores neither";

/// Whether a row that already exists may be kept.
const fn has_key(action: &Action) -> bool {
    matches!(action, Action::Insert { on_conflict: OnConflict::Nothing(_), .. })
}

/// Whether the id or the client of a request is stored. Rows may differ only in these: in a key, but also in a
/// function, a trigger or a clause of the table, which the SQL of the pool does not show.
fn is_of_request(shape: &Shape) -> bool {
    shape.parameters.iter().any(|source| matches!(source, Source::Id | Source::Client))
}

fn text_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Reply(text) | Outcome::Ended(_, text) | Outcome::Fallback(_, text) => {
            String::from_utf8_lossy(text).into_owned()
        }
    }
}
