//! A batch on its way through SQLite.
//!
//! ```text
//!              ┌────────────────── again, carefully ──────────────────┐
//!              ▼                                                      │
//!   range ─► BEGIN ─► row, row, row … ── a row is not accepted ─► ROLLBACK
//!              │            │ all ran
//!            failed         ▼
//!                        COMMIT ── a constraint that only COMMIT checks ─► ROLLBACK, halve the range
//!                           │
//!              replies, or failed, or unknown
//! ```
//!
//! The first pass runs without savepoints, which is fast. An error of a row may have left part of
//! what its statement did (`OR FAIL`, `RAISE(FAIL)`) or have undone the whole transaction
//! (`OR ROLLBACK`, `RAISE(ROLLBACK)`), so after the first such error everything is undone and run
//! again with a savepoint around each row. Each further pass refuses at least one row more, and a
//! range that COMMIT refuses has a smaller one to try, so it ends.

use std::ops::Range;
use std::sync::Arc;

use exchange::plant::{Plant, active};
use exchange::{Batch, Cause, Handler, Outbox, Outcome, Phase, Stop};
use rusqlite::CachedStatement;

use super::fault::{Blame, Fault};
use super::link::{Commit, Link};
use super::{Setup, connect::connect};
use crate::DatabaseError;
use crate::rows::Rows;
use crate::text::one_line;

/// Writes batches into an SQLite file. One on each thread.
#[derive(Debug)]
pub(super) struct SqliteHandler {
    setup: Arc<Setup>,
    /// None after an error that spoils a connection, until the next batch.
    link: Option<Link>,
    rows: Rows,
}

/// How the rows of one transaction ended.
enum Stored {
    /// All that are not refused are committed.
    Committed,
    /// COMMIT refused them; nothing of them is stored.
    Refused(Fault),
    /// Nothing of them is stored.
    Failed(Fault),
    /// Nobody knows whether they are stored.
    Unknown(Fault),
}

/// What became of the rows of a transaction that is not committed yet.
enum Pass {
    /// This many ran, the others are refused.
    Ran(usize),
    /// A row was not accepted and the transaction is undone.
    Undone,
    /// They cannot be stored now.
    Failed(Fault),
}

impl SqliteHandler {
    pub(super) fn open(setup: Arc<Setup>) -> Result<Self, DatabaseError> {
        let link = connect(&setup)?;
        Ok(Self { setup, link: Some(link), rows: Rows::default() })
    }

    /// The connection, opened anew when the last batch spoiled it, and attentive to `stop`.
    fn link(&mut self, stop: &Stop) -> Result<Link, String> {
        let open = self.link.take().map_or_else(|| connect(&self.setup), Ok);
        let mut link = open.map_err(|error| error.to_string())?;
        link.heed(stop).map_err(|fault| fault.text)?;
        Ok(link)
    }
}

impl Handler for SqliteHandler {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, stop: &Stop) {
        let link = match self.link(stop) {
            Ok(link) => link,
            Err(text) => {
                let outcome = failed(&text);
                return (0..batch.requests.len()).for_each(|i| outbox.answer(i, outcome.clone()));
            }
        };
        self.rows.begin(link.shape());
        for (index, request) in batch.requests.iter().enumerate() {
            if let Err(outcome) = self.rows.read(link.shape(), index, request) {
                outbox.answer(index, outcome);
            }
        }
        let mut work = Work { link: &link, rows: &mut self.rows, batch, outbox, stop };
        let spoiled = work.store_all();
        if spoiled {
            tracing::warn!(path = %self.setup.options.path.display(), "the database is opened anew");
        } else {
            self.link = Some(link);
        }
    }
}

/// One batch while it is being stored.
struct Work<'a> {
    link: &'a Link,
    rows: &'a mut Rows,
    batch: &'a Batch,
    outbox: &'a mut dyn Outbox,
    stop: &'a Stop,
}

