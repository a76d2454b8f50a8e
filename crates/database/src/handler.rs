//! Stores a batch in a database of any kind.
//!
//! ```text
//!              ┌───────────── again, carefully ───────────────────────┐
//!              ▼                                                      │
//!   range ─► BEGIN ─► all rows together ─── a row is not accepted ─► ROLLBACK
//!      ▲       │            │
//!      │     failed         ▼
//!      │       │         COMMIT ── a constraint that only COMMIT checks ─► ROLLBACK, halve the range
//!      │       ▼            │
//!      └── may help?        ▼
//!            replies, or failed, or unknown
//! ```
//!
//! The first pass runs without savepoints, which is fast. "Carefully" means: the rows are divided into parts with a
//! savepoint around each. A part that is not accepted is undone and split, at the row that caused the error if the
//! driver knows it, otherwise in two halves, until the row stands alone and is rejected. Some errors of a row undo the
//! whole transaction. Then all parts are tried again, but finer, so the process ends.
//!
//! A fault whose code is not that of a row may still be caused by a row, because a trigger can raise any code. If the
//! database answered with the fault and the connection is still open, the rows are retried while that may help, and
//! then in smaller transactions, down to one row each. The good rows are stored, and the row that fails alone ends with
//! its own fault. The same applies to a row that waits for a lock of another connection, or that ends its connection.
//! The limits of this are in [`smaller`].
//!
//! An error that may be caused by columns that have changed since the statement was prepared is checked first, once for
//! each batch. If they have changed, the batch runs again on a fresh statement.

mod answers;
mod dead_letters;
mod retry_budget;
mod smaller;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::mutant::{Mutant, active};
use exchange::{Batch, Cause, Handler, Outbox, Outcome, Phase, Stop};

use crate::DatabaseError;
use crate::connection::Connection;
use crate::details::DetailLog;
use crate::effects::Effects;
use crate::fault::{Blame, Fault};
use crate::link::{Commit, DatabaseSession, Driver, Setup};
use crate::parts::{halves, split};
use crate::resend::repeatable;
use crate::rows::{Rows, Shape};
use crate::text::one_line;
pub(crate) use retry_budget::RetryBudget;

/// The number of connections that the same rows lose before they are sent one by one.
const LOSSES_MAX: u32 = 2;

/// The maximum number of times that a batch starts again because its columns have changed.
const CHANGES_MAX: u32 = 3;

/// Writes batches into a database. There is one handler on each thread.
#[derive(Debug)]
pub(crate) struct RowsHandler<D: Driver> {
    setup: Arc<Setup<D>>,
    connection: Connection<D::DatabaseSession>,
    rows: Rows,
    effects: Effects,
    details: DetailLog,
    kept: DetailLog,
    retry_budget: RetryBudget,
}

impl<D: Driver> RowsHandler<D> {
    pub(crate) fn open(setup: Arc<Setup<D>>) -> Result<Self, DatabaseError> {
        let connection = Connection::new(setup.connect()?);
        let details = DetailLog::new(setup.job.log_error_details);
        let effects = Effects::default();
        let kept = DetailLog::new(true);
        let (rows, retry_budget) = (Rows::default(), RetryBudget::new(Instant::now()));
        Ok(Self { setup, connection, rows, effects, details, kept, retry_budget })
    }

    #[cfg(test)]
    pub(crate) const fn connection(&mut self) -> &mut Connection<D::DatabaseSession> {
        &mut self.connection
    }
}

impl<D: Driver> Handler for RowsHandler<D> {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, stop: &Stop) {
        let Self { setup, connection, rows, effects, details, kept, retry_budget } = self;
        retry_budget.grow(Instant::now());
        let shape = Arc::clone(connection.shape());
        rows.begin(&shape);
        for (index, request) in batch.requests.iter().enumerate() {
            if let Err(outcome) = rows.read(&shape, index, request) {
                // With a dead-letter table, the request is answered when its dead letter is stored.
                match setup.job.dead {
                    Some(_) => rows.keep_refused(index, &outcome),
                    None => outbox.answer(index, outcome),
                }
            }
        }
        Work {
            setup,
            connection,
            shape,
            rows,
            effects,
            details,
            kept,
            retry_budget,
            batch,
            outbox,
            stop,
            unsure: None,
            undone: None,
            answered: false,
            splits: false,
            is_accepting: false,
            conflicts: 0,
            trying: None,
            alone: 0,
            splitting: None,
            is_waited: false,
            losses: 0,
            is_sent: false,
            one_by_one: false,
            found: None,
            suspect: false,
            checked: false,
            changes: 0,
        }
        .store_all();
    }
}

