//! A connection and its operations.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use exchange::{Batch, Stop};
use fields::{Case, Schema};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, Params, Statement};
use tokio::runtime::Runtime;

use super::bind::Leaves;
use super::form::Form;
use super::schema::{self, ROWS_MAX, Values};
use super::{bind, fault, letters};
use crate::digits::Digits;
use crate::effects::{Effects, RowsWithoutEffect};
use crate::fault::{Blame, Fault};
use crate::letter::{Letter, StoredLetter};
use crate::link::{Commit, DatabaseSession, Opened, Sink};
use crate::loopback;
use crate::rows::{Rows, Shape};
use crate::server::{self, answer, until};
use crate::{Affected, Job};
use sql::column::Takes;

/// The statement for a batch or a request.
#[derive(Debug)]
pub(super) enum Run {
    /// An insert of many rows.
    Values(Values),
    /// One execution for each row.
    Rows(Statement),
    /// One query for each request, and which of its columns are JSON.
    Query(Statement, Vec<bool>),
}

/// A session on the server and its statement.
pub(super) struct Session {
    pub(super) connection: Conn,
    /// The options of the second connection that ends a statement of this one.
    pub(super) options: Opts,
    pub(super) run: Run,
    pub(super) opened: Opened,
    /// The form of the columns of the parameters.
    pub(super) form: Option<Form>,
    pub(super) job: Arc<Job>,
    /// The names of the parameters.
    pub(super) names: Vec<String>,
    /// The maximum size of a request, in bytes. The server closes the connection after a larger one.
    pub(super) request_max: usize,
    pub(super) locks: LockWait,
}

/// How long statements wait for a lock, in seconds.
#[derive(Debug)]
pub(super) struct LockWait {
    /// The value of the settings.
    pub(super) usual: u64,
    /// The minimum that the server accepts.
    pub(super) least: u64,
    /// The current value of the session.
    pub(super) now: u64,
}

/// An open session and the runtime of its connection.
pub(super) struct MysqlLink {
    runtime: Runtime,
    session: Session,
    /// Whether a transaction is open.
    open: bool,
}

impl fmt::Debug for MysqlLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlLink").field("run", &self.session.run).finish_non_exhaustive()
    }
}

impl MysqlLink {
    pub(super) const fn new(runtime: Runtime, session: Session) -> Self {
        Self { runtime, session, open: false }
    }

    /// Checks that the last rollback undid everything. The server warns of tables without transactions.
    fn check_undone(&mut self, stop: &Stop) -> Result<(), Fault> {
        if self.session.connection.get_warnings() == 0 {
            return Ok(());
        }
        let asked = self.session.connection.query("show warnings");
        let warnings: Vec<(String, u16, String)> = match until(&self.runtime, stop, asked, async {})
        {
            Some(Ok(warnings)) => warnings,
            Some(Err(error)) => return Err(Fault { kept: true, ..fault::of(&error) }),
            None => return Err(Fault::kept("the server did not answer")),
        };
        if warnings.iter().all(|(_, code, _)| *code != NOT_UNDONE) {
            return Ok(());
        }
        let text = "the rows cannot be rolled back: a table without transactions was changed";
        Err(Fault::kept(text).coded(&NOT_UNDONE.to_string()))
    }

    /// Runs a statement of the daemon. Its errors are never caused by a row.
    fn execute(&mut self, sql: &str, stop: &Stop) -> Result<(), Fault> {
        let work = self.session.connection.query_drop(sql);
        answer(&self.runtime, stop, work, |error| fault::of(error).into_internal())
    }
}

/// Returns the statement that sets how long statements wait for a lock, in seconds.
pub(super) fn lock_timeout(seconds: u64) -> String {
    format!(
        "set session innodb_lock_wait_timeout = {seconds}, session lock_wait_timeout = {seconds}"
    )
}

/// The warning of a rollback that a table without transactions was changed.
const NOT_UNDONE: u16 = 1196;

/// Waits for `work`. When `stop` is requested, another connection ends the statement.
fn stoppable<T>(
    runtime: &Runtime,
    options: &Opts,
    id: u32,
    stop: &Stop,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let cancel = async {
        if let Err(error) = kill(options, id).await {
            tracing::debug!(%error, "a statement could not be ended");
        }
    };
    server::stoppable(runtime, stop, work, cancel)
}

