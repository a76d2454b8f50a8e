//! What a check finds: how many requests ended in which way, and what must not be.

use std::collections::BTreeMap;

/// Requests by how they ended, for the report of many runs.
pub(crate) type Ends = BTreeMap<&'static str, u64>;

/// What a check found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) ends: Ends,
    pub(crate) violations: Vec<String>,
}
