//! The outcomes of the requests of a batch: answered, rejected, failed, or unknown.

use std::ops::Range;

use exchange::{Cause, Outcome};

use super::{Work, failed, unknown};
use crate::fault::Fault;
use crate::link::Driver;

impl<D: Driver> Work<'_, D> {
    /// Answers rows whose transaction is committed.
    pub(super) fn answer(&mut self, range: Range<usize>) {
        if self.setup.job.log_error_details {
            let name = self.setup.driver.name();
            for refusal in range.clone().filter_map(|row| self.rows.refusal(row)) {
                self.details.write(&name, &refusal.code, &refusal.text, &refusal.detail);
            }
        }
        if let Some((_, fault)) = &self.unsure {
            // The first attempt may have stored a row that the second one did not store. That is not a rejection.
            for row in range.clone() {
                let is_refused = self.rows.is_unsure(row) && self.rows.refusal(row).is_some();
                if is_refused || self.rows.is_disputed(row) {
                    self.rows.refuse(row, Fault { cause: Cause::Commit, ..fault.clone() });
                }
            }
        }
        self.rows.answers(range, |request, outcome| self.outbox.answer(request, outcome));
    }

    /// Logs what the database reported about a whole batch, if the settings enable it.
    pub(super) fn write_details(&mut self, fault: &Fault) {
        let name = self.setup.driver.name();
        self.details.write(&name, &fault.code, &fault.text, &fault.detail);
    }

    /// Ends `rows` with `outcome`. Rows whose rejection is final are answered as rejected.
    pub(super) fn end(&mut self, rows: impl IntoIterator<Item = usize>, outcome: &Outcome) {
        let mut settled = Vec::new();
        for row in rows {
            if self.rows.is_settled(row) {
                self.answer(row..row + 1);
                settled.push(row);
            } else {
                self.outbox.answer(self.rows.request(row), outcome.clone());
            }
        }
        self.log_unsettled(&settled, None);
    }

    /// Ends rows that are not stored, as far as that is known, because the transaction with the rows `tried` failed.
    /// Only a row that was alone in it receives the text of the database.
    pub(super) fn end_failed(&mut self, rows: Range<usize>, tried: &Range<usize>, fault: &Fault) {
        if tried.len() == 1 && rows.start == tried.start && !rows.is_empty() {
            self.end_with(tried.clone(), fault);
            if rows.len() > 1 {
                self.end_with(rows.start + 1..rows.end, &fault.for_others());
            }
        } else {
            self.end_with(rows, &fault.for_others());
        }
    }

    fn end_with(&mut self, rows: Range<usize>, fault: &Fault) {
        self.write_details(fault);
        let mut known = rows.start;
        if let Some((end, fault)) = &self.unsure {
            known = (*end).clamp(rows.start, rows.end);
            let outcome = unknown(fault);
            self.end(rows.start..known, &outcome);
        }
        self.end(known..rows.end, &failed(&fault.for_clients()));
    }
}
