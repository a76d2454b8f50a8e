//! A connection and its operations.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::{Batch, Stop};
use fields::{Case, Schema, Value};
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Error, Statement};
use serde_json::value::RawValue;

use super::bind::bound;
use super::fault::{is_ambiguous, of_preparing, proves_rollback};
use super::identity::OpenFiles;
use super::keys::Conflict;
use super::letters;
use super::log::{Depth, Log};
use super::types;
use crate::Affected;
use crate::DatabaseError;
use crate::digits::Digits;
use crate::effects::{Effects, RowsWithoutEffect};
use crate::fault::{Blame, Fault};
use crate::letter::{Letter, StoredLetter};
use crate::link::{Commit, DatabaseSession, Opened, Sink};
use crate::resend::KeyColumn;
use crate::rows::{Rows, Shape};

/// SQLite waits for a lock in intervals of this length. Between them the handler checks whether to stop.
const LOCK_SLICE: Duration = Duration::from_millis(25);

/// The number of steps of SQLite's virtual machine between two checks whether to stop: some hundred microseconds of a
/// long statement.
const STOP_STEPS: std::ffi::c_int = 10_000;

/// An open file with its statement.
#[derive(Debug)]
pub(super) struct SqliteLink {
    connection: Connection,
    files: OpenFiles,
    log: Log,
    /// The length of the log when the transaction began, in bytes. No other connection may change it until the
    /// transaction ends.
    log_bytes: u64,
    /// The number of frames at which the log is copied into the database; 0: never.
    checkpoint_frames: u32,
    statement: Prepared,
    pub(super) opened: Opened,
    /// The names of the columns that the statement returns, if the acknowledgements need them. Their positions are in
    /// the shape.
    returned: Vec<String>,
    /// The returned columns have changed.
    returns_others: bool,
    /// The version of the schema that these values belong to.
    schema: i64,
    lock_timeout: Duration,
}

/// The statement of a connection.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) sql: String,
    pub(super) conflict: Option<Conflict>,
    pub(super) affected: Affected,
    /// The statement was made from a table and its columns.
    pub(super) is_insert: bool,
    pub(super) job: Arc<crate::Job>,
    /// The names of its parameters.
    pub(super) names: Vec<Option<String>>,
}

impl SqliteLink {
    pub(super) fn new(
        connection: Connection,
        files: OpenFiles,
        (log, checkpoint_frames): (Log, u32),
        statement: Prepared,
        shape: Shape,
        lock_timeout: Duration,
    ) -> Result<Self, Error> {
        connection.busy_timeout(lock_timeout.min(LOCK_SLICE))?;
        let (shape, log_bytes) = (Arc::new(shape), 0);
        let schema = schema_of(&connection)?;
        let takes = types::takes(&connection, &statement.job.action, &statement.names)?;
        let returned = returned_by(&connection, &statement.sql, shape.is_late)?;
        let resend_key = resend_key(statement.conflict.as_ref());
        let (doubts, unfit, is_atomic) = (Vec::new(), None, true);
        let opened = Opened { shape, takes, resend_key, is_atomic, doubts, unfit };
        Ok(Self {
            connection,
            files,
            log,
            log_bytes,
            checkpoint_frames,
            statement,
            opened,
            returned,
            returns_others: false,
            schema,
            lock_timeout,
        })
    }

    /// Compares the log with its index, outside of a transaction. Returns the number of frames.
    fn check_log(&mut self, depth: Depth) -> Result<u32, Fault> {
        self.log.frames(&self.connection, depth)?.ok_or_else(|| self.files.log_truncated())
    }

    /// Compares the files, and compares the log with its state when the transaction began.
    fn check_before_commit(&self) -> Result<(), Fault> {
        self.files.check()?;
        if self.log.bytes() < self.log_bytes { Err(self.files.log_truncated()) } else { Ok(()) }
    }

    /// Compares the files and what was written. Then a long log is copied into the database, as SQLite does after a
    /// commit. An error of this occurs again in the next checkpoint.
    fn check_after_commit(&mut self) -> Result<(), Fault> {
        self.files.check()?;
        let frames = self.check_log(Depth::Frames)?;
        if self.checkpoint_frames > 0 && frames >= self.checkpoint_frames {
            let statement = self.connection.prepare_cached("pragma wal_checkpoint(passive)");
            let copied = statement.and_then(|mut it| it.query_row([], |_| Ok(())));
            copied.unwrap_or_else(|error| tracing::debug!(%error, "no checkpoint"));
        }
        Ok(())
    }

