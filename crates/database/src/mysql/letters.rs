//! Dead letters in MySQL and MariaDB.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Params, Value};

use super::bind;
use super::fault::{self, unless_for_now};
use super::schema::{apart, table_sql};
use crate::DatabaseError;
use crate::fault::{Blame, Fault};
use crate::letter::{self, Letter, StoredLetter, UID_CHARS_MIN};
use crate::letters::log_made;

/// Creates the dead-letter table if it is missing, and checks it. Returns the reason if it cannot be used.
///
/// # Errors
/// Returns an error if the check is not possible now.
pub(super) async fn prepare(
    connection: &mut Conn,
    server: &str,
    table: &str,
) -> Result<Option<DatabaseError>, DatabaseError> {
    let create = format!(
        "create table if not exists {} (id bigint not null auto_increment primary key, at bigint \
         not null, `row` longblob not null, code varchar(20) not null, message text not null, \
         uid {UID_TYPE} unique) engine = InnoDB default charset = utf8mb4",
        table_sql(table)
    );
    // If the table exists, the daemon may not have the right to create one.
    let plain =
        format!("insert into {} (at, `row`, code, message) values (?, ?, ?, ?)", table_sql(table));
    let fits = match connection.prep(&*plain).await {
        Ok(_) => Ok(()),
        Err(_) => match connection.query_drop(create).await {
            Ok(()) => {
                let fits = connection.prep(&*plain).await.map(drop);
                fits.inspect(|()| log_made(table))
            }
            Err(error) => Err(error),
        },
    };
    let found = match fits {
        Ok(()) => missing(connection, table).await,
        Err(error) => Err(error),
    };
    let found = match found {
        // Checks the right to write.
        Ok(None) => connection.prep(insert_once(table)).await.map(|_| None),
        found => found,
    };
    found.or_else(|error| {
        let is_of_table = matches!(fault::of(&error).blame, Blame::Row | Blame::Statement);
        let told = unless_for_now(server, &error, |text| {
            DatabaseError::Dead(table.to_owned(), text.into())
        });
        if is_of_table { Ok(Some(told)) } else { Err(told) }
    })
}

/// The type of the column `uid` in a table that is created.
const UID_TYPE: &str = "varchar(80) character set ascii null";

/// Returns what the table lacks to keep uids as a key.
async fn missing(connection: &mut Conn, table: &str) -> Result<Option<DatabaseError>, Error> {
    let (schema, name) = apart(table);
    // Both names in each query: otherwise the server opens every table.
    let of_table = "select table_type in ('BASE TABLE', 'SYSTEM VERSIONED') from information_schema.tables \
                    where table_schema = coalesce(?, database()) and table_name = ?";
    let is_table: Option<bool> = connection.exec_first(of_table, (schema, name)).await?;
    if is_table != Some(true) {
        return Ok(Some(letter::of_a_view(table)));
    }
    let of_column = format!(
        "select data_type in ('char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext') \
         and character_maximum_length >= {UID_CHARS_MIN} and extra not like '%GENERATED%' \
         from information_schema.columns where table_schema = coalesce(?, database()) \
         and table_name = ? and column_name = 'uid'"
    );
    let fits: Option<Option<bool>> = connection.exec_first(of_column, (schema, name)).await?;
    let (is_there, fits) = (fits.is_some(), fits.flatten().unwrap_or_default());
    let of_keys = "select index_name, column_name <=> 'uid' and sub_part is null \
                   from information_schema.statistics where non_unique = 0 \
                   and table_schema = coalesce(?, database()) and table_name = ? \
                   order by index_name";
    let parts: Vec<(String, bool)> = connection.exec(of_keys, (schema, name)).await?;
    let mut keys = parts.chunk_by(|one, other| one.0 == other.0);
    let has_key = keys.any(|key| key.iter().all(|(_, is_whole_uid)| *is_whole_uid));
    let change = match (is_there, fits, has_key) {
        (true, true, true) => return Ok(None),
        (false, ..) => format!("add column uid {UID_TYPE} unique"),
        (true, false, true) => format!("modify column uid {UID_TYPE}"),
        (true, false, false) => format!("modify column uid {UID_TYPE}, add unique (uid)"),
        (true, true, false) => "add unique (uid)".to_owned(),
    };
    let sql = format!("alter table {} {change}", table_sql(table));
    Ok(Some(letter::without_uids(table, &sql)))
}

fn insert_once(table: &str) -> String {
    format!(
        "insert into {} (at, `row`, code, message, uid) values (?, ?, ?, ?, ?)",
        table_sql(table)
    )
}

/// Writes the dead letters that do not exist yet. If another session has written one and not committed it yet, waits
/// for that session.
pub(super) async fn write_dead_letters(
    connection: &mut Conn,
    table: &str,
    letters: &[Letter<'_>],
    bytes_max: usize,
) -> Result<(), Fault> {
    let told = |error: Error| fault::of(&error);
    // Prepared once, then found again by its text.
    let statement = connection.prep(insert_once(table)).await.map_err(told)?;
    for Letter { uid, at_us, row, code, text } in letters {
        let values =
            vec![Value::Int(*at_us), (*row).into(), (*code).into(), (&**text).into(), uid.into()];
        let bytes: usize = values.iter().map(bind::bytes_of).sum();
        if bytes > bytes_max {
            return Err(Fault::new(Blame::Row, fault::TOO_LARGE));
        }
        match connection.exec_drop(&statement, Params::Positional(values)).await {
            Ok(()) if connection.affected_rows() == 0 => return Err(Fault::ignored()),
            Ok(()) => {}
            // A conflict on this key or on an additional one of the operator.
            Err(error) if is_duplicate(&error) => {
                if !is_there(connection, table, uid).await.map_err(told)? {
                    return Err(told(error));
                }
            }
            Err(error) => return Err(told(error)),
        }
    }
    Ok(())
}

fn is_duplicate(error: &Error) -> bool {
    matches!(error, Error::Server(said) if said.code == 1062)
}

/// Whether the dead letter with this uid is in the table, also if it was committed after this transaction began.
async fn is_there(connection: &mut Conn, table: &str, uid: &str) -> Result<bool, Error> {
    let sql = format!("select 1 from {} where uid = ? lock in share mode", table_sql(table));
    let found: Option<u8> = connection.exec_first(sql, (uid,)).await?;
    Ok(found.is_some())
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
