//! Handles rows that could not be stored: they wait for another attempt, are tried in smaller transactions, or end.
//!
//! A fault that may be caused by one row never ends other rows while the database accepts any row:
//!
//! ```text
//!   fault     answered ──────────────► halves, down to one row     the row alone fails
//!             a conflict ────────────► again, then halves           the row alone fails
//!             lock held by others ───► halves, with a short wait    the row alone fails
//!             connection lost twice ─► one by one, to find the row  the row alone fails, after one more
//!                                                                   attempt
//! ```
//!
//! A fault with which the server answered is a fault of the server if the server accepts no other row either: it has no
//! space, or became read-only. Then all rows wait as long as `retry_timeout` allows. If other rows are accepted, or the
//! fault is that of another server, the rows are divided immediately, and the wait for a single row is limited by
//! [`RetryBudget`](super::RetryBudget).
//!
//! After several consecutive rows have failed alone, rows from the rest of the batch are tried and rolled back. If none
//! of them is accepted either, the fault is that of the database, and the rest of the batch ends.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::{LOSSES_MAX, Work, unknown};
use crate::fault::{Blame, Fault};
use crate::link::{DatabaseSession, Driver};
use crate::logins::{PAUSE_FIRST, PAUSE_MAX};
use crate::parts::{around, halves};

/// The number of consecutive rows that fail alone, without a stored row between them, before rows of the rest are
/// tried. It is also the number of rows of the rest that are tried.
const ALONE_MAX: u32 = 32;

/// The number of consecutive rows that end their connection, without a stored row between them, before the next such
/// rows get no further attempt. It is also the number of rows of the rest that are tried for rows that wait for a lock.
const SLOW_ALONE_MAX: u32 = 8;

/// As [`ALONE_MAX`], for rows that wait for a lock: if another connection holds the whole table, the batch must not
/// wait for each row.
const WAITED_ALONE_MAX: u32 = 1;

/// The number of times that the rows of a transaction are stored again after a conflict before they are divided. For a
/// single row it is the minimum.
const CONFLICTS_MAX: u32 = 3;

/// The minimum time for which rows are tried in smaller transactions before rows of the rest are tried, if the time for
/// locks is shorter.
const SPLIT_MIN: Duration = Duration::from_secs(1);

/// How long rows that have waited for a lock before wait for the next one, and how long a single row waits.
const SHORT_LOCK_WAIT: Duration = Duration::from_millis(100);
const ALONE_LOCK_WAIT: Duration = Duration::from_millis(500);