async fn kill(options: &Opts, id: u32) -> Result<(), Error> {
    let is_open = options.ssl_opts().is_none();
    // A host that must be checked has been resolved to an address before (`loopback::place`).
    if let (true, None, Ok(ip)) = (is_open, options.socket(), options.ip_or_hostname().parse()) {
        loopback::check(SocketAddr::new(ip, options.tcp_port())).await?;
    }
    let mut other = Conn::new(options.clone()).await?;
    other.query_drop(format!("kill query {id}")).await?;
    other.disconnect().await
}

fn values(
    rows: &Rows,
    row: usize,
    (shape, takes): (&Shape, &[Takes]),
    batch: &Batch,
    to: &mut Vec<mysql_async::Value>,
) -> Result<(), Fault> {
    for (parameter, takes) in takes.iter().enumerate() {
        let fit = rows.fitted(row, shape, (parameter, takes), batch)?;
        to.push(bind::bound(fit, takes));
    }
    Ok(())
}

/// Returns the values of the first of `rows` that one statement stores, and the number of these rows. The values have
/// at most `bytes_max` bytes.
fn statement_values(
    insert: &Values,
    (rows, batch): (&Rows, &Batch),
    shape: (&Shape, &[Takes]),
    of: Range<usize>,
    bytes_max: usize,
) -> Result<(usize, Vec<mysql_async::Value>), Fault> {
    let columns = shape.1.len();
    let (mut given, mut bytes, mut count) = (Vec::new(), 0, 0);
    for row in of.clone().take(ROWS_MAX) {
        values(rows, row, shape, batch, &mut given)?;
        bytes += given[count * columns..].iter().map(bind::bytes_of).sum::<usize>();
        if bytes > bytes_max {
            break;
        }
        count += 1;
    }
    if count == 0 {
        return Err(too_large(of.start));
    }
    let size = insert.size(count, bytes_max);
    given.truncate(size * columns);
    Ok((size, given))
}

/// Returns how many of `size` rows the last insert has stored. An update of an existing row counts as zero, or as two
/// if a trigger changes the row. The number of these updates is the second number of the text after the count
/// (`Records: 3  Duplicates: 1  Warnings: 0`), which is absent for a single row. Returns 0 if the text is missing.
fn inserted(connection: &Conn, size: usize) -> u64 {
    let affected = connection.affected_rows();
    if size == 1 {
        return u64::from(affected == 1);
    }
    let info = connection.info();
    let mut numbers = info.split(|it: char| !it.is_ascii_digit()).filter(|it| !it.is_empty());
    let changed = numbers.nth(1).and_then(|it| it.parse::<u64>().ok());
    changed.map_or(0, |changed| affected.saturating_sub(2 * changed))
}

/// Returns the fault of a row that makes a request too large for the server.
fn too_large(row: usize) -> Fault {
    Fault::new(Blame::Row, fault::TOO_LARGE).at(row)
}

/// Returns the fault of an insert. The update of an existing row fails if that row has another key.
fn of_insert(error: Error) -> Fault {
    let fault = fault::of(&error);
    if &*fault.code != "1242" {
        return fault;
    }
    let text = "a row with another key has the same value of a unique column";
    Fault::new(Blame::Row, text).coded("1062").detailed(&fault.for_operators())
}

impl DatabaseSession for MysqlLink {
    fn opened(&self) -> &Opened {
        &self.session.opened
    }

    fn is_stale(&mut self, stop: &Stop) -> Result<bool, Fault> {
        let Self { runtime, session: Session { connection, job, names, opened, .. }, .. } = self;
        let now = schema::takes(connection, &job.action, names);
        Ok(answer(runtime, stop, now, fault::of)?.0 != opened.takes)
    }

    fn has_changed(&mut self, stop: &Stop) -> Result<bool, Fault> {
        let Self { runtime, session: Session { connection, form, .. }, .. } = self;
        let Some(form) = form else { return Ok(false) };
        answer(runtime, stop, form.has_changed(connection), fault::of)
    }

    fn limit_locks(&mut self, limit: Option<Duration>, stop: &Stop) -> Result<(), Fault> {
        let rounded = |limit: Duration| (limit + Duration::from_millis(500)).as_secs();
        let limit = limit.map(rounded);
        let LockWait { usual, least, now } = self.session.locks;
        let wait = limit.unwrap_or(usual).clamp(least, usual);
        if wait == now {
            return Ok(());
        }
        self.execute(&lock_timeout(wait), stop)?;
        self.session.locks.now = wait;
        Ok(())
    }

