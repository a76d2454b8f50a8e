//! Dead letters of the rows that a batch refuses.
//!
//! A row is refused when its letter is committed. Where the connection is lost or the transaction undone,
//! the rows are tried again with their letters. Where a letter cannot be written now, because of a lock
//! or for want of room, its row ends as failed and not as refused, and the rows beside it are stored.
//! Where the table does not take the letter, because it is gone or has a constraint of its own, the letter
//! is lost and the log says so.
//!
//! When the answer to COMMIT is lost, nobody knows whether its letters are there. Their rows are refused in
//! either case, and stay so: only the letters are sent again, and written where they are missing. A row that
//! was tried again could be stored beside its letter, and one that ended as unknown would be sent again by
//! its client.

use std::ops::Range;

use exchange::{Batch, Cause};

use super::{Stored, Work};
use crate::fault::{Blame, Fault, for_operators};
use crate::letter::{self, Letter};
use crate::link::{Commit, Driver, Link};
use crate::rows::{Refusal, Rows};

impl<D: Driver> Work<'_, D> {
    /// Whether there is a refused row among `rows`, and a table for its letter.
    pub(super) fn has_letters(&self, rows: Range<usize>) -> bool {
        self.setup.job.dead.is_some()
            && rows.into_iter().any(|row| buried(self.rows, row).is_some())
    }

    /// Writes the letters of the refused rows among `rows` into the open transaction.
    ///
    /// # Errors
    /// When the transaction is spoiled or undone: a fault of these rows.
    pub(super) fn bury(&mut self, rows: Range<usize>) -> Result<(), Fault> {
        let (Some(table), true) = (&self.setup.job.dead, self.has_letters(rows.clone())) else {
            return Ok(());
        };
        let again = self.unsure.as_ref().is_some_and(|(end, _)| rows.start < *end)
            || rows.start < self.lettered;
        let letters = letters(self.rows, self.batch, rows.clone(), again);
        let link = self.connection.link().expect("a connection is open while rows are stored");
        link.savepoint(self.stop)?;
        let fault = match link.bury(table, &letters, self.stop) {
            Ok(()) => return link.release(self.stop),
            Err(fault) => fault,
        };
        let count = letters.len();
        let refused: Vec<usize> = rows.filter(|row| buried(self.rows, *row).is_some()).collect();
        // The batch is tried again, and its letters with it.
        if !link.is_open() || fault.blame == Blame::Conflict || fault.blame.spoils_connection() {
            return Err(fault.at_all(refused));
        }
        match link.undo(self.stop) {
            Ok(()) => {}
            Err(kept) if kept.kept => return Err(kept),
            // Some errors end the whole transaction.
            Err(_) => return Err(fault.at_all(refused)),
        }
        if is_for_good(&fault) {
            // The table may have been changed, or replaced, since the connection was made.
            if link.go_without_uids() {
                let error = fault.for_operators();
                tracing::warn!(table, error, "dead letters are written without `uid`");
                let rows = refused[0]..refused[refused.len() - 1] + 1;
                return self.bury(rows);
            }
            log_lost(table, count, &fault);
            return Ok(());
        }
        // The letters of some may be there: these stay refused, or their clients would send them again.
        let is_alone = refused.len() == 1;
        let (settled, open): (Vec<usize>, Vec<usize>) =
            refused.into_iter().partition(|row| self.rows.is_settled(*row));
        let (count, error) = (open.len(), fault.for_operators());
        self.log_unsettled(settled.len(), Some(&error));
        if count > 0 {
            tracing::warn!(
                table,
                count,
                error,
                "dead letters cannot be written now: their rows fail"
            );
        }
        let fault = if is_alone { fault } else { fault.for_others() };
        let failed = Fault { cause: Cause::Database, ..fault };
        open.into_iter().for_each(|row| self.rows.refuse(row, failed.clone()));
        Ok(())
    }

    /// The answer to the COMMIT of `rows` is lost. Those of them that were refused are not stored: where
    /// their letters may be in the table they stay refused, and without a letter they are answered.
    pub(super) fn settle(&mut self, rows: Range<usize>) {
        for row in rows {
            if self.rows.refusal(row).is_none() || self.rows.is_unsure(row) {
                continue;
            }
            match self.has_letters(row..row + 1) {
                true => self.rows.settle(row),
                false => self.answer(row..row + 1),
            }
        }
    }

    /// Logs that so many rows are refused whose letters could not be written again, and why.
    pub(super) fn log_unsettled(&self, count: usize, error: Option<&str>) {
        if let (Some(table), 1..) = (&self.setup.job.dead, count) {
            tracing::error!(
                table,
                count,
                error,
                "the connection was lost while dead letters were committed: they may be missing"
            );
        }
    }

    /// Writes the letter of a row that was refused by its own COMMIT.
    ///
    /// # Errors
    /// When it cannot be written now, or may not be there.
    pub(super) fn bury_alone(&mut self, row: usize) -> Result<(), Fault> {
        let (Some(table), true) = (&self.setup.job.dead, self.has_letters(row..row + 1)) else {
            return Ok(());
        };
        let stop = self.stop;
        let begun = self.link().begin(stop).and_then(|()| self.bury(row..row + 1));
        let fault = match begun.map(|()| self.link().commit(stop)) {
            Ok(Commit::Done) => return Ok(()),
            Ok(Commit::RolledBack(fault)) if is_for_good(&fault) => {
                log_lost(table, 1, &fault);
                return Ok(());
            }
            Ok(Commit::RolledBack(fault)) => fault,
            Ok(Commit::Unknown(fault)) => {
                self.lettered = row + 1;
                self.rows.settle(row);
                fault.again()
            }
            Err(fault) => fault,
        };
        // The next transaction must not begin within what is left of this one.
        match self.give_up(fault) {
            Stored::Failed(fault) | Stored::Unknown(fault) => Err(fault),
            Stored::Committed | Stored::Refused(_) | Stored::Stale => Ok(()),
        }
    }
}

/// Whether a letter with this fault will never be taken as it is.
const fn is_for_good(fault: &Fault) -> bool {
    matches!(fault.blame, Blame::Row | Blame::Statement)
}

/// The rows beside the letters matter more.
fn log_lost(table: &str, count: usize, fault: &Fault) {
    let error = fault.for_operators();
    tracing::error!(table, count, error, "dead letters are not kept");
}

/// Why row `row` is refused, if it is.
fn buried(rows: &Rows, row: usize) -> Option<&Refusal> {
    let refusal = rows.refusal(row).filter(|refusal| refusal.cause != Cause::Database);
    refusal.filter(|_| !rows.is_unsure(row))
}

/// The letters of the refused rows among `of`; `again`: they may be in the table.
fn letters<'a>(rows: &'a Rows, batch: &'a Batch, of: Range<usize>, again: bool) -> Vec<Letter<'a>> {
    let letter = |row: usize| {
        let refusal = buried(rows, row)?;
        let request = &batch.requests[rows.request(row)];
        let code = match refusal.cause {
            Cause::Row if !refusal.code.is_empty() => &*refusal.code,
            cause => cause.word(),
        };
        let text = for_operators(&refusal.text, &refusal.detail).into();
        let (uid, at_us, row) = (rows.uid(row), request.at_us, &request.body);
        Some(Letter { uid, at_us, row, code, text, count: None })
    };
    if !again {
        return of.filter_map(letter).collect();
    }
    // Those before `of` are in the table, and count.
    let before = (0..of.start).filter_map(letter).count();
    let mut all: Vec<Letter<'a>> = (0..of.end).filter_map(letter).collect();
    letter::count(&mut all);
    all.split_off(before)
}