impl<D: Driver> Work<'_, D> {
    /// Returns how long the rows of `range` wait for a lock, if that is less than the settings allow.
    pub(super) fn lock_limit(&self, range: &Range<usize>) -> Option<Duration> {
        let wait = if range.len() == 1 { ALONE_LOCK_WAIT } else { SHORT_LOCK_WAIT };
        self.is_waited.then(|| wait.min(self.setup.job.lock_timeout))
    }

    /// Whether this is one row of several, and has lost its connection too often.
    pub(super) fn is_lost_alone(&self, range: &Range<usize>) -> bool {
        range.len() == 1 && self.rows.len() > 1 && self.losses > LOSSES_MAX
    }

    /// Decides how to continue with rows that could not be stored. Returns false if the batch has ended.
    pub(super) fn after_failure(
        &mut self,
        mut range: Range<usize>,
        fault: &Fault,
        ranges: &mut Vec<Range<usize>>,
    ) -> bool {
        let tried = range.clone();
        let in_time = range.clone().any(|row| !self.time_left(row).is_zero());
        if self.is_loss(fault) {
            self.losses += 1;
            if self.losses >= LOSSES_MAX || self.one_by_one || !in_time {
                return self.handle_losses(range, fault, ranges);
            }
        }
        let again = match fault.again && in_time {
            true => self.again_after(&range, fault),
            false => Ok(None),
        };
        let again = match again {
            Ok(again) => again,
            Err(kept) => return self.end_not_rolled_back(range.start..self.rows.len(), &kept),
        };
        if let Some(limit) = again {
            self.answered = fault.answered;
            self.connection.record_failure(self.setup, fault);
            // Rows that may have to be tried one by one stay with the others until then.
            if !fault.answered {
                let in_time = |row: &usize| !self.time_left(*row).is_zero();
                let first = range.clone().find(in_time).unwrap_or(range.end);
                self.end_failed(range.start..first, &tried, fault);
                range.start = first;
            }
            if self.wait(range.clone(), limit) {
                ranges.push(range);
                return true;
            }
            // If the server answers, the end of their time does not apply to the rows after them.
            if !fault.answered || self.stop.requested() {
                self.end_failed(range.start..self.rows.len(), &tried, fault);
                return false;
            }
        }
        // The next rows are different ones.
        self.conflicts = 0;
        // The time has run out before a login was allowed, but the database answers: one more attempt.
        let answered = std::mem::take(&mut self.answered) && !fault.answered;
        if fault.again && answered && self.connection.wait(self.setup, PAUSE_MAX, self.stop) {
            ranges.push(range);
            return true;
        }
        match self.may_split(&range, fault) {
            Ok(true) => {
                self.splits = true;
                let is_last = range.len() == 1 && ranges.is_empty();
                self.split(range, fault, ranges);
                // The next batch may reach a better server on a new connection.
                if fault.again && is_last {
                    self.connection.record_failure(self.setup, fault);
                }
                true
            }
            Ok(false) => {
                self.connection.record_failure(self.setup, fault);
                self.end_failed(range.start..self.rows.len(), &tried, fault);
                false
            }
            Err(kept) => self.end_not_rolled_back(range.start..self.rows.len(), &kept),
        }
    }

    /// Ends the rest of the batch after rows were tried that cannot be rolled back.
    fn end_not_rolled_back(&mut self, rest: Range<usize>, kept: &Fault) -> bool {
        self.connection.discard();
        self.kept.error(&self.setup.driver.name(), rest.len(), kept);
        self.end(rest, &unknown(&kept.for_others()));
        false
    }

    /// Returns how long these rows may wait to be stored again after a temporary fault, or `None` if they are divided
    /// immediately, or end.
    ///
    /// # Errors
    /// Returns an error if rows were tried and cannot be rolled back.
    fn again_after(
        &mut self,
        range: &Range<usize>,
        fault: &Fault,
    ) -> Result<Option<Duration>, Fault> {
        if !fault.answered {
            return Ok(Some(Duration::MAX));
        }
        self.end_trying();
        let is_alone = range.len() == 1;
        let mut least = None;
        match fault.blame {
            Blame::Conflict => {
                self.conflicts += 1;
                if !is_alone && (self.splits || self.conflicts >= CONFLICTS_MAX) {
                    return Ok(None);
                }
                least = Some(PAUSE_FIRST).filter(|_| self.conflicts < CONFLICTS_MAX);
            }
            Blame::Foreign => {}
            // A fault of this server, unless it accepts other rows.
            _ => {
                let others = range.start + usize::from(is_alone)..self.rows.len();
                let accepted = self.accepts_any(others, ALONE_MAX as usize, false)?;
                let is_rows = accepted || is_alone && self.is_accepting;
                if !is_rows {
                    return Ok(Some(Duration::MAX));
                }
            }
        }
        if !is_alone && fault.blame != Blame::Conflict || self.stop.requested() {
            return Ok(None);
        }
        let limit = self.retry_budget.left().or(least);
        self.trying = limit.map(|_| Instant::now());
        Ok(limit)
    }

    /// Ends a retry: the row is stored, or has failed again.
    pub(super) fn end_trying(&mut self) {
        if let Some(since) = self.trying.take() {
            self.retry_budget.spend(since.elapsed());
        }
    }

    /// Divides rows of which one may be the cause. A row that is alone is the cause.
    fn split(&mut self, range: Range<usize>, fault: &Fault, ranges: &mut Vec<Range<usize>>) {
        if range.len() == 1 {
            self.alone += 1;
            self.end_failed(range.clone(), &range, fault);
            return;
        }
        let known = fault.rows.first().copied().filter(|row| range.contains(row));
        ranges.extend(
            known.map_or_else(|| halves(range.clone()).into(), |row| around(range.clone(), row)),
        );
    }

    /// Whether the connection was lost with rows on it, before COMMIT, and they may be sent again.
    fn is_loss(&self, fault: &Fault) -> bool {
        let is_lost = fault.again && fault.blame == Blame::Lost && !fault.answered;
        self.is_sent && is_lost && !self.setup.job.retry.is_zero()
    }

    /// Handles rows that have lost several connections: one of them may have ended the connections. They are sent one
    /// by one in their transaction, and the row on which the connection is lost is stored separately. It is tried once
    /// more, unless it is one of many in sequence.
    ///
    /// The server accepts logins, so this is not an outage: it uses none of the time of other rows, each of which is
    /// tried, and no login waits for long.
    fn handle_losses(
        &mut self,
        mut range: Range<usize>,
        fault: &Fault,
        ranges: &mut Vec<Range<usize>>,
    ) -> bool {
        let first = range.start..range.start + 1;
        let found = fault.rows.first().copied().filter(|row| range.contains(row));
        let found = if range.len() == 1 { Some(range.start) } else { found };
        let is_first = found == Some(range.start);
        let is_many = self.alone >= SLOW_ALONE_MAX && (self.one_by_one || range.len() == 1);
        if is_first && (is_many || range.len() == 1 && self.found == found) {
            self.split(first, fault, ranges);
            range.start += 1;
            if !range.is_empty() {
                ranges.push(range.clone());
            }
        } else if range.len() > 1 && self.one_by_one {
            self.split(range.clone(), fault, ranges);
        } else {
            ranges.push(range.clone());
        }
        (self.found, self.one_by_one) = (found, true);
        self.connection.discard();
        if !ranges.is_empty() && !self.connection.pause(self.setup, self.stop) {
            self.end_failed(range.start..self.rows.len(), &range, fault);
            return false;
        }
        true
    }

    /// Whether the rows of a transaction that failed with this fault are tried in smaller ones, down to one row each:
    /// one of them may be the cause, whatever the error says.
    ///
    /// # Errors
    /// Returns an error if rows were tried and cannot be rolled back.
    fn may_split(&mut self, range: &Range<usize>, fault: &Fault) -> Result<bool, Fault> {
        if !fault.answered || self.stop.requested() {
            return Ok(false);
        }
        // A lock of another connection, or a limit that the server sets for statements.
        let is_busy = matches!(fault.blame, Blame::Busy | Blame::Stopped);
        self.is_waited |= is_busy;
        let (alone_max, tried) = match is_busy {
            true => (WAITED_ALONE_MAX, SLOW_ALONE_MAX),
            false => (ALONE_MAX, ALONE_MAX),
        };
        let time = self.setup.job.lock_timeout.max(SPLIT_MIN);
        let since = *self.splitting.get_or_insert_with(Instant::now);
        // Each wait for a lock is short, and counts.
        let in_time = is_busy || since.elapsed() < time;
        if self.alone < alone_max && in_time {
            return Ok(true);
        }
        let rest = range.start + usize::from(range.len() == 1)..self.rows.len();
        if !self.accepts_any(rest, tried as usize, true)? {
            return Ok(false);
        }
        (self.alone, self.splitting) = (0, None);
        Ok(true)
    }

    /// Whether the database accepts any of `count` rows spread over `rest`. None of them is kept. `refused`: a row that
    /// is rejected because of its data counts as accepted.
    ///
    /// # Errors
    /// Returns an error if rows cannot be rolled back.
    fn accepts_any(
        &mut self,
        rest: Range<usize>,
        count: usize,
        refused: bool,
    ) -> Result<bool, Fault> {
        let is_short = self.is_waited || !refused;
        let lock_limit = is_short.then(|| SHORT_LOCK_WAIT.min(self.setup.job.lock_timeout));
        let Some(link) = self.connection.link().filter(|link| link.opened().is_atomic) else {
            return Ok(false);
        };
        if link.limit_locks(lock_limit, self.stop).is_err() {
            return Ok(false);
        }
        // Rows that are rejected before they reach a database say nothing about this one.
        let rest: Vec<usize> = self.rows.accepted(rest).into_iter().flatten().collect();
        let count = rest.len().min(count);
        for number in (0..count).rev() {
            let row = rest[(number + 1) * rest.len() / count - 1];
            let tried = link.begin(self.stop).and_then(|()| {
                link.insert(self.rows, row..row + 1, self.batch, self.effects, self.stop)
            });
            match link.rollback(self.stop) {
                Ok(()) => {}
                Err(fault) if fault.kept => return Err(fault),
                Err(_) => return Ok(false),
            }
            match tried {
                Ok(()) => return Ok(true),
                Err(fault) if refused && fault.blame == Blame::Row => return Ok(true),
                Err(fault) if !fault.answered || self.stop.requested() => return Ok(false),
                Err(_) => {}
            }
        }
        Ok(false)
    }
}