impl Work<'_> {
    /// Stores and answers all rows. True when the connection is spoiled.
    fn store_all(&mut self) -> bool {
        let whole = 0..self.rows.len();
        let mut ranges = vec![whole];
        while let Some(range) = ranges.pop().filter(|range| !range.is_empty()) {
            match self.store(range.clone()) {
                Stored::Committed => self.answer(range),
                Stored::Refused(fault) if range.len() == 1 => {
                    self.rows.refuse(range.start, &fault.text);
                    self.answer(range);
                }
                Stored::Refused(_) => {
                    let middle = range.start + range.len() / 2;
                    ranges.extend([middle..range.end, range.start..middle]);
                }
                Stored::Failed(fault) => {
                    // Ranges are stored in their order, so the rest of the batch is what follows.
                    self.end(range.start..self.rows.len(), &failed(&fault.text));
                    return fault.blame.spoils_connection();
                }
                Stored::Unknown(fault) => {
                    self.end(
                        range.clone(),
                        &Outcome::ended(Cause::Commit, Phase::Work, &fault.text),
                    );
                    self.end(range.end..self.rows.len(), &failed(&fault.text));
                    return true;
                }
            }
        }
        false
    }

    fn store(&mut self, range: Range<usize>) -> Stored {
        self.rows.forgive(range.clone());
        let mut careful = false;
        loop {
            match self.pass(range.clone(), careful) {
                Pass::Ran(0) => {
                    return self
                        .link
                        .rollback()
                        .map_or_else(Stored::Failed, |()| Stored::Committed);
                }
                Pass::Ran(_) => return self.commit(range),
                Pass::Undone => careful = true,
                Pass::Failed(fault) => return self.give_up(fault),
            }
        }
    }

    fn commit(&mut self, range: Range<usize>) -> Stored {
        if active(Plant::AckBeforeCommit) {
            self.answer(range);
            self.outbox.flush();
        }
        match self.link.commit(self.stop) {
            Commit::Done => Stored::Committed,
            Commit::RolledBack(fault) if fault.blame == Blame::Row => Stored::Refused(fault),
            Commit::RolledBack(fault) => Stored::Failed(fault),
            Commit::Unknown(fault) => Stored::Unknown(fault),
        }
    }

    /// Undoes what there is. A connection that cannot even do that is spoiled.
    fn give_up(&self, fault: Fault) -> Stored {
        match self.link.rollback() {
            Ok(()) => Stored::Failed(fault),
            Err(_) => Stored::Failed(Fault { blame: Blame::Broken, ..fault }),
        }
    }

    /// Begins a transaction and runs the rows of `range` that are not refused.
    fn pass(&mut self, range: Range<usize>, careful: bool) -> Pass {
        let link = self.link;
        let mut statement = match link.begin(self.stop).and_then(|()| link.statement()) {
            Ok(statement) => statement,
            Err(fault) => return Pass::Failed(fault),
        };
        let alone = range.len() == 1;
        let mut ran = 0;
        for row in range {
            if self.rows.is_refused(row) {
                continue;
            }
            if self.stop.requested() {
                return Pass::Failed(Fault::new(Blame::Stopped, "stopped before the commit"));
            }
            let run = match careful {
                true => self.run_within_savepoint(&mut statement, row),
                false => link.run(&mut statement, self.rows, row, self.batch),
            };
            match run {
                Ok(()) => ran += 1,
                Err(fault) if fault.blame != Blame::Row => return Pass::Failed(fault),
                Err(fault) if careful || alone => {
                    self.rows.refuse(row, &fault.text);
                    if !link.is_open() {
                        return Pass::Undone;
                    }
                }
                Err(_) => return link.rollback().map_or_else(Pass::Failed, |()| Pass::Undone),
            }
        }
        Pass::Ran(ran)
    }

    /// Runs a row so that nothing of it stays when it is not accepted.
    fn run_within_savepoint(
        &self,
        statement: &mut CachedStatement<'_>,
        row: usize,
    ) -> Result<(), Fault> {
        self.link.execute("savepoint one_row")?;
        let run = self.link.run(statement, self.rows, row, self.batch);
        if self.link.is_open() {
            if run.is_err() {
                self.link.execute("rollback to one_row")?;
            }
            self.link.execute("release one_row")?;
        }
        run
    }

    /// Answers rows whose transaction is committed.
    fn answer(&mut self, range: Range<usize>) {
        self.rows.answers(range, |request, outcome| self.outbox.answer(request, outcome));
    }

    fn end(&mut self, range: Range<usize>, outcome: &Outcome) {
        for row in range {
            self.outbox.answer(self.rows.request(row), outcome.clone());
        }
    }
}

fn failed(text: &str) -> Outcome {
    Outcome::ended(Cause::Database, Phase::Work, &one_line(text))
}

#[cfg(test)]
mod tests;
