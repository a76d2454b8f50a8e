//! What the workers of a pool take from listeners of HTTP.

use std::sync::Arc;

use settings::{Action, Framing, RowFormat, Worker};

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
    /// What such workers take. Where none of it fits, the settings let no listener of HTTP there.
    pub(crate) fn of(worker: &Worker) -> Self {
        match worker {
            Worker::Program(program) if program.framing == Framing::Http => Self::Messages,
            Worker::Program(_) => Self::Objects,
            Worker::Servers(_) | Worker::Handler(_) => Self::Messages,
            Worker::Database(database) => match &database.action {
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
            },
        }
    }
}
