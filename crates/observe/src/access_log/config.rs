//! What the access log consists of, and which listeners are in it.

use exchange::LogFormat;

/// What the lines of the access log consist of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogConfig {
    pub format: LogFormat,
    /// Names of header fields of HTTP requests that are kept, in lower case. No other is.
    pub fields: Vec<String>,
}

/// A listener whose requests are in the access log.
#[derive(Debug)]
pub struct LoggedListener {
    pub name: String,
    /// Its requests have a status.
    pub speaks_http: bool,
}
