//! Dead letters in an SQLite file.

use rusqlite::{Connection, Error};

use super::fault::{is_ambiguous, text_of};
use super::keys::{collations, names};
use super::statement::quoted;
use crate::DatabaseError;
use crate::fault::{Blame, Fault};
use crate::letter::{self, Letter, StoredLetter};
use crate::letters::log_made;
use sql::column::Takes;

/// Creates the dead-letter table if it is missing, and checks it. Returns the reason if it cannot be used.
///
/// # Errors
/// Returns an error if the check is not possible now.
pub(super) fn prepare(
    connection: &Connection,
    table: &str,
) -> Result<Option<DatabaseError>, Error> {
    examine(connection, table).or_else(|error| match is_ambiguous(&error) {
        true => Ok(Some(DatabaseError::Dead(table.to_owned(), text_of(&error).into()))),
        false => Err(error),
    })
}

fn examine(connection: &Connection, table: &str) -> Result<Option<DatabaseError>, Error> {
    let named = quoted(table);
    if connection.prepare(&format!("select 1 from {named}")).is_err() {
        connection.execute_batch(&format!(
            "create table if not exists {named} (id integer primary key autoincrement, \
             at integer not null, row blob not null, code text not null, message text not null, \
             uid text unique)"
        ))?;
        log_made(table);
    }
    let plain = format!("insert into {named} (at, row, code, message) values (?, ?, ?, ?)");
    connection.prepare(&plain)?;
    if let Some(error) = missing(connection, table)? {
        return Ok(Some(error));
    }
    connection.prepare(&insert_once(table)).map(|_| None)
}

/// Returns what the table lacks to keep uids as a key.
fn missing(connection: &Connection, table: &str) -> Result<Option<DatabaseError>, Error> {
    let is_table = "select count(*) from pragma_table_list(?) where type = 'table'";
    if connection.query_row(is_table, [table], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Some(letter::of_a_view(table)));
    }
    let types =
        "select upper(type) from pragma_table_xinfo(?) where lower(name) = 'uid' and hidden = 0";
    let types = names(connection, types, [table])?;
    // Any other affinity would convert some uids to numbers.
    let is_text = types.first().map(|of| matches!(sql::sqlite_takes(of), Takes::Text));
    let is_key = !collations(connection, table, &["uid".to_owned()])?.is_empty();
    let named = quoted(table);
    let index = format!("create unique index {} on {named} (uid)", quoted(&format!("{table}_uid")));
    let column = format!("alter table {named} add column uid text");
    let sql = match (is_text, is_key) {
        (Some(true), true) => return Ok(None),
        (Some(true), false) => index,
        (None, _) => format!("{column}; {index}"),
        (Some(false), _) => {
            format!("alter table {named} rename column uid to uid_before; {column}; {index}")
        }
    };
    Ok(Some(letter::without_uids(table, &sql)))
}

/// Writes the dead letters that do not exist yet.
pub(super) fn write_dead_letters(
    connection: &Connection,
    table: &str,
    letters: &[Letter<'_>],
) -> Result<(), Fault> {
    let unfit = |error: Error| match is_ambiguous(&error) {
        true => Fault { blame: Blame::Statement, ..Fault::from(error) },
        false => Fault::from(error),
    };
    for Letter { uid, at_us, row, code, text } in letters {
        let mut statement = connection.prepare_cached(&insert_once(table)).map_err(unfit)?;
        let written = statement.execute((at_us, row, code, &**text, uid))?;
        if written == 0 && !is_there(connection, table, uid)? {
            return Err(Fault::ignored());
        }
    }
    Ok(())
}

/// Whether the dead letter with this uid is in the table.
fn is_there(connection: &Connection, table: &str, uid: &str) -> Result<bool, Error> {
    let sql = format!("select 1 from {} where uid = ?", quoted(table));
    connection.prepare_cached(&sql)?.exists([uid])
}

fn insert_once(table: &str) -> String {
    format!(
        "insert into {} (at, row, code, message, uid) values (?, ?, ?, ?, ?) \
         on conflict (uid) do nothing",
        quoted(table)
    )
}

pub(super) fn list(
    connection: &Connection,
    table: &str,
    after: i64,
    limit: usize,
) -> Result<Vec<StoredLetter>, Error> {
    let sql = format!(
        "select id, at, row, code, message from {} where id > ? order by id limit ?",
        quoted(table)
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let letter = |row: &rusqlite::Row<'_>| {
        Ok(StoredLetter {
            number: row.get(0)?,
            at_us: row.get(1)?,
            row: row.get(2)?,
            code: row.get(3)?,
            message: row.get(4)?,
        })
    };
    connection.prepare_cached(&sql)?.query_map((after, limit), letter)?.collect()
}

pub(super) fn remove(connection: &Connection, table: &str, number: i64) -> Result<bool, Error> {
    let sql = format!("delete from {} where id = ?", quoted(table));
    Ok(connection.prepare_cached(&sql)?.execute([number])? > 0)
}
