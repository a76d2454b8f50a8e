//! Opens a connection to a file and prepares it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};
use sql::PlainWrite;

use super::driver::SqliteDriver;
use super::fault::{code_of, text_of};
use super::identity::{
    Identity, LOG_TRUNCATED, OpenFiles, beside, is_mounted_alone, links, orphaned_log, short_index,
    stale_log,
};
use super::keys::{Conflict, names, replaces};
use super::letters;
use super::link::{Prepared, SqliteLink};
use super::log::{Depth, Log};
use super::{statement, types};
use crate::rows::Shape;
use crate::source::Members;
use crate::{Action, DatabaseError, Sync, ack};

/// Opens the file and prepares what a handler needs. Waits for locks up to `lock_timeout`. A missing file is created if
/// `may_make`.
pub(super) fn connect(driver: &SqliteDriver, may_make: bool) -> Result<SqliteLink, DatabaseError> {
    let (path, job) = (&driver.path, &driver.job);
    let before = Identity::of(path);
    if let Some(log) = stale_log(path).or_else(|| orphaned_log(path)) {
        let text = format!(
            "`{}` belongs to a database file that was moved away or replaced; move that file back, or \
             move the log beside it. Removing the log removes acknowledged rows",
            log.display()
        );
        return Err(DatabaseError::Open(path.clone(), text.into()));
    }
    let count = links(path);
    if count > 1 {
        let text = format!(
            "the file has {count} names (hard links), and each would have its own write-ahead log, so that rows are \
             lost; remove the other names (`find -samefile`), or use a symbolic link"
        );
        return Err(DatabaseError::Open(path.clone(), text.into()));
    }
    if is_mounted_alone(path) {
        let text = "the file is mounted alone (as by `docker -v FILE:FILE`), without its write-ahead log, so that rows are \
                    lost; mount its directory instead";
        return Err(DatabaseError::Open(path.clone(), text.into()));
    }
    if let Some(index) = short_index(path) {
        let text = format!(
            "`{}` was truncated while other handlers had it open; it is used when they have closed it",
            index.display()
        );
        return Err(DatabaseError::Open(path.clone(), text.into()));
    }
    let connection = open_file(driver, may_make)?;
    let failed = |error| open_error(path, &error);
    let mode = configure(&connection, job.sync).map_err(failed)?;
    if !mode.eq_ignore_ascii_case("wal") {
        // A file system without shared memory: commits would cost several syncs and block readers.
        let text = format!("no write-ahead log is possible here, only `{mode}`");
        return Err(DatabaseError::Open(path.clone(), text.into()));
    }
    // The first read opens the log.
    names(&connection, "select name from sqlite_schema limit 1", []).map_err(failed)?;
    let mut log = open_log(path, &connection)?;
    if let Some(create) = &job.create {
        connection
            .execute_batch(create)
            .map_err(|error| DatabaseError::Create(text_of(&error).into()))?;
    }
    if let Action::Insert { table, columns, .. } = &job.action {
        check_table(&connection, table, columns).map_err(failed)??;
    }
    let conflict = Conflict::of(&connection, &job.action).map_err(failed)??;
    let doubts = doubts(&connection, &job.action).map_err(failed)?;
    let unfit = match &job.dead {
        Some(table) => letters::prepare(&connection, table).map_err(failed)?,
        None => None,
    };
    let (shape, names) = shape_of(driver, &connection)?;
    types::check(&connection, &job.action).map_err(failed)??;
    if matches!(job.action, Action::Query(_)) {
        connection.pragma_update(None, "query_only", true).map_err(failed)?;
    }
    // Nothing is copied from the log into the database before the log was compared with its index.
    let pages: u32 = connection
        .pragma_query_value(None, "wal_autocheckpoint", |row| row.get(0))
        .map_err(failed)?;
    connection
        .pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))
        .map_err(failed)?;
    // Rows that `create` wrote may be the first ones of the log.
    compare(path, &connection, &mut log)?;
    let files = OpenFiles::note(path, before, &log)
        .map_err(|error| DatabaseError::Open(path.clone(), error.to_string().into()))?;
    let (sql, affected) = (driver.sql.clone(), job.affected);
    let is_insert = matches!(job.action, Action::Insert { .. });
    let action = Arc::clone(job);
    let statement = Prepared { sql, conflict, affected, is_insert, job: action, names };
    let log = (log, pages);
    let link = SqliteLink::new(connection, files, log, statement, shape, job.lock_timeout);
    let mut link = link.map_err(failed)?;
    (link.opened.unfit, link.opened.doubts) = (unfit, doubts);
    Ok(link)
}

/// Returns the log of a connection that has used it, after comparing it with its index.
fn open_log(path: &Path, connection: &Connection) -> Result<Log, DatabaseError> {
    let opened = beside(path, "-wal").and_then(|log| Log::open(&log));
    let mut log =
        opened.map_err(|error| DatabaseError::Open(path.to_owned(), error.to_string().into()))?;
    compare(path, connection, &mut log)?;
    Ok(log)
}

