//! What the settings say of a server and its statement.

use std::sync::Arc;

use sql::Dialect;

use crate::{DatabaseError, Job, Server};

/// The statement as the server takes it.
#[derive(Debug, Default)]
pub(super) struct StatementText {
    pub(super) sql: String,
    /// As the settings have it.
    pub(super) source: String,
    /// Of its parameters, in their order.
    pub(super) names: Vec<String>,
}

impl StatementText {
    pub(super) fn of(sql: &str, verbs: &[&str]) -> Result<Self, DatabaseError> {
        sql::check_verb(sql, verbs)?;
        let source = sql.to_owned();
        let (sql, names) = sql::rewrite(sql, Dialect::Dollar)?;
        Ok(Self { sql, source, names })
    }

    /// The byte of the source that became this letter, counted from 1, of what the server was given.
    pub(super) fn origin(&self, letter: u32) -> Option<usize> {
        let (at, _) = self.sql.char_indices().nth(usize::try_from(letter).ok()?.checked_sub(1)?)?;
        Some(sql::origin(&self.source, Dialect::Dollar, at))
    }

    /// The byte of the source where that parameter stands.
    pub(super) fn parameter(&self, name: &str) -> Option<usize> {
        sql::parameter(&self.source, Dialect::Dollar, name)
    }
}

/// What every connection of a pool has in common.
#[derive(Debug)]
pub(super) struct PostgresDriver {
    pub(super) server: Server,
    pub(super) job: Arc<Job>,
    /// Of a statement or a query; an insert is made of what the table is like.
    pub(super) text: StatementText,
}