/// The outcome of the rows of one transaction.
enum Stored {
    /// All rows that are not rejected are committed.
    Committed,
    /// COMMIT rejected the rows; none is stored.
    Refused(Fault),
    /// None of the rows is stored.
    Failed(Fault),
    /// It is unknown whether the rows are stored.
    Unknown(Fault),
    /// None of the rows is stored, and the columns have changed since the statement was prepared.
    Stale,
}

/// The outcome of the rows of a transaction before its COMMIT.
enum Pass {
    /// This number of rows ran; the others are rejected.
    Ran(usize),
    /// A row was not accepted, and the transaction is undone.
    Undone,
    /// The rows cannot be stored now.
    Failed(Fault),
}

/// The state of one batch while it is being stored.
struct Work<'a, D: Driver> {
    setup: &'a Setup<D>,
    connection: &'a mut Connection<D::DatabaseSession>,
    /// The shape that the rows were parsed for.
    shape: Arc<Shape>,
    rows: &'a mut Rows,
    effects: &'a mut Effects,
    details: &'a mut DetailLog,
    /// Logs errors about rows that cannot be rolled back.
    kept: &'a mut DetailLog,
    retry_budget: &'a mut RetryBudget,
    batch: &'a Batch,
    outbox: &'a mut dyn Outbox,
    stop: &'a Stop,
    /// The rows up to here may be stored, for this reason: they are being sent again.
    unsure: Option<(usize, Fault)>,
    /// The rows up to here were on a connection that was lost, for this reason. They are not stored if their tables
    /// have transactions.
    undone: Option<(usize, Fault)>,
    /// The last attempt failed with an error with which the database answered rows.
    answered: bool,
    /// Rows are being tried in smaller transactions.
    splits: bool,
    /// One of the smaller transactions was committed.
    is_accepting: bool,
    /// The number of conflicts of the rows that are being stored.
    conflicts: u32,
    /// The time since when a row that failed by itself is being retried.
    trying: Option<Instant>,
    /// The number of rows that failed alone since the last committed transaction.
    alone: u32,
    /// The time since when smaller transactions have been tried without a commit.
    splitting: Option<Instant>,
    /// Rows have waited for a lock of another connection for the maximum time that the settings allow.
    is_waited: bool,
    /// The number of connections that were lost while rows were stored, since the last committed transaction.
    losses: u32,
    /// The last attempt had a connection to send rows on.
    is_sent: bool,
    /// The rows of a transaction are sent one by one, because one of them ends its connection.
    one_by_one: bool,
    /// The row on which the last connection was lost.
    found: Option<usize>,
    /// A row was rejected with an error that may be caused by columns that have changed.
    suspect: bool,
    /// The statement was compared with its columns. This is done once for each batch.
    checked: bool,
    /// The number of times that columns were found changed after rows had been checked against them.
    changes: u32,
}

