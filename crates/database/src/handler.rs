//! A batch on its way through a database, the same for every kind.
//!
//! ```text
//!              ┌────────────────── again, carefully ──────────────────┐
//!              ▼                                                      │
//!   range ─► BEGIN ─► all rows at once ──── a row is not accepted ─► ROLLBACK
//!      ▲       │            │
//!      │     failed         ▼
//!      │       │         COMMIT ── a constraint that only COMMIT checks ─► ROLLBACK, halve the range
//!      │       ▼            │
//!      └── may help?        ▼
//!            replies, or failed, or unknown
//! ```
//!
//! The first pass runs without savepoints, which is fast. Carefully means: the rows lie in parts
//! with a savepoint around each; a part that is not accepted is undone and split, at the row where
//! the driver knows it and in two halves where it does not, until the row stands alone and is
//! refused. Some errors of a row undo the whole transaction: then the parts begin anew, but finer,
//! so it ends.

use std::ops::Range;
use std::sync::Arc;

use exchange::plant::{Plant, active};
use exchange::{Batch, Cause, Handler, Outbox, Outcome, Phase, Stop};

use crate::DatabaseError;
use crate::details::DetailLog;
use crate::effects::Effects;
use crate::fault::{Blame, Fault, for_operators};
use crate::letters::{self, Letter};
use crate::link::{Commit, Driver, Link, Setup};
use crate::patience::Patience;
use crate::rows::Rows;
use crate::text::one_line;

/// Writes batches into a database. One on each thread.
#[derive(Debug)]
pub(crate) struct RowsHandler<D: Driver> {
    setup: Arc<Setup<D>>,
    line: Line<D::Link>,
    rows: Rows,
    effects: Effects,
    details: DetailLog,
}

/// The connection of a handler.
#[derive(Debug)]
pub(crate) struct Line<L> {
    /// None after an error that spoils a connection, until the next batch.
    link: Option<L>,
    /// No patience helped the last batch: the next one gets one attempt.
    down: bool,
}

impl<L: Link> Line<L> {
    pub(crate) const fn new(link: L) -> Self {
        Self { link: Some(link), down: false }
    }

    /// How long a batch is tried again.
    pub(crate) fn patience<D>(&self, setup: &Setup<D>) -> Patience {
        Patience::new(if self.down { std::time::Duration::ZERO } else { setup.job.retry })
    }

    /// The connection, opened anew where the last one was spoiled.
    pub(crate) fn open<D: Driver<Link = L>>(
        &mut self,
        setup: &Setup<D>,
        patience: &mut Patience,
        stop: &Stop,
    ) -> Result<&mut L, DatabaseError> {
        let anew = self.link.is_none();
        while self.link.is_none() {
            match setup.connect() {
                Ok(link) => self.link = Some(link),
                Err(error) if error.is_for_now() && patience.wait(stop) => {}
                Err(error) => {
                    if !self.down {
                        tracing::error!(database = setup.driver.name(), "{error}");
                    }
                    self.down = true;
                    return Err(error);
                }
            }
        }
        if anew {
            tracing::warn!(database = setup.driver.name(), "the database was opened anew");
        }
        self.down = false;
        Ok(self.link.as_mut().expect("it was opened just now"))
    }

    /// Gives a spoiled connection up.
    pub(crate) fn spoil(&mut self, fault: &Fault) {
        if fault.blame.spoils_connection() {
            self.link = None;
        }
    }

    #[cfg(test)]
    pub(crate) const fn is_spoiled(&self) -> bool {
        self.link.is_none()
    }
}

impl<D: Driver> RowsHandler<D> {
    pub(crate) fn open(setup: Arc<Setup<D>>) -> Result<Self, DatabaseError> {
        let line = Line::new(setup.connect()?);
        let details = DetailLog::new(setup.job.log_error_details);
        Ok(Self { setup, line, rows: Rows::default(), effects: Effects::default(), details })
    }

