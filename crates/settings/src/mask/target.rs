//! The parts of the address of a database that may be a password.

use std::iter;
use std::ops::Range;

use crate::values::is_sqlite;

/// Returns the parts of the address of a database that may be a password. A password may contain any character, also
/// those that should have been escaped, so everything from the first `:` of the user to the last `@` counts as a part
/// of it, and everything behind a `?`.
pub(super) fn hidden(value: &str) -> Vec<Range<usize>> {
    let end = value.len();
    let whole_from = |from| iter::once(from..end).collect();
    let Some((scheme, rest)) = value.split_once(':') else {
        return value.find(['@', '?', '\\']).map_or_else(Vec::new, |_| whole_from(0));
    };
    let is_path = is_sqlite(scheme);
    let is_address = rest.starts_with("//");
    // A `:` or an `@` may be escaped.
    if !is_path && (value.contains('\\') || !is_address && !value.contains('@')) {
        return whole_from(scheme.len() + 1);
    }
    if !is_address && value.contains('@') {
        return whole_from(0);
    }
    let mut parts: Vec<Range<usize>> = value.find('?').map(|at| at + 1..end).into_iter().collect();
    if is_address {
        let start = scheme.len() + "://".len();
        // Without an `@`, the value may have been cut at a quote of the password.
        let host = value.rfind('@').unwrap_or(end);
        let colon = value.get(start..host).and_then(|user| user.find(':'));
        parts.extend(colon.map(|colon| start + colon + 1..host));
    }
    parts
}
