//! The configuration of a finger listener.

use std::time::Duration;

use crate::options::{OptionRow, Options, Value};

/// The options of a finger listener.
pub const OPTIONS: &[OptionRow] = &[
    OptionRow {
        name: "line_max",
        default: Value::Count(512),
        meaning: "Maximum length of the line of a query in bytes, excluding its end.",
    },
    OptionRow {
        name: "read_timeout_ms",
        default: Value::Count(10_000),
        meaning: "Maximum time from the first byte of a line to its end, in milliseconds; 0: no limit.",
    },
];

/// The configuration of a finger listener.
#[derive(Clone, Copy, Debug)]
pub struct FingerConfig {
    /// The maximum number of bytes of a line, excluding its end.
    pub(super) line_max: usize,
    /// The maximum time from the first byte of a line to its end.
    pub(super) read_timeout: Option<Duration>,
}

impl FingerConfig {
    /// Creates the configuration from these [`OPTIONS`].
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let read_timeout = Duration::from_millis(options.count("read_timeout_ms"));
        Self {
            line_max: usize::try_from(options.count("line_max")).unwrap_or(usize::MAX),
            read_timeout: (!read_timeout.is_zero()).then_some(read_timeout),
        }
    }
}
