//! Finds tables without transactions that a statement may write.
//!
//! A rollback does not undo writes to such a table. A table that is named as the target is rejected. Views, triggers
//! and statements of other forms may only read a table, so such tables are reported as doubts. The rollback itself
//! reports whether one was changed.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use sql::{PlainWrite, mentions};

use super::fault::refused;
use super::schema::{apart, named};
use crate::error::{is_elsewhere, lack};
use crate::{Action, DatabaseError, Job};

/// The engines whose transactions are reliable. Other engines declare transactions but do not guarantee them: FEDERATED
/// and SPIDER store rows on another server, which may commit them independently, for example after a reconnect.
const KNOWN: &str = "'innodb', 'rocksdb', 'tokudb'";

/// A table that has no transactions, or whose transactions are those of another server.
struct Table {
    schema: String,
    name: String,
    engine: String,
    is_here: bool,
}

impl Table {
    /// Whether `sql` may name the table: with its name alone if it belongs to the database in use, otherwise with its
    /// schema.
    fn is_in(&self, sql: &str) -> bool {
        mentions(sql, &self.name) && (self.is_here || mentions(sql, &self.schema))
    }
}

/// The consequences of the engines of the tables for a job.
#[derive(Debug, Default)]
pub(super) struct Engines {
    /// One sentence for each table without transactions that a view, a trigger or an unparsed statement may write.
    pub(super) doubts: Vec<String>,
    /// The error of the dead-letter table, if it has no transactions.
    pub(super) unfit: Option<DatabaseError>,
}

/// Finds the tables without transactions that `job` may write.
///
/// # Errors
/// Returns an error if the target table has no transactions.
pub(super) async fn check(
    connection: &mut Conn,
    server: &str,
    job: &Job,
) -> Result<Engines, DatabaseError> {
    let (action, dead) = (&job.action, job.dead.as_deref());
    let (sql, target) = match action {
        Action::Query(_) => return Ok(Engines::default()),
        Action::Insert { table, .. } => ("", Some(table.clone())),
        Action::Statement(sql) => {
            let table = PlainWrite::of(sql).map(|write| match named(&write) {
                (Some(schema), name) => format!("{schema}.{name}"),
                (None, name) => name.to_owned(),
            });
            (&**sql, table)
        }
    };
    let told = |error: Error| refused(server, &error);
    let known = format!(
        "select t.table_schema, t.table_name, t.engine, coalesce(t.table_schema = database(), 0) \
         from information_schema.tables t \
         join information_schema.engines e on e.engine = t.engine \
         where (e.transactions <> 'YES' or lower(t.engine) not in ({KNOWN})) and t.table_schema not in \
         ('information_schema', 'mysql', 'performance_schema', 'sys')"
    );
    let tables: Vec<(String, String, String, bool)> =
        connection.query(known).await.map_err(told)?;
    let tables = tables.into_iter();
    let tables: Vec<Table> = tables
        .map(|(schema, name, engine, is_here)| Table { schema, name, engine, is_here })
        .collect();
    if tables.is_empty() {
        return Ok(Engines::default());
    }
    let engine_of = |target: &str| {
        let (schema, name) = apart(target);
        let is_it = |table: &&Table| {
            table.name == name && schema.map_or(table.is_here, |schema| table.schema == schema)
        };
        tables.iter().find(is_it).map(|table| table.engine.clone())
    };
    if let Some((table, engine)) = target.as_ref().and_then(|it| Some((it, engine_of(it)?))) {
        let is_statement = matches!(action, Action::Statement(_));
        return Err(DatabaseError::Engine { table: table.clone(), engine, is_statement });
    }
    // A dead letter that is retried is removed before its row is stored.
    let unfit = dead.and_then(|it| Some((it, engine_of(it)?))).map(|(table, engine)| {
        let lack = lack(&engine);
        let text = format!("it has the engine {engine}, which {lack}: use InnoDB");
        DatabaseError::Dead(table.to_owned(), text.into())
    });
    let mut texts = vec![sql.to_owned()];
    // The definitions of the views and triggers that a text names, recursively.
    let behind = "select table_schema, table_name, table_schema = database(), view_definition from information_schema.views \
                  union all select event_object_schema, event_object_table, \
                  event_object_schema = database(), action_statement \
                  from information_schema.triggers";
    let behind: Vec<(String, String, bool, Option<String>)> =
        connection.query(behind).await.map_err(told)?;
    let mut behind: Vec<(Table, String)> = behind
        .into_iter()
        .map(|(schema, name, is_here, text)| {
            (Table { schema, name, engine: String::new(), is_here }, text.unwrap_or_default())
        })
        .collect();
    // Nothing is written to an unusable dead-letter table.
    let named = target.as_deref().into_iter().chain(dead.filter(|_| unfit.is_none()));
    texts.extend(named.map(|table| table.replace('.', " . ")));
    let mut next = 0;
    while let Some(text) = texts.get(next).cloned() {
        let (named, others): (Vec<_>, Vec<_>) =
            behind.into_iter().partition(|(table, _)| table.is_in(&text));
        behind = others;
        texts.extend(named.into_iter().map(|(_, text)| text));
        next += 1;
    }
    let may_write = |table: &&Table| texts.iter().any(|text| table.is_in(text));
    Ok(Engines { doubts: tables.iter().filter(may_write).map(doubt).collect(), unfit })
}

fn doubt(table: &Table) -> String {
    let (name, engine, lack) = (&table.name, &table.engine, lack(&table.engine));
    let end = match is_elsewhere(engine) {
        true => "rows may be stored twice",
        false => "the batch ends without a known outcome",
    };
    format!(
        "the table `{name}` has the engine {engine}, which {lack}: where rows are written there by this pool \
         and one of a batch is rejected, {end}; use InnoDB"
    )
}
