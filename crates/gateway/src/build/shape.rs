//! What the workers of a pool take from listeners of HTTP.

use std::sync::Arc;

use settings::{Action, RowFormat};

use flow::query_record::QueryRecord;
use flow::request_shape::RequestShape;

/// What a database takes that does this.
pub(super) fn of_action(action: &Action) -> RequestShape {
    match action {
        Action::Query(query) => {
            let content_type = match query.rows {
                RowFormat::Json => "application/json",
                RowFormat::Lines => "application/x-ndjson",
                RowFormat::Tsv => "text/tab-separated-values; charset=utf-8",
            };
            let lines = query.rows != RowFormat::Json;
            let question = QueryRecord::new(query.path.as_deref(), content_type, lines);
            RequestShape::Records(Arc::new(question))
        }
        Action::Insert { .. } | Action::Statement(_) => RequestShape::Bodies,
    }
}
