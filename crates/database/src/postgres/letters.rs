//! Dead letters in PostgreSQL.

use tokio_postgres::{Client, Error};

use super::fault;
use super::schema::{dead, table_sql};
use super::wire::Text;
use crate::DatabaseError;
use crate::column::push_hexadecimal;
use crate::fault::{Blame, Fault};
use crate::letter::{Letter, StoredLetter};
use crate::letters::log_made;

/// Makes the table where it is missing, and proves that it is one of letters. Whether it keeps their uids.
pub(super) async fn prepare(
    client: &Client,
    server: &str,
    table: &str,
) -> Result<bool, DatabaseError> {
    let named = table_sql(table);
    // Where it is there, we may not have the right to make one.
    let there = format!("select from {named} where false");
    let made = match client.batch_execute(&there).await {
        Ok(()) => Ok(()),
        Err(_) => client
            .batch_execute(&format!(
                "create table if not exists {named} (id bigint generated always as identity \
                     primary key, at bigint not null, \"row\" bytea not null, code text not null, \
                     message text not null, uid text unique)"
            ))
            .await
            .inspect(|()| log_made(table)),
    };
    let fits = match made {
        Ok(()) => client.prepare(&insert(table)).await.map(drop),
        Err(error) => Err(error),
    };
    let told = |error: Error| dead(server, table, &error);
    fits.map_err(told)?;
    let keeps = client.query(KEEPS_UIDS, &[&Text(Some(named.as_bytes()))]).await.map_err(told)?;
    if keeps.first().is_none_or(|row| !row.get::<_, bool>(0)) {
        return Ok(false);
    }
    // What is not a table is not looked into; and there may be no right to read it. Preparing does not look for
    // the key.
    let planned = format!("explain {}", insert_once(table, ["0", "''", "''", "''", "''"]));
    match client.batch_execute(&planned).await {
        Ok(()) => Ok(true),
        // No such column, no key of it, another type, no right to read it; not on a view with rules.
        Err(error) if error.code().is_some_and(|it| matches!(&it.code()[..2], "42" | "0A")) => {
            Ok(false)
        }
        Err(error) => Err(told(error)),
    }
}

/// Whether the column `uid` takes all uids and, of a table, has a unique key of its own that is checked at
/// once: another is not taken for `on conflict`.
const KEEPS_UIDS: &str = "\
    select coalesce(c.relkind not in ('r', 'p') or (select bool_and(i.indimmediate) from pg_index i \
      where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null \
        and i.indexprs is null and i.indnkeyatts = 1 and i.indkey[0] = a.attnum), false) \
    from pg_class c join pg_attribute a on a.attrelid = c.oid \
    where c.oid = to_regclass($1::text) and a.attname = 'uid' and not a.attisdropped \
      and format_type(a.atttypid, null) in ('text', 'character varying') \
      and (a.atttypmod = -1 or a.atttypmod - 4 >= 80)";

/// Writes a letter that is not there yet. Where another session has written it and not committed yet, it
/// waits for that.
fn insert_once(table: &str, [at, row, code, message, uid]: [&str; 5]) -> String {
    let named = table_sql(table);
    format!(
        "insert into {named} (at, \"row\", code, message, uid) values ({at}::bigint, {row}::bytea, \
         {code}::text, {message}::text, {uid}::text) on conflict (uid) do nothing"
    )
}

fn insert(table: &str) -> String {
    let named = table_sql(table);
    format!(
        "insert into {named} (at, \"row\", code, message) values ($1::bigint, $2::bytea, $3::text, \
         $4::text)"
    )
}

pub(super) async fn bury(
    client: &Client,
    (table, has_uid): (&str, bool),
    letters: &[Letter<'_>],
) -> Result<(), Fault> {
    // A key that is deferrable by now: the server says so when the statement runs.
    let told = |error: Error| match fault::of(&error) {
        fault if has_uid && &*fault.code == "55000" => Fault { blame: Blame::Statement, ..fault },
        fault => fault,
    };
    let again = letters.iter().any(|letter| letter.count.is_some());
    if again && !has_uid {
        client.batch_execute(&waiting(table)).await.map_err(told)?;
    }
    let sql = match again {
        _ if has_uid => insert_once(table, ["$1", "$2", "$3", "$4", "$5"]),
        true => insert_up_to(table),
        false => insert(table),
    };
    let statement = client.prepare(&sql).await.map_err(told)?;
    for Letter { uid, at_us, row, code, text, count } in letters {
        let mut bytes = Vec::with_capacity(2 + 2 * row.len());
        push_hexadecimal(&mut bytes, row);
        // What the database said holds no NUL, but it may have been shortened by us.
        let text = text.replace('\0', " ").into_bytes();
        let mut values =
            vec![at_us.to_string().into_bytes(), bytes, code.as_bytes().to_vec(), text];
        match has_uid {
            true => values.push(uid.clone().into_bytes()),
            false => values.extend(count.map(|count| count.to_string().into_bytes())),
        }
        let values: Vec<Text<'_>> = values.iter().map(|value| Text(Some(value))).collect();
        let written = client.execute_raw(&statement, values).await.map_err(told)?;
        if written == 0 && count.is_none() {
            return Err(Fault::ignored());
        }
    }
    Ok(())
}

/// Waits for those who have written letters and not committed yet: the session whose COMMIT was not
/// answered may be one of them. Who may not, or has waited long enough, goes on: a letter too many is
/// better than none. For a table without uids.
fn waiting(table: &str) -> String {
    let named = table_sql(table);
    format!(
        "do $letters$ begin lock table {named} in share row exclusive mode; \
         exception when insufficient_privilege or lock_not_available then null; end $letters$"
    )
}

/// Writes a letter where there are fewer of it, into a table without uids.
fn insert_up_to(table: &str) -> String {
    let named = table_sql(table);
    format!(
        "insert into {named} (at, \"row\", code, message) \
         select $1::bigint, $2::bytea, $3::text, $4::text \
         where (select count(*) from {named} where at = $1::bigint and \"row\" = $2::bytea) \
         < $5::bigint"
    )
}

pub(super) async fn list(
    client: &Client,
    table: &str,
    after: i64,
    limit: usize,
) -> Result<Vec<StoredLetter>, Error> {
    let sql = format!(
        "select id, at, \"row\", code, message from {} where id > $1::bigint order by id limit \
         $2::bigint",
        table_sql(table)
    );
    let (after, limit) = (after.to_string(), limit.to_string());
    let (after, limit) = (Text(Some(after.as_bytes())), Text(Some(limit.as_bytes())));
    let rows = client.query(&sql, &[&after, &limit]).await?;
    rows.iter()
        .map(|row| {
            Ok(StoredLetter {
                number: row.try_get(0)?,
                at_us: row.try_get(1)?,
                row: row.try_get(2)?,
                code: row.try_get(3)?,
                message: row.try_get(4)?,
            })
        })
        .collect()
}

pub(super) async fn remove(client: &Client, table: &str, number: i64) -> Result<bool, Error> {
    let sql = format!("delete from {} where id = $1::bigint", table_sql(table));
    let number = number.to_string();
    Ok(client.execute(&sql, &[&Text(Some(number.as_bytes()))]).await? > 0)
}
