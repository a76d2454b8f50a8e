//! What the keeper says when something is wrong.

use std::io::{self, Write};

/// Says something on standard error, which is the daemon's, and may be closed.
pub(super) fn complain(what: &str) {
    let _ = writeln!(io::stderr(), "roadstead keeper: {what}");
}
