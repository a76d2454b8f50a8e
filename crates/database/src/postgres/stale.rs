//! Checks whether a statement still fits the columns that it was prepared for.
//!
//! PostgreSQL plans a prepared statement again when its tables have changed, but keeps the types of its parameters: a
//! value that fits the new type of a column is still parsed as the old type.

use std::sync::Arc;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Statement};

use super::{fault, schema};
use crate::fault::{Blame, Fault};
use crate::{Action, DatabaseError, Job};
use sql::column::Takes;

/// The source of a prepared statement, and the columns that it was prepared for.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) server: String,
    pub(super) job: Arc<Job>,
    /// The text of a statement or a query.
    pub(super) sql: String,
    /// The names of its parameters.
    pub(super) names: Vec<String>,
    pub(super) columns: Columns,
}

/// The columns that a statement was prepared for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Columns {
    /// An insert: its text contains the types of the columns.
    Insert(String),
    /// The types of its parameters, what these accept, and the columns that it returns.
    Statement(Vec<Type>, Vec<Takes>, Vec<(String, Type)>),
}

impl Columns {
    pub(super) fn of(statement: &Statement, takes: Vec<Takes>) -> Self {
        let columns = statement.columns().iter();
        let columns = columns.map(|it| (it.name().to_owned(), it.type_().clone())).collect();
        Self::Statement(statement.params().to_vec(), takes, columns)
    }
}

impl Prepared {
    /// Whether its columns have changed. A statement that can no longer be prepared counts as changed: opening a
    /// connection reports the error.
    pub(super) async fn is_stale(&self, client: &Client) -> Result<bool, Fault> {
        if let Action::Insert { table, columns, on_conflict } = &self.job.action {
            let plan = schema::insert(client, &self.server, table, columns, on_conflict).await;
            return match plan {
                Ok(plan) => Ok(Columns::Insert(plan.text()) != self.columns),
                Err(DatabaseError::Unreachable(_, text)) => Err(Fault::new(Blame::Lost, &text)),
                Err(_) => Ok(true),
            };
        }
        let known = async {
            let statement = client.prepare(&self.sql).await?;
            let (action, names) = (&self.job.action, &self.names);
            let (takes, _) = schema::takes_of_statement(client, action, names, &statement).await?;
            Ok(Columns::of(&statement, takes))
        };
        match known.await {
            Ok(columns) => Ok(columns != self.columns),
            Err(error) if fault::of(&error).answered => Ok(true),
            Err(error) => Err(fault::of(&error)),
        }
    }
}
