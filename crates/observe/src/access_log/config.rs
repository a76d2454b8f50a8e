//! The format of the access log, and the listeners whose requests it contains.

use exchange::LogFormat;

/// The format of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogConfig {
    /// The format of a line.
    pub format: LogFormat,
    /// The header fields of HTTP requests that are logged, in lower case.
    pub fields: Vec<String>,
}

/// A listener whose requests are in the access log.
#[derive(Debug)]
pub struct LoggedListener {
    /// The configured name.
    pub name: String,
    /// Whether its requests have an HTTP status.
    pub speaks_http: bool,
}
