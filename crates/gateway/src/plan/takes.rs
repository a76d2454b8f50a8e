//! What the workers of a pool take from listeners of HTTP.

use std::sync::Arc;

use settings::{Action, RowFormat};

use crate::question::Question;

/// What a request of HTTP becomes for the workers of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// They speak HTTP.
    Messages,
    /// A record of its parameters.
    Records(Arc<Question>),
    /// A record, which is its body.
    Bodies,
    /// One JSON object, and their answer is another, or a text.
    Objects,
}

impl Takes {
    /// What a database takes that does this.
    pub(super) fn of_action(action: &Action) -> Self {
        match action {
            Action::Query(query) => {
                let content_type = match query.rows {
                    RowFormat::Json => "application/json",
                    RowFormat::Lines => "application/x-ndjson",
                    RowFormat::Tsv => "text/tab-separated-values; charset=utf-8",
                };
                let lines = query.rows != RowFormat::Json;
                let question = Question::new(query.path.as_deref(), content_type, lines);
                Self::Records(Arc::new(question))
            }
            Action::Insert { .. } | Action::Statement(_) => Self::Bodies,
        }
    }
}
