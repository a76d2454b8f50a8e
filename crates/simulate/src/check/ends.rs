//! The result of a check: the number of requests by how they ended, and violations.

use std::collections::BTreeMap;

/// The number of requests by how they ended, for the summary of many runs.
pub(crate) type Ends = BTreeMap<&'static str, u64>;

/// The result of a check.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) ends: Ends,
    pub(crate) violations: Vec<String>,
}