impl<D: Driver> Work<'_, D> {
    /// Stores and answers all rows.
    fn store_all(mut self) {
        let mut ranges = Vec::new();
        let whole = 0..self.rows.len();
        ranges.push(whole);
        // Ranges are stored in their order, so the rest of the batch follows this range.
        while let Some(range) = ranges.pop().filter(|range| !range.is_empty()) {
            let stored = match self.store(range.clone()) {
                // The error may concern one of the rows, and it is unknown which one.
                Stored::Unknown(fault) if range.len() > 1 => Stored::Unknown(fault.for_others()),
                stored => stored,
            };
            match stored {
                Stored::Committed => {
                    self.record_success();
                    self.answer(range);
                }
                Stored::Refused(fault) if range.len() == 1 => {
                    self.rows.refuse(range.start, fault);
                    if let Err(fault) = self.write_dead_letter_alone(range.start) {
                        // The client is notified of the rejection when the dead letter is stored.
                        if !self.after_failure(range, &fault, &mut ranges) {
                            return;
                        }
                        continue;
                    }
                    self.record_success();
                    self.answer(range);
                }
                Stored::Refused(_) => ranges.extend(halves(range)),
                Stored::Stale => ranges.push(range),
                Stored::Failed(fault) => {
                    if self.is_sent && fault.blame == Blame::Lost && !fault.answered {
                        self.undone = Some((range.end, fault.for_others()));
                    }
                    if !self.after_failure(range, &fault, &mut ranges) {
                        return;
                    }
                }
                Stored::Unknown(fault) if fault.kept => {
                    self.connection.discard();
                    self.kept.error(&self.setup.driver.name(), range.len(), &fault);
                    self.end(range, &unknown(&fault));
                }
                Stored::Unknown(fault) => {
                    self.rows.doubt(range.clone());
                    self.settle(range.clone());
                    let mut again = self.repeatable(range.clone());
                    self.connection.record_failure(self.setup, &fault);
                    self.connection.discard();
                    self.losses += 1;
                    let spent = self.is_lost_alone(&range);
                    if again.is_empty() || spent || !self.wait(range.clone(), Duration::MAX) {
                        again.clear();
                        self.write_details(&fault);
                    }
                    let is_ended = |row: &usize| {
                        let is_open = self.rows.is_unsure(*row) || self.rows.is_settled(*row);
                        is_open && !again.iter().any(|it| it.contains(row))
                    };
                    let ended: Vec<usize> = range.clone().filter(is_ended).collect();
                    self.end(ended, &unknown(&fault));
                    if self.unsure.as_ref().is_none_or(|(end, _)| *end < range.end) {
                        self.unsure = Some((range.end, fault));
                    }
                    // One of them may end its connection at COMMIT.
                    let is_finer = self.losses >= LOSSES_MAX;
                    ranges.extend(again.into_iter().rev().flat_map(|range| {
                        if is_finer && range.len() > 1 { halves(range).into() } else { vec![range] }
                    }));
                }
            }
        }
    }

    /// Records that a transaction is committed or one of its rows is rejected: the database works.
    fn record_success(&mut self) {
        self.connection.record_success(self.setup);
        (self.alone, self.losses, self.splitting) = (0, 0, None);
        self.is_accepting = self.splits;
        self.end_trying();
    }

    /// Returns how much longer a row is retried.
    fn time_left(&self, row: usize) -> Duration {
        let at_us = self.batch.requests[self.rows.request(row)].at_us;
        self.connection.time_left(self.setup.job.retry, at_us)
    }

    /// Waits for another attempt while any of `rows` has time left, at most for `limit`.
    fn wait(&mut self, rows: Range<usize>, limit: Duration) -> bool {
        let left = rows.map(|row| self.time_left(row)).max().unwrap_or_default();
        self.connection.wait(self.setup, left.min(limit), self.stop)
    }

    /// Returns the rows of `range` that cannot be stored twice when they are sent again on this connection.
    fn repeatable(&mut self, range: Range<usize>) -> Vec<Range<usize>> {
        let resend = self.setup.job.resend;
        let key = self
            .connection
            .link()
            .and_then(|link| link.opened().resend_key.as_deref())
            .filter(|_| resend);
        repeatable(key, &self.shape, self.rows, range, self.batch)
    }

    fn store(&mut self, range: Range<usize>) -> Stored {
        self.is_sent = false;
        let lock_limit = self.lock_limit(&range);
        let opened = self.connection.open(self.setup);
        let limited = opened.and_then(|link| {
            link.limit_locks(lock_limit, self.stop)?;
            Ok(link.opened().is_atomic)
        });
        // Only a fresh connection can report that a table has lost its transactions.
        let undone = self.undone.as_ref().filter(|(end, _)| range.start < *end);
        let is_atomic = match (limited, undone) {
            (Ok(false) | Err(Fault { kept: true, .. }), Some((_, lost))) => {
                return Stored::Unknown(Fault { kept: true, ..lost.clone() });
            }
            (Ok(is_atomic), _) => is_atomic,
            (Err(fault), _) => return Stored::Failed(Fault { kept: false, ..fault }),
        };
        (self.is_sent, self.undone) = (true, None);
        if self.connection.shape().ack != self.shape.ack {
            // An acknowledgement must not show the value of one column under the name of another.
            let text = "the columns that the statement returns have changed";
            return Stored::Failed(Fault::new(Blame::Statement, text));
        }
        // The key that made it safe to send them again may have been dropped.
        if let Some((_, fault)) = self.unsure.clone().filter(|it| range.start < it.0)
            && self.repeatable(range.clone()) != [range.clone()]
        {
            return Stored::Unknown(fault);
        }
        self.rows.clear_refusals(range.clone());
        if self.refuse_misfits(range.clone()) {
            return Stored::Stale;
        }
        let mut parts = self.rows.accepted(range.clone());
        if self.one_by_one {
            parts = parts.into_iter().flatten().map(|row| row..row + 1).collect();
        }
        let mut careful = false;
        loop {
            match self.pass(&mut parts, careful) {
                Pass::Ran(0) if !self.has_letters(range.clone()) => {
                    let stop = self.stop;
                    let undone = self.link().rollback(stop);
                    return match undone {
                        Ok(()) => Stored::Committed,
                        Err(kept) if kept.kept => Stored::Unknown(kept),
                        Err(fault) => Stored::Failed(fault),
                    };
                }
                Pass::Ran(_) => return self.commit(range),
                Pass::Undone if self.is_stale() => return Stored::Stale,
                Pass::Undone => careful = true,
                Pass::Failed(fault) if fault.kept => return Stored::Unknown(fault),
                Pass::Failed(fault) if !is_atomic && fault.blame == Blame::Lost => {
                    return Stored::Unknown(Fault { kept: true, ..fault });
                }
                Pass::Failed(fault) => {
                    self.suspect |= fault.of_types;
                    return match self.give_up(fault) {
                        Stored::Failed(_) if self.is_stale() => Stored::Stale,
                        stored => stored,
                    };
                }
            }
        }
    }

    /// Rejects the rows of `range` with values that their columns would change. Returns true if these columns have
    /// changed, so that the rows must be checked again.
    fn refuse_misfits(&mut self, range: Range<usize>) -> bool {
        let Some(link) = self.connection.link() else { return false };
        self.suspect |= self.rows.refuse_misfits(&self.shape, range, &link.opened().takes);
        self.is_stale()
    }

    /// Whether the columns have changed since the statement was prepared. If so, the link is dropped: the next one has
    /// a fresh statement, against which the rows are checked.
    fn is_stale(&mut self) -> bool {
        if !std::mem::take(&mut self.suspect) || std::mem::replace(&mut self.checked, true) {
            return false;
        }
        let stop = self.stop;
        // An error here occurs again in the next step.
        let stale = self.connection.link().is_some_and(|it| it.is_stale(stop).unwrap_or(false));
        if stale {
            log_changed(&self.setup.driver.name());
            self.connection.discard();
        }
        stale
    }

    fn link(&mut self) -> &mut D::DatabaseSession {
        self.connection.link().expect("a connection is open while rows are stored")
    }

    /// Begins a transaction and stores the rows of `parts`. Rejected rows are removed from `parts`.
    fn pass(&mut self, parts: &mut Vec<Range<usize>>, careful: bool) -> Pass {
        let link = self.connection.link().expect("a connection is open while rows are stored");
        if let Err(fault) = link.begin(self.stop) {
            return Pass::Failed(fault);
        }
        let (mut ran, mut next) = (0, 0);
        while let Some(part) = parts.get(next).cloned() {
            if self.stop.requested() {
                return Pass::Failed(Fault::stopped());
            }
            let marked = if careful { link.savepoint(self.stop) } else { Ok(()) };
            let run = marked
                .and_then(|()| {
                    link.insert(self.rows, part.clone(), self.batch, self.effects, self.stop)
                })
                .and_then(|()| self.rows.acknowledge(part.clone(), self.batch, self.effects))
                .and_then(|()| if careful { link.release(self.stop) } else { Ok(()) });
            let fault = match run {
                Ok(()) => {
                    (ran, next) = (ran + part.len(), next + 1);
                    continue;
                }
                Err(fault) if fault.blame != Blame::Row => {
                    let is_known = part.len() == 1 && fault.rows.is_empty();
                    return Pass::Failed(if is_known { fault.at(part.start) } else { fault });
                }
                Err(fault) => fault,
            };
            let suspect = fault.of_types && !self.checked;
            self.suspect |= suspect;
            let cause = fault.for_operators();
            split(self.rows, parts, next, fault);
            let undone = match careful && !suspect && link.is_open() {
                true => link.undo(self.stop),
                false => link.rollback(self.stop),
            };
            match undone {
                Err(kept) if kept.kept => {
                    return Pass::Failed(kept.detailed(&format!("after: {cause}")));
                }
                Err(fault) => return Pass::Failed(fault),
                Ok(()) if !link.is_open() => return Pass::Undone,
                Ok(()) => {}
            }
        }
        Pass::Ran(ran)
    }

    fn commit(&mut self, range: Range<usize>) -> Stored {
        let stop = self.stop;
        match self.link().has_changed(stop) {
            Ok(false) => {}
            Ok(true) => {
                log_changed(&self.setup.driver.name());
                let text = "the columns of the table change again and again";
                return self.begin_anew(Fault::new(Blame::Statement, text));
            }
            // The daemon no longer has the right to check. The next connection finds out whether the check is
            // necessary.
            Err(fault) if fault.blame == Blame::Statement => return self.begin_anew(fault),
            Err(fault) => return self.give_up(fault),
        }
        if let Err(fault) = self.write_dead_letters(range.clone()) {
            return self.give_up(fault);
        }
        if active(Mutant::AckBeforeCommit) {
            self.answer(range);
            self.outbox.flush();
        }
        match self.link().commit(stop) {
            Commit::Done => Stored::Committed,
            Commit::RolledBack(fault) if fault.blame == Blame::Row => Stored::Refused(fault),
            Commit::RolledBack(fault) => Stored::Failed(fault),
            Commit::Unknown(fault) => Stored::Unknown(fault),
        }
    }

    /// Undoes rows that were checked against columns that have changed since, or that can no longer be read. The next
    /// connection checks them against the current columns. Returns `fault` if this happens too often in a batch.
    fn begin_anew(&mut self, fault: Fault) -> Stored {
        self.changes += 1;
        if self.changes > CHANGES_MAX {
            return self.give_up(fault);
        }
        let stop = self.stop;
        match self.link().rollback(stop) {
            Err(kept) if kept.kept => return Stored::Unknown(kept),
            // When the connection ends, its transaction ends too.
            Ok(()) | Err(_) => {}
        }
        self.connection.discard();
        Stored::Stale
    }

    /// Undoes the transaction. If that fails too, the connection is spoiled.
    fn give_up(&mut self, fault: Fault) -> Stored {
        if fault.kept {
            return Stored::Unknown(fault);
        }
        if fault.blame == Blame::Lost && !fault.answered {
            return Stored::Failed(fault);
        }
        let stop = self.stop;
        match self.link().rollback(stop) {
            Ok(()) => Stored::Failed(fault),
            Err(kept) if kept.kept => {
                Stored::Unknown(kept.detailed(&format!("after: {}", fault.for_operators())))
            }
            Err(_) if fault.blame == Blame::Lost => Stored::Failed(fault.answered(false)),
            Err(_) => Stored::Failed(Fault { blame: Blame::Broken, answered: false, ..fault }),
        }
    }
}

fn log_changed(database: &str) {
    tracing::info!(database, "columns have changed: the statement is prepared again");
}

/// Returns the outcome of a request of which nothing is stored.
pub(crate) fn failed(text: &str) -> Outcome {
    Outcome::ended(Cause::Database, Phase::Work, &one_line(text))
}

fn unknown(fault: &Fault) -> Outcome {
    Outcome::ended(Cause::Commit, Phase::Work, &fault.for_clients())
}