    /// The first statement begins the transaction.
    fn begin(&mut self, _: &Stop) -> Result<(), Fault> {
        self.open = true;
        Ok(())
    }

    fn insert(
        &mut self,
        rows: &Rows,
        part: Range<usize>,
        batch: &Batch,
        effects: &mut Effects,
        stop: &Stop,
    ) -> Result<(), Fault> {
        let Self { runtime, session, .. } = self;
        let Session { connection, options, run, opened, form, job, request_max, .. } = session;
        let Opened { shape, takes, .. } = opened;
        let fitted = (&**shape, &takes[..]);
        let id = connection.id();
        let told = |error: Error| fault::of(&error);
        let work = async {
            match run {
                Run::Values(insert) => {
                    effects.begin(shape.is_late, [""; 0]);
                    let (mut next, mut stored) = (part.start, 0);
                    // If rows may already exist, the count of many rows does not determine that of each row.
                    let is_each = insert.lookup.is_some() && effects.are_wanted();
                    while next < part.end {
                        let left = next..if is_each { next + 1 } else { part.end };
                        let (size, given) =
                            statement_values(insert, (rows, batch), fitted, left, *request_max)?;
                        // Prepared for the first statement of this size.
                        let statement = connection.prep(insert.sql(size)).await.map_err(told)?;
                        let given = Params::Positional(given);
                        connection.exec_drop(statement, given).await.map_err(of_insert)?;
                        let count = match &insert.lookup {
                            None => connection.affected_rows(),
                            Some(_) => inserted(connection, size),
                        };
                        let sent = next..next + size;
                        (stored, next) = (stored + count, sent.end);
                        if is_each {
                            effects.push(count, [])?;
                        }
                        // With a key, rows that already exist may be kept. Any other conflict is an error.
                        let is_short = count < size as u64 && job.affected == Affected::Row;
                        let Some(lookup) = insert.lookup.as_ref().filter(|_| is_short) else {
                            continue;
                        };
                        let value = |row, place: usize| {
                            let takes = &fitted.1[place];
                            let fit = rows.fitted(row, fitted.0, (place, takes), batch)?;
                            let value = bind::bound(fit, takes);
                            Ok(match form.as_ref() {
                                Some(form) => form.stored(place, takes, value),
                                None => value,
                            })
                        };
                        if !lookup.finds_all(connection, sent, value).await? {
                            return Err(Fault::ignored());
                        }
                    }
                    if is_each {
                        return Ok(());
                    }
                    let is_whole = stored == part.len() as u64;
                    if !is_whole && job.affected == Affected::Row && insert.lookup.is_none() {
                        return Err(Fault::ignored());
                    }
                    // The caller tries the rows one by one to find the row.
                    if !is_whole && effects.are_wanted() && part.len() > 1 {
                        return Err(Fault::ignored());
                    }
                    let each = if is_whole { 1 } else { stored };
                    part.into_iter().try_for_each(|_| effects.push(each, []))
                }
                Run::Rows(statement) => {
                    effects.begin(shape.is_late, [""; 0]);
                    let mut idle = RowsWithoutEffect::new(job.affected);
                    for row in part {
                        if stop.requested() {
                            return Err(Fault::stopped());
                        }
                        let mut given = Vec::with_capacity(shape.parameters.len());
                        values(rows, row, fitted, batch, &mut given)?;
                        if given.iter().map(bind::bytes_of).sum::<usize>() > *request_max {
                            return Err(too_large(row));
                        }
                        let run =
                            connection.exec_drop(&*statement, Params::Positional(given)).await;
                        run.map_err(|error| fault::of(&error).at(row))?;
                        let count = connection.affected_rows();
                        idle.note(row, count);
                        effects.push(count, [])?;
                    }
                    idle.fault(Fault::no_row)
                }
                Run::Query(..) => Err(Fault::new(Blame::Statement, "a query stores nothing")),
            }
        };
        stoppable(runtime, options, id, stop, work)
    }

    fn savepoint(&mut self, stop: &Stop) -> Result<(), Fault> {
        self.execute("savepoint one_part", stop)
    }

