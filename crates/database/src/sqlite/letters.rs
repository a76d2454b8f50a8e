//! Dead letters in an SQLite file.

use rusqlite::{Connection, Error};

use super::fault::text_of;
use super::statement::quoted;
use crate::DatabaseError;
use crate::fault::Fault;
use crate::letter::{Letter, StoredLetter};
use crate::letters::log_made;

/// Makes the table where it is missing, and proves that it is one of letters.
pub(super) fn prepare(connection: &Connection, table: &str) -> Result<(), DatabaseError> {
    let sql = format!(
        "create table if not exists {} (id integer primary key autoincrement, at integer not null, \
         row blob not null, code text not null, message text not null, uid text unique)",
        quoted(table)
    );
    let is_there = connection.prepare(&format!("select 1 from {}", quoted(table))).is_ok();
    let made = match is_there {
        true => Ok(()),
        false => connection.execute_batch(&sql).inspect(|()| log_made(table)),
    };
    let fits = made.and_then(|()| connection.prepare(&insert(table)).map(drop));
    fits.map_err(|error| DatabaseError::Dead(table.to_owned(), text_of(&error).into()))
}

fn insert(table: &str) -> String {
    format!("insert into {} (at, row, code, message) values (?, ?, ?, ?)", quoted(table))
}

pub(super) fn bury(
    connection: &Connection,
    (table, uids): (&str, bool),
    letters: &[Letter<'_>],
) -> Result<(), Fault> {
    let has_uid = uids && connection.prepare_cached(&insert_once(table)).is_ok();
    for Letter { uid, at_us, row, code, text, count } in letters {
        let text = &**text;
        let written = match count {
            _ if has_uid => {
                let mut statement = connection.prepare_cached(&insert_once(table))?;
                statement.execute((at_us, row, code, text, uid))?
            }
            None => {
                let mut statement = connection.prepare_cached(&insert(table))?;
                statement.execute((at_us, row, code, text))?
            }
            Some(count) => {
                let mut statement = connection.prepare_cached(&insert_up_to(table))?;
                statement.execute((at_us, row, code, text, count))?
            }
        };
        if written == 0 && count.is_none() {
            return Err(Fault::ignored());
        }
    }
    Ok(())
}

/// Writes a letter that is not there yet.
fn insert_once(table: &str) -> String {
    format!(
        "insert into {} (at, row, code, message, uid) values (?, ?, ?, ?, ?) \
         on conflict (uid) do nothing",
        quoted(table)
    )
}

/// Writes a letter where there are fewer of it, into a table without uids.
fn insert_up_to(table: &str) -> String {
    let table = quoted(table);
    format!(
        "insert into {table} (at, row, code, message) select ?1, ?2, ?3, ?4 \
         where (select count(*) from {table} where at = ?1 and row = ?2) < ?5"
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
