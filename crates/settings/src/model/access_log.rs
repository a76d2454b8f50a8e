//! The access log: where it goes and what is in its lines.

use std::path::PathBuf;

pub use exchange::{LogFormat, LogPiece, LogValue};

/// The access log (`[access_log]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where it goes.
    pub to: LogTarget,
    /// How its lines look.
    pub format: LogFormat,
    /// Names of fields of HTTP requests that are kept for it, in lower case. No other is.
    pub fields: Vec<String>,
}

/// Where a log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// The end of a file, which is made if it is not there.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
