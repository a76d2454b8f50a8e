// tidy: table
//! The options of the access log.

use super::declare::any;
use super::shape::{Default, Kind, Opt};

use Default::{Is, None as Nothing, Required};

pub(super) const ACCESS_LOG: &[Opt] = &[
    any(
        "to",
        Kind::Text,
        Required,
        "Where it goes: `file:PATH`, `stdout` or `stderr`. SIGHUP opens the file anew.",
    ),
    any(
        "format",
        Kind::Template,
        Is("json"),
        "How a line looks: `json`, `combined`, or a template in which `{client}` and others stand for values.",
    ),
    any(
        "fields",
        Kind::Names,
        Nothing,
        "Fields of HTTP requests that `json` shows. No other is kept, and so no secret that is not named.",
    ),
];
