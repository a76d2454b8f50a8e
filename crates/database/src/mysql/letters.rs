//! Dead letters in MySQL and MariaDB.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Params, Value};

use super::bind;
use super::fault::{self, unless_for_now};
use super::schema::{apart, table_sql};
use crate::DatabaseError;
use crate::fault::Fault;
use crate::letter::{Letter, StoredLetter, UID_CHARS_MAX};
use crate::letters::log_made;

/// Makes the table where it is missing, and proves that it is one of letters. Whether it keeps their uids.
pub(super) async fn prepare(
    connection: &mut Conn,
    server: &str,
    table: &str,
) -> Result<bool, DatabaseError> {
    let create = format!(
        "create table if not exists {} (id bigint not null auto_increment primary key, at bigint \
         not null, `row` longblob not null, code varchar(20) not null, message text not null, \
         uid varchar({UID_CHARS_MAX}) character set ascii null unique) \
         engine = InnoDB default charset = utf8mb4",
        table_sql(table)
    );
    // Where it is there, we may not have the right to make one.
    let fits = match connection.prep(insert(table)).await {
        Ok(_) => Ok(()),
        Err(_) => match connection.query_drop(create).await {
            Ok(()) => {
                let fits = connection.prep(insert(table)).await.map(drop);
                fits.inspect(|()| log_made(table))
            }
            Err(error) => Err(error),
        },
    };
    let told = |error: Error| {
        unless_for_now(server, &error, |text| DatabaseError::Dead(table.to_owned(), text.into()))
    };
    fits.map_err(told)?;
    has_uid(connection, table).await.map_err(told)
}

/// Whether the table has a text column `uid` that alone is a unique key.
async fn has_uid(connection: &mut Conn, table: &str) -> Result<bool, Error> {
    let sql = "select count(*) from information_schema.columns c \
               join information_schema.statistics s using (table_schema, table_name, column_name) \
               where c.table_schema = coalesce(?, database()) and c.table_name = ? \
               and c.column_name = 'uid' and c.character_maximum_length >= ? \
               and s.non_unique = 0 and s.sub_part is null and not exists (\
               select 1 from information_schema.statistics o where o.table_schema = s.table_schema \
               and o.table_name = s.table_name and o.index_name = s.index_name \
               and o.column_name <> s.column_name)";
    let (schema, name) = apart(table);
    let keys: Option<u64> = connection.exec_first(sql, (schema, name, UID_CHARS_MAX)).await?;
    Ok(keys.unwrap_or_default() > 0)
}

fn insert(table: &str) -> String {
    format!("insert into {} (at, code, message, `row`) values (?, ?, ?, ?)", table_sql(table))
}

fn insert_once(table: &str) -> String {
    format!(
        "insert into {} (at, code, message, `row`, uid) values (?, ?, ?, ?, ?)",
        table_sql(table)
    )
}

pub(super) async fn bury(
    connection: &mut Conn,
    (table, has_uid): (&str, bool),
    letters: &[Letter<'_>],
    bytes_max: usize,
) -> Result<(), Fault> {
    let told = |error: Error| fault::of(&error);
    for Letter { uid, at_us, row, code, text, count } in letters {
        let at = Value::Int(*at_us);
        let mut values = vec![at.clone(), (*code).into(), (&**text).into(), (*row).into()];
        if has_uid {
            values.push(uid.into());
        }
        // What is kept the first time must also be when it is sent again.
        let of_count = [at, Value::Int(count.unwrap_or_default())];
        let bytes: usize = values.iter().chain(&of_count).map(bind::bytes_of).sum();
        if count.is_some() && !has_uid {
            values.extend(of_count);
        }
        if bytes > bytes_max {
            tracing::error!(table, bytes, "a dead letter is not kept: {}", fault::TOO_LARGE);
            continue;
        }
        // Prepared once, and found again by its text.
        let sql = match count {
            _ if has_uid => insert_once(table),
            Some(_) => insert_up_to(table),
            None => insert(table),
        };
        let statement = connection.prep(sql).await.map_err(told)?;
        match connection.exec_drop(&statement, Params::Positional(values)).await {
            Err(error) if count.is_some() && is_there(&error, uid) => continue,
            written => written.map_err(told)?,
        }
        if connection.affected_rows() == 0 && count.is_none() {
            return Err(Fault::ignored());
        }
    }
    Ok(())
}

/// Whether an insert has met the letter with that uid. It has waited for the other session where that had
/// not committed yet.
fn is_there(error: &Error, uid: &str) -> bool {
    matches!(error, Error::Server(said) if said.code == 1062 && said.message.contains(uid))
}

/// Writes a letter where there are fewer of it, into a table without uids. It waits for letters that
/// another session has written and not committed yet. The request is a parameter once: twice it could be larger
/// than the server takes, though it was kept the first time.
fn insert_up_to(table: &str) -> String {
    let table = table_sql(table);
    format!(
        "insert into {table} (at, code, message, `row`) select ?, ?, ?, one.`row` \
         from (select cast(? as binary) as `row`) as one \
         where (select count(*) from {table} as there where there.at = ? \
         and there.`row` = one.`row` lock in share mode) < ?"
    )
}

pub(super) async fn list(
    connection: &mut Conn,
    table: &str,
    after: i64,
    limit: usize,
) -> Result<Vec<StoredLetter>, Error> {
    let sql = format!(
        "select id, at, `row`, code, message from {} where id > ? order by id limit {limit}",
        table_sql(table)
    );
    let letter =
        |(number, at_us, row, code, message)| StoredLetter { number, at_us, row, code, message };
    connection.exec_map(sql, (after,), letter).await
}

pub(super) async fn remove(connection: &mut Conn, table: &str, number: i64) -> Result<bool, Error> {
    let sql = format!("delete from {} where id = ?", table_sql(table));
    connection.exec_drop(sql, (number,)).await?;
    Ok(connection.affected_rows() > 0)
}
