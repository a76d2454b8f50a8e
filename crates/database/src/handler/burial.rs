//! Dead letters of the rows that a batch refuses.
//!
//! A row is refused when its letter is committed. Where the connection is lost or the transaction undone,
//! the rows are tried again with their letters. Where a letter cannot be written now, because of a lock
//! or for want of room, its row ends as failed and not as refused, and the rows beside it are stored.
//! Where the table does not take the letter, because it is gone or has a constraint of its own, the letter
//! is lost and the log says so; those beside it are written.
//!
//! When the answer to COMMIT is lost, nobody knows whether its letters are there. Their rows are refused in
//! either case, and stay so: only the letters are sent again, and written where their uids are missing. A row that
//! was tried again could be stored beside its letter, and one that ended as unknown would be sent again by
//! its client.

use std::ops::Range;

use exchange::{Batch, Cause};

use super::{Stored, Work};
use crate::fault::{Blame, Fault, for_operators};
use crate::letter::Letter;
use crate::link::{Commit, Driver, Link};
use crate::rows::{Refusal, Rows};

impl<D: Driver> Work<'_, D> {
    /// Whether there is a refused row among `rows`, and a table for its letter.
    pub(super) fn has_letters(&self, rows: Range<usize>) -> bool {
        self.setup.job.dead.is_some()
            && rows.into_iter().any(|row| buried(self.rows, row).is_some())
    }

    /// Writes the letters of the refused rows among `rows` into the open transaction. A letter that the
    /// table does not take is lost by itself: the others are written without it.
    ///
    /// # Errors
    /// When the transaction is spoiled or undone: a fault of these rows.
    pub(super) fn bury(&mut self, rows: Range<usize>) -> Result<(), Fault> {
        let refused: Vec<usize> = rows.filter(|row| buried(self.rows, *row).is_some()).collect();
        if self.setup.job.dead.is_none() || refused.is_empty() {
            return Ok(());
        }
        if let Some(error) = self.link().unfit().map(ToString::to_string) {
            self.lose(&refused, &error);
            return Ok(());
        }
        let (mut lost, mut error) = (Vec::new(), String::new());
        // In their order, the first at the end.
        let mut parts = vec![&refused[..]];
        while let Some(part) = parts.pop() {
            let fault = match self.bury_part(part, &refused)? {
                Ok(()) => continue,
                Err(fault) => fault,
            };
            match fault.blame {
                Blame::Row | Blame::Statement if part.len() > 1 => {
                    let (one, other) = part.split_at(part.len() / 2);
                    parts.extend([other, one]);
                }
                Blame::Row | Blame::Statement => {
                    // The table may not be as it was.
                    if fault.blame == Blame::Statement {
                        self.connection.note_unfit();
                    }
                    error = fault.for_operators();
                    lost.extend(part);
                }
                // The others are not waited for as well.
                _ => {
                    let rest = parts.drain(..).rev().flatten();
                    let rest = part.iter().chain(rest).copied().collect();
                    self.put_off(rest, &fault, refused.len() == 1);
                }
            }
        }
        self.lose(&lost, &error);
        Ok(())
    }

    /// Writes the letters of `part` as they are, and one that is not taken so in ASCII: the error of a
    /// row may cite what the encoding of the table lacks. Where the inner result is a fault, they are undone.
    ///
    /// # Errors
    /// When the transaction is spoiled or undone: a fault of all the rows `refused`.
    fn bury_part(&mut self, part: &[usize], refused: &[usize]) -> Result<Result<(), Fault>, Fault> {
        let Some(table) = &self.setup.job.dead else { return Ok(Ok(())) };
        let link = self.connection.link().expect("a connection is open while rows are stored");
        let letter = |row: &usize| letter(self.rows, self.batch, *row);
        let mut letters: Vec<Letter<'_>> = part.iter().filter_map(letter).collect();
        loop {
            link.savepoint(self.stop)?;
            let fault = match link.bury(table, &letters, self.stop) {
                Ok(()) => return link.release(self.stop).map(Ok),
                Err(fault) => fault,
            };
            // The batch is tried again, and its letters with it.
            let is_conflict = fault.blame == Blame::Conflict;
            if !link.is_open() || is_conflict || fault.blame.spoils_connection() {
                return Err(fault.at_all(refused.to_vec()));
            }
            match link.undo(self.stop) {
                Ok(()) => {}
                Err(kept) if kept.kept => return Err(kept),
                // Some errors end the whole transaction.
                Err(_) => return Err(fault.at_all(refused.to_vec())),
            }
            match &letters[..] {
                [only] if fault.blame == Blame::Row => match only.in_ascii() {
                    Some(plain) => letters = vec![plain],
                    None => return Ok(Err(fault)),
                },
                _ => return Ok(Err(fault)),
            }
        }
    }

    /// The letters of `rows` are not kept, and the log says so; the rows beside them matter more. Those that were sent before may be there.
    fn lose(&mut self, rows: &[usize], error: &str) {
        let is_settled = |row: &usize| self.rows.is_settled(*row);
        let (settled, open): (Vec<usize>, Vec<usize>) =
            rows.iter().partition(|row| is_settled(row));
        self.log_unsettled(&settled, Some(error));
        let count = self.newly_lost(&open);
        if let (Some(table), 1..) = (&self.setup.job.dead, count) {
            tracing::error!(table, count, error, "dead letters are not kept");
        }
    }

    /// How many of the letters of `rows` the log has not called lost yet: each is counted there once.
    fn newly_lost(&mut self, rows: &[usize]) -> usize {
        rows.iter().filter(|row| self.rows.lose_letter(**row)).count()
    }

    /// The letters of `rows` cannot be written now: they are not refused but fail.
    fn put_off(&mut self, rows: Vec<usize>, fault: &Fault, is_alone: bool) {
        // The letters of some may be there: these stay refused, or their clients would send them again.
        let (settled, open): (Vec<usize>, Vec<usize>) =
            rows.into_iter().partition(|row| self.rows.is_settled(*row));
        let (count, error) = (open.len(), fault.for_operators());
        self.log_unsettled(&settled, Some(&error));
        if let (Some(table), 1..) = (&self.setup.job.dead, count) {
            tracing::warn!(
                table,
                count,
                error,
                "dead letters cannot be written now: their rows fail"
            );
        }
        let fault = if is_alone { fault.clone() } else { fault.for_others() };
        let failed = Fault { cause: Cause::Database, ..fault };
        open.into_iter().for_each(|row| self.rows.refuse(row, failed.clone()));
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

    /// Logs how many of `rows` are refused whose letters could not be written again, and why.
    pub(super) fn log_unsettled(&mut self, rows: &[usize], error: Option<&str>) {
        let count = self.newly_lost(rows);
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
        if !self.has_letters(row..row + 1) {
            return Ok(());
        }
        let stop = self.stop;
        let begun = self.link().begin(stop).and_then(|()| self.bury(row..row + 1));
        let fault = match begun.map(|()| self.link().commit(stop)) {
            Ok(Commit::Done) => return Ok(()),
            Ok(Commit::RolledBack(fault)) if is_for_good(&fault) => {
                self.lose(&[row], &fault.for_operators());
                return Ok(());
            }
            Ok(Commit::RolledBack(fault)) => fault,
            Ok(Commit::Unknown(fault)) => {
                self.rows.settle(row);
                // It is written again on a connection that has proved that it can be there once only.
                fault.again().answered(false)
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

/// Why row `row` is refused, if it is.
fn buried(rows: &Rows, row: usize) -> Option<&Refusal> {
    let refusal = rows.refusal(row).filter(|refusal| refusal.cause != Cause::Database);
    refusal.filter(|_| !rows.is_unsure(row))
}

/// The letter of row `row`, if it is refused.
fn letter<'a>(rows: &'a Rows, batch: &'a Batch, row: usize) -> Option<Letter<'a>> {
    let refusal = buried(rows, row)?;
    let request = &batch.requests[rows.request(row)];
    let code = match refusal.cause {
        Cause::Row if !refusal.code.is_empty() => &*refusal.code,
        cause => cause.as_str(),
    };
    let text = for_operators(&refusal.text, &refusal.detail).into();
    let (uid, at_us, row) = (rows.uid(row), request.at_us, &request.body);
    Some(Letter { uid, at_us, row, code, text })
}