    #[cfg(test)]
    pub(crate) const fn line(&mut self) -> &mut Line<D::Link> {
        &mut self.line
    }
}

impl<L> Line<L> {
    /// For tests that bring a connection into a state that no request can.
    #[cfg(test)]
    pub(crate) const fn link(&mut self) -> &mut Option<L> {
        &mut self.link
    }
}

impl<D: Driver> Handler for RowsHandler<D> {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, stop: &Stop) {
        let mut patience = self.line.patience(&self.setup);
        let shape = match self.line.open(&self.setup, &mut patience, stop) {
            Ok(link) => Arc::clone(link.shape()),
            Err(error) => {
                let outcome = failed(error.for_clients());
                return (0..batch.requests.len()).for_each(|i| outbox.answer(i, outcome.clone()));
            }
        };
        self.rows.begin(&shape);
        for (index, request) in batch.requests.iter().enumerate() {
            if let Err(outcome) = self.rows.read(&shape, index, request) {
                outbox.answer(index, outcome);
            }
        }
        let Self { setup, line, rows, effects, details } = self;
        Work { setup, line, rows, effects, details, batch, outbox, stop, patience, unsure: None }
            .store_all();
    }
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

/// One batch while it is being stored.
struct Work<'a, D: Driver> {
    setup: &'a Setup<D>,
    line: &'a mut Line<D::Link>,
    rows: &'a mut Rows,
    effects: &'a mut Effects,
    details: &'a mut DetailLog,
    batch: &'a Batch,
    outbox: &'a mut dyn Outbox,
    stop: &'a Stop,
    patience: Patience,
    /// The rows up to here may be stored, for this reason: they are being sent again.
    unsure: Option<(usize, Fault)>,
}

