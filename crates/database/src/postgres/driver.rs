//! The settings of a server and its statement.

use std::sync::Arc;

use sql::Dialect;

use crate::{DatabaseError, Job, Server};

/// The statement in the form that the server accepts.
#[derive(Debug, Default)]
pub(super) struct StatementText {
    pub(super) sql: String,
    /// The statement as it is written in the settings.
    pub(super) source: String,
    /// The names of its parameters, in their order.
    pub(super) names: Vec<String>,
}

impl StatementText {
    pub(super) fn of(sql: &str, verbs: &[&str]) -> Result<Self, DatabaseError> {
        sql::check_verb(sql, verbs)?;
        let source = sql.to_owned();
        let (sql, names) = sql::rewrite(sql, Dialect::Dollar)?;
        Ok(Self { sql, source, names })
    }

    /// Returns the byte of the source that corresponds to this character, counted from 1, of the text that the server
    /// received.
    pub(super) fn origin(&self, letter: u32) -> Option<usize> {
        let (at, _) = self.sql.char_indices().nth(usize::try_from(letter).ok()?.checked_sub(1)?)?;
        Some(sql::origin(&self.source, Dialect::Dollar, at))
    }

    /// Returns the byte of the source where this parameter is.
    pub(super) fn parameter(&self, name: &str) -> Option<usize> {
        sql::parameter(&self.source, Dialect::Dollar, name)
    }
}

/// The common data of all connections of a pool.
#[derive(Debug)]
pub(super) struct PostgresDriver {
    pub(super) server: Server,
    pub(super) job: Arc<Job>,
    /// The text of a statement or a query. The text of an insert is made from the definition of the table.
    pub(super) text: StatementText,
}
