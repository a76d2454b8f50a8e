//! A connection and the few things that are done with it.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::{Batch, Stop};
use fields::{Case, Schema, Value};
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Error, Statement};

use super::bind::bound;
use super::fault::{is_ambiguous, proves_rollback};
use super::identity::OpenFiles;
use super::letters;
use crate::digits::Digits;
use crate::fault::{Blame, Fault};
use crate::letters::{Letter, StoredLetter};
use crate::link::{Commit, Link, Sink};
use crate::rows::{Given, Rows, Shape};

/// SQLite waits for a lock in pieces of this length; between them we look whether to stop.
const LOCK_SLICE: Duration = Duration::from_millis(25);

/// Steps of SQLite's machine between two looks whether to stop: some hundred microseconds of a
/// statement that runs long.
const STOP_STEPS: std::ffi::c_int = 10_000;

/// An open file with its statement.
#[derive(Debug)]
pub(super) struct SqliteLink {
    connection: Connection,
    files: OpenFiles,
    sql: String,
    shape: Arc<Shape>,
    lock_wait: Duration,
    idempotent: bool,
}

impl SqliteLink {
    pub(super) fn new(
        connection: Connection,
        files: OpenFiles,
        sql: String,
        shape: Shape,
        lock_wait: Duration,
        idempotent: bool,
    ) -> Result<Self, Error> {
        connection.busy_timeout(lock_wait.min(LOCK_SLICE))?;
        Ok(Self { connection, files, sql, shape: Arc::new(shape), lock_wait, idempotent })
    }

    /// Lets `stop` interrupt a statement that runs long, from now until the next call.
    fn heed(&mut self, stop: &Stop) -> Result<(), Fault> {
        let stop = stop.clone();
        Ok(self.connection.progress_handler(STOP_STEPS, Some(move || stop.requested()))?)
    }

