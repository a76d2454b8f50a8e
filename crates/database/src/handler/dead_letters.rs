//! Dead letters of the rows that a batch rejects.
//!
//! A row is rejected when its dead letter is committed. If the connection is lost or the transaction is undone, the
//! rows are tried again with their dead letters. If a dead letter cannot be written now, because of a lock or because
//! there is no space, its row ends as failed, not as rejected, and the other rows are stored. If the table does not
//! accept the dead letter, because the table was dropped or has an additional constraint, the dead letter is lost and
//! the log says so. The other dead letters are written.
//!
//! When the answer to COMMIT is lost, it is unknown whether its dead letters are stored. Their rows are rejected in
//! either case, and remain so: only the dead letters are sent again, and written if their uids are missing. If such a
//! row were tried again, it could be stored in addition to its dead letter. If it ended as unknown, its client would
//! send it again.

use std::ops::Range;

use exchange::{Batch, Cause};

use super::{Stored, Work};
use crate::fault::{Blame, Fault, for_operators};
use crate::letter::Letter;
use crate::link::{Commit, DatabaseSession, Driver};
use crate::rows::{Refusal, Rows};

impl<D: Driver> Work<'_, D> {
    /// Whether a row among `rows` is rejected and there is a table for its dead letter.
    pub(super) fn has_letters(&self, rows: Range<usize>) -> bool {
        self.setup.job.dead.is_some()
            && rows.into_iter().any(|row| dead_letter_reason(self.rows, row).is_some())
    }

    /// Writes the dead letters of the rejected rows among `rows` into the open transaction. If the table does not
    /// accept one of them, only this one is lost: the others are written without it.
    ///
    /// # Errors
    /// Returns a fault of these rows if the transaction is spoiled or undone.
    pub(super) fn write_dead_letters(&mut self, rows: Range<usize>) -> Result<(), Fault> {
        let refused: Vec<usize> =
            rows.filter(|row| dead_letter_reason(self.rows, *row).is_some()).collect();
        if self.setup.job.dead.is_none() || refused.is_empty() {
            return Ok(());
        }
        if let Some(error) = self.link().opened().unfit.as_ref().map(ToString::to_string) {
            self.lose(&refused, &error);
            return Ok(());
        }
        let (mut lost, mut error) = (Vec::new(), String::new());
        // In their order, with the first one at the end.
        let mut parts = vec![&refused[..]];
        while let Some(part) = parts.pop() {
            let fault = match self.write_dead_letter_part(part, &refused)? {
                Ok(()) => continue,
                Err(fault) => fault,
            };
            match fault.blame {
                Blame::Row | Blame::Statement if part.len() > 1 => {
                    let (one, other) = part.split_at(part.len() / 2);
                    parts.extend([other, one]);
                }
                Blame::Row | Blame::Statement => {
                    // The table may have changed.
                    if fault.blame == Blame::Statement {
                        self.connection.note_unfit();
                    }
                    error = fault.for_operators();
                    lost.extend(part);
                }
                // No further wait for the other dead letters.
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

    /// Writes the dead letters of `part` unchanged. If the table does not accept one, it is written in ASCII, because
    /// the error of a row may cite characters that the encoding of the table lacks. If the inner result is a fault, the
    /// dead letters are undone.
    ///
    /// # Errors
    /// Returns a fault of all the rows `refused` if the transaction is spoiled or undone.
    fn write_dead_letter_part(
        &mut self,
        part: &[usize],
        refused: &[usize],
    ) -> Result<Result<(), Fault>, Fault> {
        let Some(table) = &self.setup.job.dead else { return Ok(Ok(())) };
        let link = self.connection.link().expect("a connection is open while rows are stored");
        let letter = |row: &usize| letter(self.rows, self.batch, *row);
        let mut letters: Vec<Letter<'_>> = part.iter().filter_map(letter).collect();
        loop {
            link.savepoint(self.stop)?;
            let fault = match link.write_dead_letters(table, &letters, self.stop) {
                Ok(()) => return link.release(self.stop).map(Ok),
                Err(fault) => fault,
            };
            // The batch is tried again together with its dead letters.
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

    /// Logs that the dead letters of `rows` are lost. The transaction continues, because the other rows matter more.
    /// Dead letters that were sent before may be stored.
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

    /// Returns the number of dead letters of `rows` that have not been logged as lost yet. Each one is counted once in
    /// the log.
    fn newly_lost(&mut self, rows: &[usize]) -> usize {
        rows.iter().filter(|row| self.rows.lose_letter(**row)).count()
    }

    /// Lets `rows` fail, because their dead letters cannot be written now. They are not rejected.
    fn put_off(&mut self, rows: Vec<usize>, fault: &Fault, is_alone: bool) {
        // The dead letters of some rows may be stored. These rows stay rejected, because otherwise their clients would
        // send them again.
        let (settled, open): (Vec<usize>, Vec<usize>) =
            rows.into_iter().partition(|row| self.rows.is_settled(*row));
        let (count, error) = (open.len(), fault.for_operators());
        self.log_unsettled(&settled, Some(&error));
        if let (Some(table), 1..) = (&self.setup.job.dead, count) {
            tracing::warn!(table, count, error, "dead letters cannot be written; their rows fail");
        }
        let fault = if is_alone { fault.clone() } else { fault.for_others() };
        let failed = Fault { cause: Cause::Database, ..fault };
        open.into_iter().for_each(|row| self.rows.refuse(row, failed.clone()));
    }

    /// Handles a lost answer to the COMMIT of `rows`. The rejected rows among them are not stored. They stay rejected
    /// if their dead letters may be in the table. Rejected rows without a dead letter are answered.
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

    /// Logs the number of rejected rows among `rows` whose dead letters could not be written again, and the reason.
    pub(super) fn log_unsettled(&mut self, rows: &[usize], error: Option<&str>) {
        let count = self.newly_lost(rows);
        if let (Some(table), 1..) = (&self.setup.job.dead, count) {
            tracing::error!(
                table,
                count,
                error,
                "the connection was lost while dead letters were committed; some may be missing"
            );
        }
    }

    /// Writes the dead letter of a row that its own COMMIT rejected.
    ///
    /// # Errors
    /// Returns an error if it cannot be written now, or may not be stored.
    pub(super) fn write_dead_letter_alone(&mut self, row: usize) -> Result<(), Fault> {
        if !self.has_letters(row..row + 1) {
            return Ok(());
        }
        let stop = self.stop;
        let begun = self.link().begin(stop).and_then(|()| self.write_dead_letters(row..row + 1));
        let fault = match begun.map(|()| self.link().commit(stop)) {
            Ok(Commit::Done) => return Ok(()),
            Ok(Commit::RolledBack(fault)) if is_for_good(&fault) => {
                self.lose(&[row], &fault.for_operators());
                return Ok(());
            }
            Ok(Commit::RolledBack(fault)) => fault,
            Ok(Commit::Unknown(fault)) => {
                self.rows.settle(row);
                // It is written again on a connection that has checked that it can be stored only once.
                fault.again().answered(false)
            }
            Err(fault) => fault,
        };
        // The next transaction must not begin within the rest of this one.
        match self.give_up(fault) {
            Stored::Failed(fault) | Stored::Unknown(fault) => Err(fault),
            Stored::Committed | Stored::Refused(_) | Stored::Stale => Ok(()),
        }
    }
}

/// Whether a dead letter with this fault will never be accepted unchanged.
const fn is_for_good(fault: &Fault) -> bool {
    matches!(fault.blame, Blame::Row | Blame::Statement)
}

/// Returns the reason why row `row` is rejected, if it is.
fn dead_letter_reason(rows: &Rows, row: usize) -> Option<&Refusal> {
    let refusal = rows.refusal(row).filter(|refusal| refusal.cause != Cause::Database);
    refusal.filter(|_| !rows.is_unsure(row))
}

/// Returns the dead letter of row `row`, if it is rejected.
fn letter<'a>(rows: &'a Rows, batch: &'a Batch, row: usize) -> Option<Letter<'a>> {
    let refusal = dead_letter_reason(rows, row)?;
    let request = &batch.requests[rows.request(row)];
    let code = match refusal.cause {
        Cause::Row if !refusal.code.is_empty() => &*refusal.code,
        cause => cause.as_str(),
    };
    let text = for_operators(&refusal.text, &refusal.detail).into();
    let (uid, at_us, row) = (rows.uid(row), request.at_us, &request.body);
    Some(Letter { uid, at_us, row, code, text })
}