impl<D: Driver> Work<'_, D> {
    /// Stores and answers all rows.
    fn store_all(mut self) {
        let mut ranges = Vec::new();
        let whole = 0..self.rows.len();
        ranges.push(whole);
        // Ranges are stored in their order, so the rest of the batch is what follows.
        while let Some(range) = ranges.pop().filter(|range| !range.is_empty()) {
            match self.store(range.clone()) {
                Stored::Committed => self.answer(range),
                Stored::Refused(fault) if range.len() == 1 => {
                    self.rows.refuse(range.start, fault);
                    self.bury_alone(range.start);
                    self.answer(range);
                }
                Stored::Refused(_) => {
                    let middle = range.start + range.len() / 2;
                    ranges.extend([middle..range.end, range.start..middle]);
                }
                Stored::Failed(fault) => {
                    self.line.spoil(&fault);
                    if fault.again && self.patience.wait(self.stop) {
                        ranges.push(range);
                        continue;
                    }
                    let rest = range.start..self.rows.len();
                    return self.end_failed(rest, &fault);
                }
                Stored::Unknown(fault) => {
                    let idempotent = self.line.link.as_ref().is_some_and(Link::is_idempotent);
                    self.line.link = None;
                    if idempotent && self.patience.wait(self.stop) {
                        self.unsure = Some((range.end, fault));
                        ranges.push(range);
                        continue;
                    }
                    self.write_details(&fault);
                    self.end(range, &unknown(&fault));
                }
            }
        }
    }

    /// Ends rows that are not stored, as far as that is known.
    fn end_failed(&mut self, rows: Range<usize>, fault: &Fault) {
        self.write_details(fault);
        let mut known = rows.start;
        if let Some((end, fault)) = self.unsure.take() {
            known = end.clamp(rows.start, rows.end);
            self.end(rows.start..known, &unknown(&fault));
        }
        self.end(known..rows.end, &failed(&fault.for_clients()));
    }

    fn store(&mut self, range: Range<usize>) -> Stored {
        if let Err(error) = self.line.open(self.setup, &mut self.patience, self.stop) {
            return Stored::Failed(Fault::new(Blame::Lost, error.for_clients()));
        }
        self.rows.forgive(range.clone());
        let mut parts = vec![range.clone()];
        let mut careful = false;
        loop {
            match self.pass(&mut parts, careful) {
                Pass::Ran(0) if !self.has_letters(range.clone()) => {
                    let stop = self.stop;
                    let undone = self.link().rollback(stop);
                    return undone.map_or_else(Stored::Failed, |()| Stored::Committed);
                }
                Pass::Ran(_) => return self.commit(range),
                Pass::Undone => careful = true,
                Pass::Failed(fault) => return self.give_up(fault),
            }
        }
    }

    fn link(&mut self) -> &mut D::Link {
        self.line.link.as_mut().expect("a connection is open while rows are stored")
    }

    /// Begins a transaction and stores the rows of `parts`, from which those that are refused are
    /// taken out.
    fn pass(&mut self, parts: &mut Vec<Range<usize>>, careful: bool) -> Pass {
        let link = self.line.link.as_mut().expect("a connection is open while rows are stored");
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
                Err(fault) if fault.blame != Blame::Row => return Pass::Failed(fault),
                Err(fault) => fault,
            };
            split(self.rows, parts, next, fault);
            let undone = match careful && link.is_open() {
                true => link.undo(self.stop),
                false => link.rollback(self.stop),
            };
            match undone {
                Err(fault) => return Pass::Failed(fault),
                Ok(()) if !link.is_open() => return Pass::Undone,
                Ok(()) => {}
            }
        }
        Pass::Ran(ran)
    }

    fn commit(&mut self, range: Range<usize>) -> Stored {
        if let Err(fault) = self.bury(range.clone()) {
            return self.give_up(fault);
        }
        if active(Plant::AckBeforeCommit) {
            self.answer(range);
            self.outbox.flush();
        }
        let stop = self.stop;
        match self.link().commit(stop) {
            Commit::Done => Stored::Committed,
            Commit::RolledBack(fault) if fault.blame == Blame::Row => Stored::Refused(fault),
            Commit::RolledBack(fault) => Stored::Failed(fault),
            Commit::Unknown(fault) => Stored::Unknown(fault),
        }
    }

    /// Undoes what there is. A connection that cannot even do that is spoiled.
    fn give_up(&mut self, fault: Fault) -> Stored {
        if fault.blame == Blame::Lost {
            return Stored::Failed(fault);
        }
        let stop = self.stop;
        match self.link().rollback(stop) {
            Ok(()) => Stored::Failed(fault),
            Err(_) => Stored::Failed(Fault { blame: Blame::Broken, ..fault }),
        }
    }

    /// Whether there is a refused row among `rows`, and a table for its letter.
    fn has_letters(&self, rows: Range<usize>) -> bool {
        self.setup.job.dead.is_some()
            && rows.into_iter().any(|row| self.rows.refusal(row).is_some())
    }

    /// Writes the letters of the refused rows among `rows` into the open transaction. What cannot be
    /// written is logged: the rows beside them matter more.
    fn bury(&mut self, rows: Range<usize>) -> Result<(), Fault> {
        let (Some(table), true) = (&self.setup.job.dead, self.has_letters(rows.clone())) else {
            return Ok(());
        };
        let again = self.unsure.as_ref().is_some_and(|(end, _)| rows.start < *end);
        let letters = letters(self.rows, self.batch, rows, again);
        let link = self.line.link.as_mut().expect("a connection is open while rows are stored");
        link.savepoint(self.stop)?;
        match link.bury(table, &letters, self.stop) {
            Ok(()) => link.release(self.stop),
            // The batch is tried again, and its letters with it.
            Err(fault) if fault.blame == Blame::Conflict => Err(fault),
            Err(fault) if !link.is_open() || fault.blame.spoils_connection() => Err(fault),
            Err(fault) => {
                let count = letters.len();
                tracing::error!(
                    table,
                    count,
                    error = fault.for_operators(),
                    "dead letters are not kept"
                );
                link.undo(self.stop)
            }
        }
    }

    /// Writes the letter of a row that was refused by its own COMMIT.
    fn bury_alone(&mut self, row: usize) {
        if !self.has_letters(row..row + 1) {
            return;
        }
        let stop = self.stop;
        let begun = self.link().begin(stop).and_then(|()| self.bury(row..row + 1));
        let kept = begun.and_then(|()| match self.link().commit(stop) {
            Commit::Done => Ok(()),
            Commit::RolledBack(fault) | Commit::Unknown(fault) => Err(fault),
        });
        let Err(fault) = kept else { return };
        tracing::error!(error = fault.for_operators(), "a dead letter is not kept");
        // The next batch must not begin within what is left of this transaction.
        if let Stored::Failed(fault) = self.give_up(fault) {
            self.line.spoil(&fault);
        }
    }

    /// Answers rows whose transaction is committed.
    fn answer(&mut self, range: Range<usize>) {
        if self.setup.job.log_error_details {
            let name = self.setup.driver.name();
            for refusal in range.clone().filter_map(|row| self.rows.refusal(row)) {
                self.details.write(&name, &refusal.code, &refusal.text, &refusal.detail);
            }
        }
        self.rows.answers(range, |request, outcome| self.outbox.answer(request, outcome));
    }

    /// Writes what the database said of a whole batch into the log, where that is asked for.
    fn write_details(&mut self, fault: &Fault) {
        let name = self.setup.driver.name();
        self.details.write(&name, &fault.code, &fault.text, &fault.detail);
    }

    fn end(&mut self, range: Range<usize>, outcome: &Outcome) {
        for row in range {
            self.outbox.answer(self.rows.request(row), outcome.clone());
        }
    }
}

