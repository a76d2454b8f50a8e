//! What the columns are like that rows go into, as the server describes them with each batch, and whether rules
//! rewrite the insert.
//!
//! A server plans prepared statements again by itself when a table was altered, and rounds or cuts values
//! that were judged by the types that the columns had before. A statement that is prepared behind the rows,
//! in the same round trip, says what the columns are now: the rows hold a lock, so that they stay so until
//! the transaction ends. It is never run, and takes no right to read the table.

use futures_util::future::join;
use sql::listed;
use tokio_postgres::{Client, Error, Statement};

use super::fault;
use super::schema::{HAS_RULES, table_sql};
use super::wire::Text;
use crate::Action;
use crate::fault::Fault;

/// The columns of a table, and the statement that describes them.
#[derive(Debug)]
pub(super) struct Form {
    sql: String,
    columns: Vec<Described>,
    /// What described them last. It is closed with the next rows: behind these, the answer to that would
    /// come between us and the one to COMMIT.
    last: Option<Statement>,
    /// Whether a rule may rewrite the insert into this table, where rows are counted together as long as none
    /// does.
    rules: Option<(Statement, String)>,
}

/// A column's type and the number that has its length, or decimal places.
type Described = (u32, i32);

impl Form {
    /// The form of the columns that `action` writes to. None where they are not known.
    pub(super) async fn of(client: &Client, action: &Action) -> Result<Option<Self>, Error> {
        let Some((table, columns)) = action.target() else { return Ok(None) };
        let sql = format!("select {} from {}", listed(&columns, '"'), table_sql(&table));
        match client.prepare(&sql).await {
            Ok(it) => Ok(Some(Self { sql, columns: columns_of(&it), last: Some(it), rules: None })),
            // What is wrong with it is said of the statement itself.
            Err(error) if error.as_db_error().is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A rule on `table` is a change as well.
    pub(super) async fn watch_rules(&mut self, client: &Client, table: &str) -> Result<(), Error> {
        self.rules = Some((client.prepare(HAS_RULES).await?, table_sql(table)));
        Ok(())
    }

    /// Whether the columns are others now, or a rule was made.
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
