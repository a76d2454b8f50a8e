//! What the workers of a pool take from listeners of HTTP.

use std::sync::Arc;

use crate::question::Question;

/// What a request of HTTP becomes for the workers of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestShape {
    /// They speak HTTP.
    Messages,
    /// A record of its parameters.
    Records(Arc<Question>),
    /// A record, which is its body.
    Bodies,
    /// One JSON object, and their answer is another, or a text.
    Objects,
}
