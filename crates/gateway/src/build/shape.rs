//! The form in which the workers of a pool accept requests of HTTP listeners.

use std::sync::Arc;

use settings::{Action, OutputFormat};

use flow::query_record::QueryRecord;
use flow::request_shape::RequestShape;

/// Returns the form for a database pool with this action.
pub(super) fn of_action(action: &Action) -> RequestShape {
    match action {
        Action::Query(query) => {
            let content_type = match query.output_format {
                OutputFormat::Json => "application/json",
                OutputFormat::Lines => "application/x-ndjson",
                OutputFormat::Tsv => "text/tab-separated-values; charset=utf-8",
            };
            let lines = query.output_format != OutputFormat::Json;
            let question = QueryRecord::new(query.http_path.as_deref(), content_type, lines);
            RequestShape::Records(Arc::new(question))
        }
        Action::Insert { .. } | Action::Statement(_) => RequestShape::Bodies,
    }
}