    /// Lets `stop` interrupt a long statement, until the next call.
    fn set_stop(&mut self, stop: &Stop) -> Result<(), Fault> {
        let stop = stop.clone();
        Ok(self.connection.progress_handler(STOP_STEPS, Some(move || stop.requested()))?)
    }

    /// Takes and releases the lock for writing. A lock that another connection holds is not an error.
    pub(super) fn try_lock(&mut self) -> Result<(), Fault> {
        match self.execute("begin immediate") {
            Ok(()) => self.rollback(&Stop::default()),
            Err(fault) if fault.blame == Blame::Busy => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Runs a statement of the daemon, prepared once.
    fn execute(&self, sql: &str) -> Result<(), Fault> {
        self.connection.prepare_cached(sql)?.raw_execute()?;
        Ok(())
    }

    /// Returns the statement that is run for each row.
    fn statement(&self) -> Result<CachedStatement<'_>, Fault> {
        self.connection.prepare_cached(&self.statement.sql).map_err(|error| {
            let fault = of_preparing(error);
            if fault.blame == Blame::Row {
                Fault { blame: Blame::Statement, ..fault }
            } else {
                fault
            }
        })
    }

    /// Runs the statement for one row. Returns the number of rows that it stored or changed.
    fn run(
        &self,
        statement: &mut CachedStatement<'_>,
        rows: &Rows,
        row: usize,
        batch: &Batch,
        effects: &mut Effects,
    ) -> Result<u64, Fault> {
        let told = |error: Error| {
            let ambiguous = is_ambiguous(&error);
            let fault = Fault::from(error);
            match self.connection.prepare(&self.statement.sql) {
                Err(error) if ambiguous => Fault { blame: Blame::Statement, ..of_preparing(error) },
                // A smaller row may still fit.
                _ => {
                    let full = fault.blame == Blame::Full;
                    fault.answered(full)
                }
            }
        };
        self.bind(statement, rows, row, batch, told)?;
        if statement.column_count() == 0 {
            let count = statement.raw_execute().map_err(told)? as u64;
            effects.push(count, [])?;
            return Ok(count);
        }
        let mut returned = statement.raw_query();
        let (mut digits, mut values) = (Digits::default(), Vec::new());
        let columns = effects.columns();
        let mut is_first = true;
        while let Some(row) = returned.next().map_err(told)? {
            if std::mem::take(&mut is_first) {
                for column in 0..columns {
                    values.push(keep(row.get_ref(column).map_err(told)?, &mut digits));
                }
            }
        }
        drop(returned);
        let count = self.connection.changes();
        let mut texts = digits.iter();
        let values = values.iter().map(|&is_there| {
            is_there.then(|| texts.next()).flatten().map_or(Value::Null, Value::Bytes)
        });
        effects.push(count, values)?;
        Ok(count)
    }

    /// Whether a row with the key of this row exists.
    fn is_there(
        &self,
        conflict: &Conflict,
        rows: &Rows,
        row: usize,
        batch: &Batch,
    ) -> Result<bool, Fault> {
        let mut statement = self.connection.prepare_cached(&conflict.sql)?;
        for (index, column) in conflict.key.iter().enumerate() {
            let takes = &self.opened.takes[column.parameter];
            let fit = rows.fitted(row, &self.opened.shape, (column.parameter, takes), batch)?;
            statement.raw_bind_parameter(index + 1, bound(fit, takes))?;
        }
        Ok(statement.raw_query().next()?.is_some())
    }

    fn bind(
        &self,
        statement: &mut Statement<'_>,
        rows: &Rows,
        row: usize,
        batch: &Batch,
        told: impl Fn(Error) -> Fault,
    ) -> Result<(), Fault> {
        for (index, takes) in self.opened.takes.iter().enumerate() {
            let fit = rows.fitted(row, &self.opened.shape, (index, takes), batch)?;
            statement.raw_bind_parameter(index + 1, bound(fit, takes)).map_err(&told)?;
        }
        Ok(())
    }

    /// Decides whether to try again after `fault`. Returns an error if not.
    fn may_wait(&self, since: Instant, stop: &Stop, fault: Fault) -> Result<(), Fault> {
        if fault.blame != Blame::Busy {
            Err(fault)
        } else if stop.requested() {
            Err(Fault::new(Blame::Stopped, "stopped while another connection held the lock"))
        } else if since.elapsed() >= self.lock_timeout {
            let wait = self.lock_timeout;
            Err(Fault::new(
                Blame::Busy,
                &format!("locked by another connection for more than {wait:?}"),
            ))
        } else {
            Ok(())
        }
    }
}

/// Returns the number that changes with each change of the schema.
fn schema_of(connection: &Connection) -> Result<i64, Error> {
    connection.prepare_cached("pragma schema_version")?.query_row([], |row| row.get(0))
}

/// Returns the names of the columns that a statement returns, if they are wanted. A prepared statement has the previous
/// names until it runs.
fn returned_by(connection: &Connection, sql: &str, wanted: bool) -> Result<Vec<String>, Error> {
    if !wanted {
        return Ok(Vec::new());
    }
    // Preparing uses the schema that the connection has cached. Running compares it with the file.
    connection.execute_batch("select 1 from sqlite_schema limit 0")?;
    let statement = connection.prepare(sql)?;
    Ok(statement.column_names().map(str::to_owned).collect())
}

/// How the values of a column of a query are written, in addition to their own type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    AsTheyAre,
    /// The column is declared `boolean`: 1 and 0 are written as `true` and `false`.
    Bool,
    /// The column is declared `json`: text that is valid JSON is written as JSON.
    Json,
}