    fn release(&mut self, stop: &Stop) -> Result<(), Fault> {
        self.execute("release savepoint one_part", stop)
    }

    fn undo(&mut self, stop: &Stop) -> Result<(), Fault> {
        self.execute("rollback to savepoint one_part", stop)?;
        self.check_undone(stop)?;
        self.release(stop)
    }

    fn commit(&mut self, stop: &Stop) -> Commit {
        self.open = false;
        let Self { runtime, session: Session { connection, .. }, .. } = self;
        // The outcome is worth waiting for, even if a stop is requested.
        let said = until(runtime, stop, connection.query_drop("commit"), async {});
        let told = |error: Error| {
            let fault = fault::of(&error);
            // A backup blocks all commits, independent of their rows.
            let is_rows = fault.answered && fault.blame != Blame::Busy;
            (fault.answered(is_rows), fault::proves_rollback(&error))
        };
        Commit::of_server(said.map(|said| said.map_err(told)), || {
            self.open = true;
            self.rollback(stop)
        })
    }

    fn rollback(&mut self, stop: &Stop) -> Result<(), Fault> {
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        self.execute("rollback", stop)?;
        self.check_undone(stop)
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn query(
        &mut self,
        rows: &Rows,
        row: usize,
        batch: &Batch,
        sink: &mut Sink<'_>,
        stop: &Stop,
    ) -> Result<(), Fault> {
        let Self { runtime, session, .. } = self;
        let Session { connection, options, run, opened: Opened { shape, takes, .. }, .. } = session;
        let Run::Query(prepared, json) = run else {
            return Err(Fault::new(Blame::Statement, "there is no query"));
        };
        let Sink { rows: into, each, in_base64 } = sink;
        let id = connection.id();
        let told = |error: Error| fault::of(&error);
        let work = async {
            let mut given = Vec::new();
            values(rows, row, (shape, takes), batch, &mut given)?;
            let params = Params::Positional(given);
            let mut found = connection.exec_iter(&*prepared, params).await.map_err(told)?;
            let columns = found.columns().unwrap_or_default();
            let leaves = |(index, column)| match Leaves::of(column, *in_base64) {
                _ if *in_base64 && json.get(index) == Some(&true) => Leaves::Json,
                leaves => leaves,
            };
            let types: Vec<_> = columns.iter().enumerate().map(leaves).collect();
            into.reshape(Schema::new(columns.iter().map(|it| it.name_ref()), Case::Exact));
            let mut digits = Digits::default();
            while let Some(row) = found.next().await.map_err(told)? {
                let found = row.unwrap();
                digits.clear();
                found.iter().zip(&types).for_each(|(it, of)| bind::note(it, *of, &mut digits));
                let mut texts = digits.iter();
                let fields =
                    found.iter().zip(&types).map(|(it, of)| bind::field(it, *of, &mut texts));
                into.push(fields)
                    .map_err(|error| Fault::new(Blame::Statement, &error.to_string()))?;
                // A result without end must not be read to its end, so the connection is dropped.
                each(into).map_err(|fault| Fault { blame: Blame::Lost, ..fault })?;
            }
            Ok(())
        };
        stoppable(runtime, options, id, stop, work)
    }

    fn write_dead_letters(
        &mut self,
        table: &str,
        letters: &[Letter<'_>],
        stop: &Stop,
    ) -> Result<(), Fault> {
        let Self { runtime, session, .. } = self;
        let Session { connection, options, request_max, .. } = session;
        let id = connection.id();
        let work =
            async { letters::write_dead_letters(connection, table, letters, *request_max).await };
        stoppable(runtime, options, id, stop, work)
    }

    fn letters(
        &mut self,
        table: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<StoredLetter>, Fault> {
        let Self { runtime, session: Session { connection, .. }, .. } = self;
        let list = async {
            let listed = letters::list(connection, table, after, limit).await;
            // With autocommit off, the session would otherwise always see the same snapshot.
            connection.query_drop("commit").await.and(listed)
        };
        runtime.block_on(list).map_err(|error| fault::of(&error))
    }

    fn remove_dead_letter(&mut self, table: &str, number: i64) -> Result<bool, Fault> {
        let Self { runtime, session: Session { connection, .. }, .. } = self;
        let removed = letters::remove(connection, table, number);
        runtime.block_on(removed).map_err(|error| fault::of(&error))
    }
}
