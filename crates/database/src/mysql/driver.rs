//! The settings of a server and its statement.

use std::sync::Arc;

use crate::{Action, Job, Server};

/// The common data of all connections of a pool.
#[derive(Debug)]
pub(super) struct MysqlDriver {
    pub(super) server: Server,
    pub(super) job: Arc<Job>,
    /// The text of a statement or a query. For an insert, a text is made for each number of rows.
    pub(super) sql: String,
    /// The names of the parameters, in their order.
    pub(super) names: Vec<String>,
}

impl MysqlDriver {
    /// Returns the statement or query as it is written in the settings.
    pub(super) fn source(&self) -> &str {
        match &self.job.action {
            Action::Insert { .. } => "",
            Action::Statement(sql) => sql,
            Action::Query(query) => &query.sql,
        }
    }
}