impl Leaves {
    fn of(column: &rusqlite::Column<'_>, in_json: bool) -> Self {
        match column.decl_type().filter(|_| in_json) {
            Some(of) if of.eq_ignore_ascii_case("json") => Self::Json,
            Some(of) if ["bool", "boolean"].iter().any(|it| of.eq_ignore_ascii_case(it)) => {
                Self::Bool
            }
            _ => Self::AsTheyAre,
        }
    }

    /// Returns the JSON form of a value, if it has one.
    fn json(self, value: ValueRef<'_>) -> Option<Value<'_>> {
        match (self, value) {
            (Self::Bool, ValueRef::Integer(0)) => Some(Value::Json(b"false")),
            (Self::Bool, ValueRef::Integer(1)) => Some(Value::Json(b"true")),
            (Self::Json, ValueRef::Text(text)) => {
                serde_json::from_slice::<&RawValue>(text).is_ok().then_some(Value::Json(text))
            }
            _ => None,
        }
    }
}

/// Appends a returned value as text. Returns false for NULL.
fn keep(value: ValueRef<'_>, digits: &mut Digits) -> bool {
    match value {
        ValueRef::Integer(number) => digits.push(number),
        ValueRef::Real(number) => digits.push(format_args!("{number:?}")),
        ValueRef::Blob(bytes) => digits.push_base64(bytes),
        ValueRef::Text(bytes) => digits.push(String::from_utf8_lossy(bytes)),
        ValueRef::Null => return false,
    }
    true
}

/// Returns the key of rows that may be sent again.
fn resend_key(conflict: Option<&Conflict>) -> Option<Vec<KeyColumn>> {
    conflict.filter(|conflict| conflict.is_filled).map(|conflict| conflict.key.clone())
}

impl DatabaseSession for SqliteLink {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Also compares the files, because the next step reads them.
    fn is_stale(&mut self, _: &Stop) -> Result<bool, Fault> {
        self.files.check()?;
        self.check_log(Depth::Length)?;
        Ok(schema_of(&self.connection)? != self.schema)
    }

    fn begin(&mut self, stop: &Stop) -> Result<(), Fault> {
        self.set_stop(stop)?;
        let since = Instant::now();
        loop {
            self.files.check()?;
            self.check_log(Depth::Length)?;
            match self.execute("begin immediate") {
                Ok(()) => break,
                Err(fault) => self.may_wait(since, stop, fault)?,
            }
        }
        self.log_bytes = self.log.bytes();
        let schema = schema_of(&self.connection)?;
        if self.schema != schema {
            let Prepared { job, names, .. } = &self.statement;
            self.opened.takes = types::takes(&self.connection, &job.action, names)?;
            // An error occurs again when the rows are stored.
            let returned =
                returned_by(&self.connection, &self.statement.sql, self.opened.shape.is_late);
            self.returns_others = returned.is_ok_and(|returned| returned != self.returned);
            match Conflict::of(&self.connection, &self.statement.job.action)? {
                Ok(conflict) => {
                    self.opened.resend_key = resend_key(conflict.as_ref());
                    self.statement.conflict = conflict;
                }
                // A key that has gone is an error of the statement.
                Err(DatabaseError::NoKey { .. }) => {}
                Err(error) => return Err(Fault::new(Blame::Statement, &error.to_string())),
            }
            // Last: after an error, the next transaction compares again.
            self.schema = schema;
        }
        Ok(())
    }

    /// The types of columns are read again with each transaction.
    fn has_changed(&mut self, _: &Stop) -> Result<bool, Fault> {
        Ok(self.returns_others)
    }

