//! Finds tables without transactions that a statement may write.
//!
//! A rollback does not undo writes to such a table. A table that is named as the target is rejected. Views, triggers
//! and statements of other forms may only read a table, so such tables are reported as doubts. The rollback itself
//! reports whether one was changed.

use std::collections::BTreeMap;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Value};
use sql::{PlainWrite, quoted};

use super::fault::refused;
use super::schema::{apart, named};
use crate::error::{is_elsewhere, lack};
use crate::{Action, DatabaseError, Job};

/// The engines whose transactions are reliable. Other engines declare transactions but do not guarantee them: FEDERATED
/// and SPIDER store rows on another server, which may commit them independently, for example after a reconnect.
const KNOWN: &str = "'innodb', 'rocksdb', 'tokudb'";

/// The maximum number of names in one query.
const NAMES_MAX: usize = 1000;

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
    let write = match action {
        Action::Statement(sql) => PlainWrite::of(sql, sql::Dialect::Question),
        Action::Insert { .. } | Action::Query(_) => None,
    };
    let (sql, target) = match action {
        Action::Query(_) => return Ok(Engines::default()),
        Action::Insert { table, .. } => ("", Some(apart(table))),
        Action::Statement(sql) => (&**sql, write.as_ref().map(named)),
    };
    let told = |error: Error| refused(server, &error);
    let mut catalog = Catalog::of(connection).await.map_err(told)?;
    if let Some(place @ (schema, name)) = target
        && let Some(engine) = catalog.unsafe_engine(place).await.map_err(told)?
    {
        let is_statement = matches!(action, Action::Statement(_));
        let table = schema.map_or_else(|| name.to_owned(), |schema| format!("{schema}.{name}"));
        return Err(DatabaseError::Engine { table, engine, is_statement });
    }
    let mut engines = Engines::default();
    let mut dead = dead.map(|table| (table, apart(table)));
    if let Some((table, place)) = dead
        && let Some(engine) = catalog.unsafe_engine(place).await.map_err(told)?
    {
        // A dead letter that is retried is removed before its row is stored.
        let text = format!("it has the engine {engine}, which {}: use InnoDB", lack(&engine));
        engines.unfit = Some(DatabaseError::Dead(table.to_owned(), text.into()));
        // Nothing is written to an unusable dead-letter table.
        dead = None;
    }
    let places = target.into_iter().chain(dead.map(|(_, place)| place));
    let places = places.map(|(schema, name)| {
        let schema = schema.map_or_else(String::new, |schema| format!("{}.", quoted(schema, '`')));
        format!("{schema}{}", quoted(name, '`'))
    });
    let texts = places.chain([sql.to_owned()]).collect();
    let found = catalog.named_by(texts).await.map_err(told)?;
    engines.doubts = found.iter().map(|(name, engine)| doubt(name, engine)).collect();
    Ok(engines)
}

/// The catalog of a server. A query without the name of a schema and those of tables would open every table of the
/// server.
struct Catalog<'c> {
    connection: &'c mut Conn,
    /// The schema that names without one refer to.
    here: String,
    schemas: Vec<String>,
    /// The engines without transactions, or whose transactions are those of another server.
    engines: Vec<String>,
}

impl<'c> Catalog<'c> {
    async fn of(connection: &'c mut Conn) -> Result<Self, Error> {
        let engines = format!(
            "select engine from information_schema.engines \
             where transactions <> 'YES' or lower(engine) not in ({KNOWN})"
        );
        let engines = connection.query(engines).await?;
        let schemas = "select schema_name from information_schema.schemata where schema_name not in \
                       ('information_schema', 'mysql', 'performance_schema', 'sys')";
        let schemas = connection.query(schemas).await?;
        let here: Option<Option<String>> = connection.query_first("select database()").await?;
        let here = here.flatten().unwrap_or_default();
        Ok(Self { connection, here, schemas, engines })
    }

    fn is_unsafe(&self, engine: &str) -> bool {
        self.engines.iter().any(|it| it.eq_ignore_ascii_case(engine))
    }

    /// Returns the engine of a table, if it has no transactions.
    async fn unsafe_engine(
        &mut self,
        (schema, name): (Option<&str>, &str),
    ) -> Result<Option<String>, Error> {
        let sql = "select engine from information_schema.tables where table_schema = ? and table_name = ?";
        let schema = schema.unwrap_or(&self.here);
        let engine: Option<Option<String>> =
            self.connection.exec_first(sql, (schema, name)).await?;
        Ok(engine.flatten().filter(|engine| self.is_unsafe(engine)))
    }

    /// Returns two columns of the rows of a catalog table whose column `of` is one of `names`.
    async fn rows(
        &mut self,
        (columns, table, schema, of): (&str, &str, &str, &str),
        here: &str,
        names: &[String],
    ) -> Result<Vec<(String, Option<String>)>, Error> {
        let mut rows = Vec::new();
        for names in names.chunks(NAMES_MAX) {
            let marks = vec!["?"; names.len()].join(", ");
            let sql = format!(
                "select {columns} from information_schema.{table} where {schema} = ? and {of} in ({marks})"
            );
            let values = [here].into_iter().chain(names.iter().map(String::as_str));
            let values: Vec<Value> = values.map(Value::from).collect();
            rows.extend(self.connection.exec(sql, values).await?);
        }
        Ok(rows)
    }

    /// Returns the names and engines of the tables without transactions that these texts name, or the definitions of
    /// views and triggers that they name, recursively.
    async fn named_by(&mut self, texts: Vec<String>) -> Result<BTreeMap<String, String>, Error> {
        let mut found = BTreeMap::new();
        // Names without a schema refer to the schema beside the text.
        let mut texts: Vec<(String, String)> =
            texts.into_iter().map(|text| (self.here.clone(), text)).collect();
        let mut next = 0;
        while let Some((home, text)) = texts.get(next).cloned() {
            next += 1;
            let names = sql::possible_names(&text);
            let is_named = |schema: &&String| {
                **schema == home || **schema == self.here || names.contains(&schema.to_lowercase())
            };
            let schemas: Vec<String> = self.schemas.iter().filter(is_named).cloned().collect();
            let names: Vec<String> = names.into_iter().collect();
            for schema in schemas {
                let tables = ("table_name, engine", "tables", "table_schema", "table_name");
                for (name, engine) in self.rows(tables, &schema, &names).await? {
                    if let Some(engine) = engine.filter(|engine| self.is_unsafe(engine)) {
                        found.insert(name, engine);
                    }
                }
                let views = ("table_name, view_definition", "views", "table_schema", "table_name");
                let mut behind = self.rows(views, &schema, &names).await?;
                let (of, table) = ("event_object_schema", "event_object_table");
                let triggers = ("trigger_name, action_statement", "triggers", of, table);
                behind.extend(self.rows(triggers, &schema, &names).await?);
                for text in behind.into_iter().filter_map(|(_, text)| text) {
                    let text = (schema.clone(), text);
                    if !texts.contains(&text) {
                        texts.push(text);
                    }
                }
            }
        }
        Ok(found)
    }
}

fn doubt(name: &str, engine: &str) -> String {
    let lack = lack(engine);
    let end = match is_elsewhere(engine) {
        true => "rows may be stored twice",
        false => "the batch ends without a known outcome",
    };
    format!(
        "the table `{name}` has the engine {engine}, which {lack}: where rows are written there by this pool \
         and one of a batch is rejected, {end}; use InnoDB"
    )
}
