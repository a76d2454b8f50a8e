//! Dead letters in PostgreSQL.

use sql::quoted;
use tokio_postgres::{Client, Error};

use super::fault;
use super::schema::{dead, table_sql};
use super::wire::Text;
use crate::DatabaseError;
use crate::fault::{Blame, Fault};
use crate::letter::{self, Letter, StoredLetter, UID_CHARS_MIN};
use crate::letters::log_made;
use sql::column::push_hexadecimal;

/// Creates the dead-letter table if it is missing, and checks it. Returns the reason if it cannot be used.
///
/// # Errors
/// Returns an error if the check is not possible now.
pub(super) async fn prepare(
    client: &Client,
    server: &str,
    table: &str,
) -> Result<Option<DatabaseError>, DatabaseError> {
    examine(client, table).await.or_else(|error| {
        let is_of_table = matches!(fault::of(&error).blame, Blame::Row | Blame::Statement);
        let told = dead(server, table, &error);
        if is_of_table { Ok(Some(told)) } else { Err(told) }
    })
}

async fn examine(client: &Client, table: &str) -> Result<Option<DatabaseError>, Error> {
    let named = table_sql(table);
    // If the table exists, the daemon may not have the right to create one.
    let there = format!("select from {named} where false");
    if client.batch_execute(&there).await.is_err() {
        client
            .batch_execute(&format!(
                "create table if not exists {named} (id bigint generated always as identity \
                 primary key, at bigint not null, \"row\" bytea not null, code text not null, \
                 message text not null, uid text unique)"
            ))
            .await?;
        log_made(table);
    }
    let plain = format!(
        "insert into {named} (at, \"row\", code, message) values ($1::bigint, $2::bytea, $3::text, \
         $4::text)"
    );
    client.prepare(&plain).await?;
    if let Some(error) = missing(client, table).await? {
        return Ok(Some(error));
    }
    // Preparing checks neither the key nor the right to read it.
    let planned = format!("explain {}", insert_once(table, ["0", "''", "''", "''", "''"]));
    client.batch_execute(&planned).await?;
    Ok(None)
}

/// Returns what the table lacks to keep uids as a key.
async fn missing(client: &Client, table: &str) -> Result<Option<DatabaseError>, Error> {
    // Types: text, varchar, bpchar. A length includes 4 bytes for itself.
    let sql = format!(
        "select c.relkind in ('r', 'p'), a.attnum is not null, \
         coalesce(a.atttypid in (25, 1043, 1042) and a.attgenerated = '' \
         and (a.atttypmod < 0 or a.atttypmod >= {UID_CHARS_MIN} + 4) and l.collisdeterministic, false), \
         exists (select from pg_catalog.pg_index i \
         join pg_catalog.pg_collation il on il.oid = i.indcollation[0] \
         where i.indrelid = c.oid and i.indisunique and i.indimmediate and i.indisvalid \
         and i.indpred is null and i.indexprs is null and i.indnkeyatts = 1 \
         and i.indkey[0] = a.attnum and il.collisdeterministic), \
         array(select o.conname::text from pg_catalog.pg_constraint o where o.conrelid = c.oid \
         and o.contype in ('u', 'p') and o.condeferrable and o.conkey = array[a.attnum]) \
         from pg_catalog.pg_class c left join pg_catalog.pg_attribute a on a.attrelid = c.oid \
         and a.attname = 'uid' and not a.attisdropped \
         left join pg_catalog.pg_collation l on l.oid = a.attcollation \
         where c.oid = $1::text::regclass"
    );
    let named = table_sql(table);
    let found = client.query_one(&sql, &[&Text(Some(named.as_bytes()))]).await?;
    let is_table: bool = found.try_get(0)?;
    let (is_there, fits): (bool, bool) = (found.try_get(1)?, found.try_get(2)?);
    let (is_key, deferrable): (bool, Vec<String>) = (found.try_get(3)?, found.try_get(4)?);
    if !is_table {
        return Ok(Some(letter::of_a_view(table)));
    }
    let mut changes = Vec::new();
    if !is_there {
        changes.push("add column uid text unique".to_owned());
    } else if !fits {
        changes.push("alter column uid type text collate \"default\" using uid::text".to_owned());
    }
    // With a constraint that is checked at COMMIT, nothing can be skipped.
    changes.extend(deferrable.iter().map(|it| format!("drop constraint {}", quoted(it, '"'))));
    if is_there && !is_key {
        changes.push("add unique (uid)".to_owned());
    }
    let sql = format!("alter table {named} {}", changes.join(", "));
    Ok((!changes.is_empty()).then(|| letter::without_uids(table, &sql)))
}

/// Returns the statement that writes a dead letter that does not exist yet. If another session has written it and not
/// committed it yet, it waits for that session.
fn insert_once(table: &str, [at, row, code, message, uid]: [&str; 5]) -> String {
    let named = table_sql(table);
    format!(
        "insert into {named} (at, \"row\", code, message, uid) values ({at}::bigint, {row}::bytea, \
         {code}::text, {message}::text, {uid}::text) on conflict (uid) do nothing"
    )
}

pub(super) async fn write_dead_letters(
    client: &Client,
    table: &str,
    letters: &[Letter<'_>],
) -> Result<(), Fault> {
    let told = |error: Error| match fault::of(&error) {
        // The key was dropped, or is deferrable.
        fault if matches!(&*fault.code, "42P10" | "55000") => {
            Fault { blame: Blame::Statement, ..fault }
        }
        fault => fault,
    };
    let sql = insert_once(table, ["$1", "$2", "$3", "$4", "$5"]);
    let statement = client.prepare(&sql).await.map_err(told)?;
    for Letter { uid, at_us, row, code, text } in letters {
        let mut bytes = Vec::with_capacity(2 + 2 * row.len());
        push_hexadecimal(&mut bytes, row);
        // The text of the database contains no NUL, but the daemon may have shortened it.
        let text = text.replace('\0', " ").into_bytes();
        let uid = uid.clone().into_bytes();
        let values = [at_us.to_string().into_bytes(), bytes, code.as_bytes().to_vec(), text, uid];
        let written = values.iter().map(|value| Text(Some(value)));
        let written = client.execute_raw(&statement, written).await.map_err(told)?;
        if written == 0 && !is_there(client, table, &values[4]).await.map_err(told)? {
            return Err(Fault::ignored());
        }
    }
    Ok(())
}

/// Whether the dead letter with this uid is in the table.
async fn is_there(client: &Client, table: &str, uid: &[u8]) -> Result<bool, Error> {
    let sql = format!("select from {} where uid = $1::text", table_sql(table));
    Ok(client.query_opt(&sql, &[&Text(Some(uid))]).await?.is_some())
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
