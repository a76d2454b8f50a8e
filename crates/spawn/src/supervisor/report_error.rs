//! Error messages of the supervisor.

use std::io::{self, Write};

/// Writes a message to standard error. This is the standard error of the daemon and may be closed.
pub(super) fn report_error(what: &str) {
    let _ = writeln!(io::stderr(), "roadstead supervisor: {what}");
}
