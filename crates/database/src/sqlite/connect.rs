//! From a path to a connection that is ready to write.

use std::path::{Path, PathBuf};

use fields::{Case, Schema};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};

use super::fault::{code_of, text_of};
use super::link::Link;
use super::{Setup, statement};
use crate::rows::Shape;
use crate::source::{Members, Source};
use crate::{Action, DatabaseError, Record, Sync};

/// Opens the file and prepares what a handler needs. Waits for locks up to `lock_wait`.
pub(super) fn connect(setup: &Setup) -> Result<Link, DatabaseError> {
    let options = &setup.options;
    let connection = open_file(setup)?;
    let mode = configure(&connection, options.sync);
    let mode = mode.map_err(|error| open_error(&options.path, &error))?;
    if !mode.eq_ignore_ascii_case("wal") {
        // A file system without shared memory: commits would cost several syncs and block readers.
        let text = format!("no write-ahead log is possible here, only `{mode}`");
        return Err(DatabaseError::Open(options.path.clone(), text.into()));
    }
    if let Some(create) = &options.create {
        connection
            .execute_batch(create)
            .map_err(|error| DatabaseError::Create(text_of(&error).into()))?;
    }
    if let Action::Insert { table, columns, .. } = &options.action {
        check_table(&connection, table, columns)
            .map_err(|error| open_error(&options.path, &error))??;
    }
    let shape = shape_of(setup, &connection)?;
    Link::new(connection, setup.sql.clone(), shape, options.lock_wait)
        .map_err(|error| open_error(&options.path, &error))
}

/// Opens the file as a handler would and proves that it can be written.
pub(super) fn check(setup: &Setup) -> Result<(), DatabaseError> {
    let link = connect(setup)?;
    let path = &setup.options.path;
    link.try_lock().map_err(|fault| DatabaseError::Open(path.clone(), fault.text.into()))
}

fn open_file(setup: &Setup) -> Result<Connection, DatabaseError> {
    let options = &setup.options;
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if options.create.is_some() {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    } else if !options.path.exists() {
        return Err(DatabaseError::NoFile(options.path.clone()));
    }
    let open = |error: Error| open_error(&options.path, &error);
    let connection = Connection::open_with_flags(literal(&options.path), flags).map_err(open)?;
    connection.busy_timeout(options.lock_wait).map_err(open)?;
    // SQLite opens a file that it may not write for reading, and says nothing.
    if connection.is_readonly("main").map_err(open)? {
        return Err(DatabaseError::ReadOnly(options.path.clone()));
    }
    Ok(connection)
}

/// A path that SQLite takes as a path, also when it looks like a URI or like a word of its own.
fn literal(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

/// Returns the journal mode that the file has now.
fn configure(connection: &Connection, sync: Sync) -> Result<String, Error> {
    let level = match sync {
        Sync::Full => "full",
        Sync::Normal => "normal",
    };
    connection.pragma_update(None, "synchronous", level)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
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
    let missing =
        columns.iter().find(|column| !known.iter().any(|name| name.eq_ignore_ascii_case(column)));
    Ok(missing.map_or(Ok(()), |column| {
        let (column, table) = (column.clone(), table.to_owned());
        Err(DatabaseError::NoColumn { column, table, columns: known })
    }))
}

fn names(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> Result<Vec<String>, Error> {
    connection.prepare(sql)?.query_map(parameters, |row| row.get(0))?.collect()
}

fn shape_of(setup: &Setup, connection: &Connection) -> Result<Shape, DatabaseError> {
    let prepared = connection.prepare_cached(&setup.sql).map_err(statement::refuse)?;
    if prepared.readonly() {
        return Err(DatabaseError::Statement("it does not write".into()));
    }
    let options = &setup.options;
    let mut members = setup.members.clone();
    let parameters = statement::parameters(&options.action, &prepared, &mut members)?;
    let columns = columns(&members, &parameters);
    let absent = members.iter().find(|name| !columns.iter().any(|column| **column == **name));
    if let (Record::Tsv, Some(name)) = (options.record, absent) {
        let columns = columns.into_iter().map(String::from).collect();
        return Err(DatabaseError::NotInRecord { name: name.to_owned(), columns });
    }
    let members = Schema::new(members.iter(), Case::Exact);
    Ok(Shape { record: options.record, members, columns, parameters, ack: setup.ack.clone() })
}

/// The members that are parameters, each once, in the order of the parameters.
fn columns(members: &Members, parameters: &[Source]) -> Vec<Box<str>> {
    let mut columns: Vec<Box<str>> = Vec::new();
    for source in parameters {
        let Source::Member(member) = source else { continue };
        let name = members.iter().nth(*member).unwrap_or_default();
        if !columns.iter().any(|column| **column == *name) {
            columns.push(name.into());
        }
    }
    columns
}

fn open_error(path: &Path, error: &Error) -> DatabaseError {
    let path = path.to_owned();
    match code_of(error) {
        Some(ErrorCode::ReadOnly) => DatabaseError::ReadOnly(path),
        _ => DatabaseError::Open(path, text_of(error).into()),
    }
}
