//! What the settings say of a server and its statement.

use std::sync::Arc;

use crate::{Action, Job, Server};

/// What every connection of a pool has in common.
#[derive(Debug)]
pub(super) struct MysqlDriver {
    pub(super) server: Server,
    pub(super) job: Arc<Job>,
    /// Of a statement or a query; an insert is made for each number of rows.
    pub(super) sql: String,
    /// Of the parameters, in their order.
    pub(super) names: Vec<String>,
}

impl MysqlDriver {
    /// The statement or query as the settings have it.
    pub(super) fn source(&self) -> &str {
        match &self.job.action {
            Action::Insert { .. } => "",
            Action::Statement(sql) => sql,
            Action::Query(query) => &query.sql,
        }
    }
}