/// The letters of the refused rows among `of`; `again`: they may be in the table.
fn letters<'a>(rows: &'a Rows, batch: &'a Batch, of: Range<usize>, again: bool) -> Vec<Letter<'a>> {
    let letter = |row: usize| {
        let refusal = rows.refusal(row)?;
        let request = &batch.requests[rows.request(row)];
        let code = match refusal.cause {
            Cause::Row => &*refusal.code,
            cause => cause.word(),
        };
        let text = for_operators(&refusal.text, &refusal.detail).into();
        Some(Letter { at_us: request.at_us, row: &request.body, code, text, count: None })
    };
    if !again {
        return of.filter_map(letter).collect();
    }
    // Those before `of` are in the table, and count.
    let before = (0..of.start).filter_map(letter).count();
    let mut all: Vec<Letter<'a>> = (0..of.end).filter_map(letter).collect();
    letters::count(&mut all);
    all.split_off(before)
}

/// Takes the rows out of part number `at` that `fault` is about, or halves the part.
fn split(rows: &mut Rows, parts: &mut Vec<Range<usize>>, at: usize, mut fault: Fault) {
    let part = parts[at].clone();
    let mut known = std::mem::take(&mut fault.rows);
    known.retain(|row| part.contains(row));
    if known.is_empty() && part.len() == 1 {
        known.push(part.start);
    }
    let mut finer = Vec::with_capacity(known.len() + 1);
    if known.is_empty() {
        let middle = part.start + part.len() / 2;
        finer.extend([part.start..middle, middle..part.end]);
    } else {
        let mut start = part.start;
        for row in known {
            rows.refuse(row, fault.clone());
            finer.push(start..row);
            start = row + 1;
        }
        finer.push(start..part.end);
    }
    parts.splice(at..=at, finer.into_iter().filter(|part| !part.is_empty()));
}

/// How a request ends of which nothing is stored.
pub(crate) fn failed(text: &str) -> Outcome {
    Outcome::ended(Cause::Database, Phase::Work, &one_line(text))
}

fn unknown(fault: &Fault) -> Outcome {
    Outcome::ended(Cause::Commit, Phase::Work, &fault.for_clients())
}
