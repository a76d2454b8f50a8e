//! Dead letters in MySQL and MariaDB.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Params, Value};

use super::bind;
use super::fault::{self, unless_for_now};
use super::schema::table_sql;
use crate::DatabaseError;
use crate::fault::Fault;
use crate::letter::{Letter, StoredLetter};
use crate::letters::log_made;

/// Makes the table where it is missing, and proves that it is one of letters.
pub(super) async fn prepare(
    connection: &mut Conn,
    server: &str,
    table: &str,
) -> Result<(), DatabaseError> {
    let create = format!(
        "create table if not exists {} (id bigint not null auto_increment primary key, at bigint \
         not null, `row` longblob not null, code varchar(20) not null, message text not null) \
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
    fits.map_err(|error| {
        unless_for_now(server, &error, |text| DatabaseError::Dead(table.to_owned(), text.into()))
    })
}

fn insert(table: &str) -> String {
    format!("insert into {} (at, `row`, code, message) values (?, ?, ?, ?)", table_sql(table))
}

pub(super) async fn bury(
    connection: &mut Conn,
    table: &str,
    letters: &[Letter<'_>],
    bytes_max: usize,
) -> Result<(), Fault> {
    let told = |error: Error| fault::of(&error);
    for Letter { at_us, row, code, text, count } in letters {
        let at = Value::Int(*at_us);
        let mut values = vec![at.clone(), (*row).into(), (*code).into(), (&**text).into()];
        if let Some(count) = count {
            values.extend([at, (*row).into(), Value::Int(*count)]);
        }
        let bytes: usize = values.iter().map(bind::bytes_of).sum();
        if bytes > bytes_max {
            tracing::error!(table, bytes, "a dead letter is not kept: {}", fault::TOO_LARGE);
            continue;
        }
        // Prepared once, and found again by its text.
        let sql = if count.is_none() { insert(table) } else { insert_up_to(table) };
        let statement = connection.prep(sql).await.map_err(told)?;
        let written = connection.exec_drop(&statement, Params::Positional(values)).await;
        written.map_err(told)?;
        if connection.affected_rows() == 0 && count.is_none() {
            return Err(Fault::ignored());
        }
    }
    Ok(())
}

/// Writes a letter where there are fewer of it. What reads beside an insert waits for those that
/// another session has written and not committed yet.
fn insert_up_to(table: &str) -> String {
    let table = table_sql(table);
    format!(
        "insert into {table} (at, `row`, code, message) select ?, ?, ?, ? from dual \
         where (select count(*) from {table} as there where there.at = ? and there.`row` = ?) < ?"
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
