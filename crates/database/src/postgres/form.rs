//! What the columns are like that rows go into, as the server describes them with each batch.
//!
//! A server plans prepared statements again by itself when a table was altered, and rounds or cuts values
//! that were judged by the types that the columns had before. A statement that is prepared behind the rows,
//! in the same round trip, says what the columns are now: the rows hold a lock, so that they stay so until
//! the transaction ends. It is never run, and takes no right to read the table.

use sql::listed;
use tokio_postgres::{Client, Error, Statement};

use super::fault;
use super::schema::table_sql;
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
}

/// A column's type and the number that has its length, or decimal places.
type Described = (u32, i32);

impl Form {
    /// The form of the columns that `action` writes to. None where they are not known.
    pub(super) async fn of(client: &Client, action: &Action) -> Result<Option<Self>, Error> {
        let Some((table, columns)) = action.target() else { return Ok(None) };
        let sql = format!("select {} from {}", listed(&columns, '"'), table_sql(&table));
        match client.prepare(&sql).await {
            Ok(it) => Ok(Some(Self { sql, columns: columns_of(&it), last: Some(it) })),
            // What is wrong with it is said of the statement itself.
            Err(error) if error.as_db_error().is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the columns are others now.
    pub(super) async fn has_changed(&mut self, client: &Client) -> Result<bool, Fault> {
        self.last = None;
        let now = client.prepare(&self.sql).await.map_err(|error| fault::of(&error))?;
        let has_changed = columns_of(&now) != self.columns;
        self.last = Some(now);
        Ok(has_changed)
    }
}

fn columns_of(statement: &Statement) -> Vec<Described> {
    statement.columns().iter().map(|it| (it.type_().oid(), it.type_modifier())).collect()
}
