//! How many requests ended in which way.

use std::collections::BTreeMap;

/// Requests by how they ended, for the report of many runs.
pub(crate) type Ends = BTreeMap<&'static str, u64>;