    /// Takes and returns the lock for writing. One that is held by another will be free in time.
    pub(super) fn try_lock(&mut self) -> Result<(), Fault> {
        match self.execute("begin immediate") {
            Ok(()) => self.rollback(&Stop::default()),
            Err(fault) if fault.blame == Blame::Busy => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Runs a statement of our own, prepared once.
    fn execute(&self, sql: &str) -> Result<(), Fault> {
        self.connection.prepare_cached(sql)?.raw_execute()?;
        Ok(())
    }

    /// The statement that is run for each row.
    fn statement(&self) -> Result<CachedStatement<'_>, Fault> {
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
    fn run(
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
        self.bind(statement, rows, row, batch)?;
        if statement.column_count() == 0 {
            return statement.raw_execute().map(drop);
        }
        let mut returned = statement.raw_query();
        while returned.next()?.is_some() {}
        Ok(())
    }

    fn bind(
        &self,
        statement: &mut Statement<'_>,
        rows: &Rows,
        row: usize,
        batch: &Batch,
    ) -> Result<(), Error> {
        for (index, source) in self.shape.parameters.iter().enumerate() {
            let index = index + 1;
            match rows.given(row, *source, batch) {
                Given::Value(value) => statement.raw_bind_parameter(index, bound(value))?,
                Given::Integer(number) => statement.raw_bind_parameter(index, number)?,
                Given::Client(peer) => statement.raw_bind_parameter(index, peer.to_string())?,
            }
        }
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
}

impl Link for SqliteLink {
    fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    fn begin(&mut self, stop: &Stop) -> Result<(), Fault> {
        self.heed(stop)?;
        let since = Instant::now();
        while let Err(fault) = self.execute("begin immediate") {
            self.may_wait(since, stop, fault)?;
        }
        Ok(())
    }

    fn insert(
        &mut self,
        rows: &Rows,
        part: Range<usize>,
        batch: &Batch,
        stop: &Stop,
    ) -> Result<(), Fault> {
        let mut statement = self.statement()?;
        for row in part {
            if stop.requested() {
                return Err(Fault::stopped());
            }
            self.run(&mut statement, rows, row, batch).map_err(|fault| fault.at(row))?;
        }
        Ok(())
    }

    fn savepoint(&mut self, _: &Stop) -> Result<(), Fault> {
        self.execute("savepoint one_part")
    }

    fn release(&mut self, _: &Stop) -> Result<(), Fault> {
        self.execute("release one_part")
    }

    fn undo(&mut self, stop: &Stop) -> Result<(), Fault> {
        self.execute("rollback to one_part")?;
        self.release(stop)
    }

    /// Under another lock it waits like [`Self::begin`]. In files that are no longer at their paths
    /// nothing is committed; rows that were committed while the files went are unknown.
    fn commit(&mut self, stop: &Stop) -> Commit {
        if let Err(fault) = self.files.check() {
            return match self.rollback(stop) {
                Ok(()) => Commit::RolledBack(fault),
                Err(_) => Commit::Unknown(fault),
            };
        }
        let since = Instant::now();
        loop {
            let Err(fault) = self.execute("commit") else {
                return self.files.check().map_or_else(Commit::Unknown, |()| Commit::Done);
            };
            let open = self.is_open();
            let fault = match self.may_wait(since, stop, fault) {
                Ok(()) if open => continue,
                Ok(()) => Fault::new(Blame::Busy, "locked by another connection"),
                Err(fault) => fault,
            };
            let known = proves_rollback(fault.blame) && self.rollback(stop).is_ok();
            return if known { Commit::RolledBack(fault) } else { Commit::Unknown(fault) };
        }
    }

    fn rollback(&mut self, _: &Stop) -> Result<(), Fault> {
        if self.is_open() { self.execute("rollback") } else { Ok(()) }
    }

    fn is_open(&self) -> bool {
        !self.connection.is_autocommit()
    }

    fn query(
        &mut self,
        rows: &Rows,
        row: usize,
        batch: &Batch,
        sink: &mut Sink<'_>,
        stop: &Stop,
    ) -> Result<(), Fault> {
        self.heed(stop)?;
        self.files.check().map_err(Fault::again)?;
        let mut statement = self.statement()?;
        let Sink { rows: into, each, in_base64 } = sink;
        into.reshape(Schema::new(statement.column_names(), Case::Exact));
        self.bind(&mut statement, rows, row, batch)?;
        let mut found = statement.raw_query();
        let mut digits = Digits::default();
        while let Some(row) = found.next()? {
            digits.clear();
            let columns = into.schema().len();
            for column in 0..columns {
                match row.get_ref(column)? {
                    ValueRef::Integer(number) => digits.push(number),
                    // As many digits as it takes to read the same number again.
                    ValueRef::Real(number) if number.is_finite() => {
                        digits.push(format_args!("{number:?}"));
                    }
                    ValueRef::Blob(bytes) if *in_base64 => digits.push_base64(bytes),
                    _ => {}
                }
            }
            let mut texts = digits.iter();
            let values = (0..columns).map(|column| match row.get_ref(column) {
                Ok(ValueRef::Blob(_)) if *in_base64 => {
                    texts.next().map_or(Value::Null, Value::Bytes)
                }
                Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Value::Bytes(bytes),
                Ok(ValueRef::Integer(_)) => texts.next().map_or(Value::Null, Value::Number),
                Ok(ValueRef::Real(number)) if number.is_finite() => {
                    texts.next().map_or(Value::Null, Value::Number)
                }
                // JSON has no infinity either.
                Ok(_) | Err(_) => Value::Null,
            });
            into.push(values).map_err(|error| Fault::new(Blame::Statement, &error.to_string()))?;
            each(into)?;
        }
        Ok(())
    }

    fn bury(&mut self, table: &str, letters: &[Letter<'_>], _: &Stop) -> Result<(), Fault> {
        letters::bury(&self.connection, table, letters)
    }

    fn letters(
        &mut self,
        table: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<StoredLetter>, Fault> {
        Ok(letters::list(&self.connection, table, after, limit)?)
    }

    fn unbury(&mut self, table: &str, number: i64) -> Result<bool, Fault> {
        Ok(letters::remove(&self.connection, table, number)?)
    }
}

#[cfg(test)]
impl SqliteLink {
    /// For tests that need a database in a state that no file gives.
    pub(super) const fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}