    fn insert(
        &mut self,
        rows: &Rows,
        part: Range<usize>,
        batch: &Batch,
        effects: &mut Effects,
        stop: &Stop,
    ) -> Result<(), Fault> {
        let mut statement = self.statement()?;
        let is_late = self.opened.shape.is_late;
        effects.begin(is_late, statement.column_names().filter(|_| is_late));
        let mut idle = RowsWithoutEffect::new(self.statement.affected);
        for row in part {
            if stop.requested() {
                return Err(Fault::stopped());
            }
            let ran = self.run(&mut statement, rows, row, batch, effects);
            let count = ran.map_err(|fault| fault.at(row))?;
            match &self.statement.conflict {
                Some(conflict) if count == 0 && self.is_there(conflict, rows, row, batch)? => {}
                _ => idle.note(row, count),
            }
        }
        idle.fault(|| if self.statement.is_insert { Fault::ignored() } else { Fault::no_row() })
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

    /// While another connection holds a lock it waits like [`Self::begin`]. Nothing is committed into files that are no
    /// longer at their paths. Rows that were committed while the files were moved have an unknown outcome.
    fn commit(&mut self, stop: &Stop) -> Commit {
        if let Err(fault) = self.check_before_commit() {
            return match self.rollback(stop) {
                Ok(()) => Commit::RolledBack(fault),
                Err(_) => Commit::Unknown(fault),
            };
        }
        let since = Instant::now();
        loop {
            let Err(fault) = self.execute("commit") else {
                return self.check_after_commit().map_or_else(Commit::Unknown, |()| Commit::Done);
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
        self.set_stop(stop)?;
        self.files.check().map_err(Fault::again)?;
        self.check_log(Depth::Length).map_err(Fault::again)?;
        let mut statement = self.statement()?;
        let Sink { rows: into, each, in_base64 } = sink;
        into.reshape(Schema::new(statement.column_names(), Case::Exact));
        self.bind(&mut statement, rows, row, batch, Fault::from)?;
        let mut found = statement.raw_query();
        let mut digits = Digits::default();
        let mut leaves = None;
        while let Some(row) = found.next()? {
            digits.clear();
            // The first step has prepared the statement again if a table has changed. The columns may then differ.
            let leaves: &Vec<Leaves> = leaves.get_or_insert_with(|| {
                let run: &Statement<'_> = row.as_ref();
                into.reshape(Schema::new(run.column_names(), Case::Exact));
                run.columns().map(|it| Leaves::of(&it, *in_base64)).collect()
            });
            for (column, leaves) in leaves.iter().enumerate() {
                match row.get_ref(column)? {
                    it if leaves.json(it).is_some() => {}
                    ValueRef::Integer(number) => digits.push(number),
                    // As many digits as are needed to parse the same number again.
                    ValueRef::Real(number) if number.is_finite() => {
                        digits.push(format_args!("{number:?}"));
                    }
                    ValueRef::Blob(bytes) if *in_base64 => digits.push_base64(bytes),
                    _ => {}
                }
            }
            let mut texts = digits.iter();
            let values =
                leaves.iter().enumerate().map(|(column, leaves)| match row.get_ref(column) {
                    Ok(it) if leaves.json(it).is_some() => leaves.json(it).unwrap_or(Value::Null),
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

    fn write_dead_letters(
        &mut self,
        table: &str,
        letters: &[Letter<'_>],
        _: &Stop,
    ) -> Result<(), Fault> {
        letters::write_dead_letters(&self.connection, table, letters)
    }

    fn letters(
        &mut self,
        table: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<StoredLetter>, Fault> {
        Ok(letters::list(&self.connection, table, after, limit)?)
    }

    fn remove_dead_letter(&mut self, table: &str, number: i64) -> Result<bool, Fault> {
        Ok(letters::remove(&self.connection, table, number)?)
    }
}

impl Drop for SqliteLink {
    /// The last connection that is closed copies the log into the database. If the log has a hole, the hole would be
    /// copied too, so the copy is left to the next process that opens the database. It determines which frames are
    /// valid.
    fn drop(&mut self) {
        let is_usable = !self.is_open() && !self.files.index_is_short();
        if is_usable && let Ok(Some(_)) = self.log.frames(&self.connection, Depth::Frames) {
            let setting = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            if let Err(error) = self.connection.set_db_config(setting, false) {
                tracing::debug!(%error, "no checkpoint");
            }
        }
    }
}

#[cfg(test)]
impl SqliteLink {
    /// For tests that need a database in a state that no file can cause.
    pub(super) const fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}
