//! A connection and the few things that are done with it.

use std::time::{Duration, Instant};

use exchange::{Batch, Stop};
use rusqlite::{CachedStatement, Connection, Error};

use super::bind::bound;
use super::fault::{Blame, Fault, is_ambiguous};
use crate::rows::{Rows, Shape};
use crate::source::Source;

/// SQLite waits for a lock in pieces of this length; between them we look whether to stop.
const LOCK_SLICE: Duration = Duration::from_millis(25);

/// Steps of SQLite's machine between two looks whether to stop: some hundred microseconds of a
/// statement that runs long.
const STOP_STEPS: std::ffi::c_int = 10_000;

/// What became of a COMMIT.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Commit {
    /// It took effect.
    Done,
    /// It did not take effect and never will.
    RolledBack(Fault),
    /// Nobody knows.
    Unknown(Fault),
}

/// An open file with its statement.
#[derive(Debug)]
pub(super) struct Link {
    connection: Connection,
    sql: String,
    shape: Shape,
    lock_wait: Duration,
}

impl Link {
    pub(super) fn new(
        connection: Connection,
        sql: String,
        shape: Shape,
        lock_wait: Duration,
    ) -> Result<Self, Error> {
        connection.busy_timeout(lock_wait.min(LOCK_SLICE))?;
        Ok(Self { connection, sql, shape, lock_wait })
    }

    pub(super) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Lets `stop` interrupt a statement that runs long, from now until the next call.
    pub(super) fn heed(&mut self, stop: &Stop) -> Result<(), Fault> {
        let stop = stop.clone();
        Ok(self.connection.progress_handler(STOP_STEPS, Some(move || stop.requested()))?)
    }

    /// Takes and returns the lock for writing. One that is held by another will be free in time.
    pub(super) fn try_lock(&self) -> Result<(), Fault> {
        match self.execute("begin immediate") {
            Ok(()) => self.rollback(),
            Err(fault) if fault.blame == Blame::Busy => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Starts a transaction that may write. Waits for the lock as long as `lock_wait` and `stop`
    /// allow.
    pub(super) fn begin(&self, stop: &Stop) -> Result<(), Fault> {
        let since = Instant::now();
        while let Err(fault) = self.execute("begin immediate") {
            self.may_wait(since, stop, fault)?;
        }
        Ok(())
    }

    /// Ends the transaction for good. Under another lock it waits like [`Self::begin`].
    pub(super) fn commit(&self, stop: &Stop) -> Commit {
        let since = Instant::now();
        loop {
            let Err(fault) = self.execute("commit") else { return Commit::Done };
            let open = !self.connection.is_autocommit();
            let fault = match self.may_wait(since, stop, fault) {
                Ok(()) if open => continue,
                Ok(()) => Fault::new(Blame::Busy, "locked by another connection"),
                Err(fault) => fault,
            };
            let known = fault.blame.proves_rollback() && self.rollback().is_ok();
            return if known { Commit::RolledBack(fault) } else { Commit::Unknown(fault) };
        }
    }

    /// Undoes the transaction, if there still is one: some errors have undone it already.
    pub(super) fn rollback(&self) -> Result<(), Fault> {
        if self.is_open() { self.execute("rollback") } else { Ok(()) }
    }

    /// Whether a transaction is open.
    pub(super) fn is_open(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Runs a statement of our own, prepared once.
    pub(super) fn execute(&self, sql: &str) -> Result<(), Fault> {
        self.connection.prepare_cached(sql)?.raw_execute()?;
        Ok(())
    }

    /// The statement that is run for each row.
    pub(super) fn statement(&self) -> Result<CachedStatement<'_>, Fault> {
        self.connection.prepare_cached(&self.sql).map_err(|error| {
            let fault = Fault::from(error);
            if fault.blame == Blame::Row {
                Fault { blame: Blame::Statement, ..fault }
            } else {
                fault
            }
        })
    }

    /// Runs the statement for one row.
    pub(super) fn run(
        &self,
        statement: &mut CachedStatement<'_>,
        rows: &Rows,
        row: usize,
        batch: &Batch,
    ) -> Result<(), Fault> {
        self.run_raw(statement, rows, row, batch).map_err(|error| {
            let ambiguous = is_ambiguous(&error);
            let fault = Fault::from(error);
            match self.connection.prepare(&self.sql) {
                Err(error) if ambiguous => Fault { blame: Blame::Statement, ..error.into() },
                _ => fault,
            }
        })
    }

    fn run_raw(
        &self,
        statement: &mut CachedStatement<'_>,
        rows: &Rows,
        row: usize,
        batch: &Batch,
    ) -> Result<(), Error> {
        let request = &batch.requests[rows.request(row)];
        for (index, source) in self.shape.parameters.iter().enumerate() {
            let index = index + 1;
            match *source {
                Source::Member(member) => {
                    statement.raw_bind_parameter(index, bound(rows.value(row, member)))?;
                }
                Source::Id => {
                    statement.raw_bind_parameter(index, request.id.as_u64().cast_signed())?;
                }
                Source::At => statement.raw_bind_parameter(index, request.at_us)?,
                Source::Client => statement.raw_bind_parameter(index, request.peer.to_string())?,
            }
        }
        if statement.column_count() == 0 {
            return statement.raw_execute().map(drop);
        }
        let mut returned = statement.raw_query();
        while returned.next()?.is_some() {}
        Ok(())
    }

    /// Whether to try again after `fault`.
    fn may_wait(&self, since: Instant, stop: &Stop, fault: Fault) -> Result<(), Fault> {
        if fault.blame != Blame::Busy {
            Err(fault)
        } else if stop.requested() {
            Err(Fault::new(Blame::Stopped, "stopped while another connection held the lock"))
        } else if since.elapsed() >= self.lock_wait {
            let wait = self.lock_wait;
            Err(Fault::new(
                Blame::Busy,
                &format!("locked by another connection for more than {wait:?}"),
            ))
        } else {
            Ok(())
        }
    }

    /// For tests that need a database in a state that no file gives.
    #[cfg(test)]
    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }
}