fn compare(path: &Path, connection: &Connection, log: &mut Log) -> Result<(), DatabaseError> {
    let text = match log.frames(connection, Depth::Frames) {
        Ok(Some(_)) => return Ok(()),
        Ok(None) => LOG_TRUNCATED.to_owned(),
        Err(fault) => fault.for_operators(),
    };
    Err(DatabaseError::Open(path.to_owned(), text.into()))
}

fn open_file(driver: &SqliteDriver, may_make: bool) -> Result<Connection, DatabaseError> {
    let (path, job) = (&driver.path, &driver.job);
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = |error: Error| open_error(path, &error);
    let found = paths::protected(path);
    if may_make {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    } else if !path.exists() {
        return Err(match found {
            _ if job.create.is_none() => DatabaseError::NoFile(path.clone()),
            Ok(_) => DatabaseError::NotMade(path.clone()),
            Err(error) => {
                DatabaseError::Open(path.clone(), format!("its directory: {error}").into())
            }
        });
    }
    let real = match found {
        Ok(real) => {
            // If the file has become a link since, the link is not followed.
            flags |= OpenFlags::SQLITE_OPEN_NOFOLLOW;
            real
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(DatabaseError::Open(path.clone(), error.to_string().into()));
        }
        // The path leads nowhere. SQLite reports that.
        Err(_) => path.clone(),
    };
    let connection = Connection::open_with_flags(literal(&real), flags).map_err(open)?;
    connection.busy_timeout(job.lock_timeout).map_err(open)?;
    // Unless the log is verified as complete when the link is closed.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(open)?;
    // SQLite silently opens a file that it may not write as read-only.
    if connection.is_readonly("main").map_err(open)? {
        return Err(DatabaseError::ReadOnly(path.clone()));
    }
    Ok(connection)
}

/// Returns a path that SQLite takes literally, also if it looks like a URI or like a special name.
fn literal(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

/// Configures the connection. Returns the journal mode of the file.
fn configure(connection: &Connection, sync: Sync) -> Result<String, Error> {
    let level = match sync {
        Sync::Full => "full",
        Sync::Normal => "normal",
    };
    connection.pragma_update(None, "synchronous", level)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
}

/// Returns one sentence if the definition of the target table lets rows remove others.
fn doubts(connection: &Connection, action: &Action) -> Result<Vec<String>, Error> {
    let write;
    let table = match action {
        Action::Insert { table, .. } => table,
        Action::Statement(sql) => {
            write = PlainWrite::of(sql, sql::Dialect::Dollar);
            match &write {
                Some(write) => &write.table.text,
                None => return Ok(Vec::new()),
            }
        }
        Action::Query(_) => return Ok(Vec::new()),
    };
    Ok(match replaces(connection, table)? {
        true => vec![format!(
            "the table `{table}` is defined with `on conflict replace`: a row that conflicts with acknowledged rows \
             removes them, and `null` may be stored as the default of its column"
        )],
        false => Vec::new(),
    })
}

type Checked = Result<(), DatabaseError>;

fn check_table(connection: &Connection, table: &str, columns: &[String]) -> Result<Checked, Error> {
    let known = names(connection, "select name from pragma_table_info(?)", [table])?;
    if known.is_empty() {
        let tables = names(
            connection,
            "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by 1",
            [],
        )?;
        return Ok(Err(DatabaseError::NoTable { table: table.to_owned(), tables }));
    }
    let unset = names(
        connection,
        "select name from pragma_table_info(?) where \"notnull\" and dflt_value is null and pk = 0",
        [table],
    )?;
    let given = |name: &String| columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    let unset = unset.into_iter().find(|name| !given(name));
    let missing =
        columns.iter().find(|column| !known.iter().any(|name| name.eq_ignore_ascii_case(column)));
    let table = table.to_owned();
    Ok(match (missing.cloned(), unset) {
        (Some(column), _) => Err(DatabaseError::NoColumn { column, table, columns: known }),
        (None, Some(column)) => Err(DatabaseError::Unset { column, table }),
        (None, None) => Ok(()),
    })
}

/// Returns the shape of the records, and the names of the parameters.
fn shape_of(
    driver: &SqliteDriver,
    connection: &Connection,
) -> Result<(Shape, Vec<Option<String>>), DatabaseError> {
    let prepared = connection.prepare_cached(&driver.sql).map_err(statement::refuse)?;
    let reads = matches!(driver.job.action, Action::Query(_));
    if prepared.readonly() != reads {
        let why = if reads { "it writes" } else { "it does not write" };
        return Err(DatabaseError::Statement(why.into()));
    }
    let returned: Vec<String> = prepared.column_names().map(str::to_owned).collect();
    let mut members = Members::default();
    let ack = ack::of(&driver.job, &mut members, &returned)?;
    let parameters = statement::parameters(&driver.job.action, &prepared, &mut members)?;
    let name = |index| prepared.parameter_name(index).map(|name| name[1..].to_owned());
    let names = (1..=prepared.parameter_count()).map(name).collect();
    Ok((Shape::new(&driver.job, members, parameters, ack)?, names))
}

fn open_error(path: &Path, error: &Error) -> DatabaseError {
    let path = path.to_owned();
    match code_of(error) {
        Some(ErrorCode::ReadOnly) => DatabaseError::ReadOnly(path),
        _ => DatabaseError::Open(path, text_of(error).into()),
    }
}
