//! The configuration of an echo pool.

use crate::options::{OptionRow, Options, Value};

/// The options of an echo pool.
pub const OPTIONS: &[OptionRow] = &[
    OptionRow {
        name: "times",
        default: Value::Count(1),
        meaning: "How often a reply repeats the request, separated by spaces.",
    },
    OptionRow {
        name: "shout",
        default: Value::Switch(false),
        meaning: "Whether letters of ASCII are returned in upper case.",
    },
];

/// The configuration of an echo pool.
#[derive(Clone, Copy, Debug)]
pub struct EchoConfig {
    /// How often a reply repeats its request.
    pub(super) times: u64,
    /// Whether letters are returned in upper case.
    pub(super) shouts: bool,
}

impl EchoConfig {
    /// Creates the configuration from these [`OPTIONS`].
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self { times: options.count("times"), shouts: options.switch("shout") }
    }
}
