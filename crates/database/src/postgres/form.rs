//! The definitions of the columns that rows are written to, as the server describes them with each batch, and whether
//! rules rewrite the insert.
//!
//! After an ALTER TABLE the server plans prepared statements again by itself, and rounds or truncates values that were
//! checked against the previous types of the columns. A statement that is prepared after the rows, in the same round
//! trip, describes the current columns: the rows hold a lock, so the columns cannot change until the transaction ends.
//! The statement is never run, and requires no right to read the table.

use futures_util::future::join;
use sql::listed;
use tokio_postgres::{Client, Error, Statement};

use super::fault;
use super::schema::{HAS_RULES, table_sql, target};
use super::wire::Text;
use crate::Action;
use crate::fault::Fault;

/// The columns of a table, and the statement that describes them.
#[derive(Debug)]
pub(super) struct Form {
    sql: String,
    columns: Vec<Described>,
    /// The last statement that described them. It is closed with the next rows: after these rows, the answer to closing
    /// it would arrive between this answer and that to COMMIT.
    last: Option<Statement>,
    /// Checks whether a rule may rewrite the insert into this table. Rows are counted together while there is no such
    /// rule.
    rules: Option<(Statement, String)>,
}

/// The type of a column and the number that contains its length, or decimal places.
type Described = (u32, i32);

impl Form {
    /// Returns the form of the columns that `action` writes to. `None` if they are unknown.
    pub(super) async fn of(client: &Client, action: &Action) -> Result<Option<Self>, Error> {
        let Some((table, columns)) = target(client, action).await? else { return Ok(None) };
        let sql = format!("select {} from {table}", listed(&columns, '"'));
        match client.prepare(&sql).await {
            Ok(it) => Ok(Some(Self { sql, columns: columns_of(&it), last: Some(it), rules: None })),
            // The statement itself reports the error.
            Err(error) if error.as_db_error().is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Treats a rule on `table` as a change as well.
    pub(super) async fn watch_rules(&mut self, client: &Client, table: &str) -> Result<(), Error> {
        self.rules = Some((client.prepare(HAS_RULES).await?, table_sql(table)));
        Ok(())
    }

    /// Whether the columns have changed, or a rule was created.
    pub(super) async fn has_changed(&mut self, client: &Client) -> Result<bool, Fault> {
        self.last = None;
        let has_rules = async {
            let Some((statement, table)) = &self.rules else { return Ok(false) };
            let rows = client.query(statement, &[&Text(Some(table.as_bytes()))]).await?;
            Ok(rows.first().is_none_or(|row| row.get(0)))
        };
        let (now, has_rules) = join(client.prepare(&self.sql), has_rules).await;
        let told = |error: Error| fault::of(&error);
        let (now, has_rules) = (now.map_err(told)?, has_rules.map_err(told)?);
        let has_changed = has_rules || columns_of(&now) != self.columns;
        self.last = Some(now);
        Ok(has_changed)
    }
}

fn columns_of(statement: &Statement) -> Vec<Described> {
    statement.columns().iter().map(|it| (it.type_().oid(), it.type_modifier())).collect()
}
