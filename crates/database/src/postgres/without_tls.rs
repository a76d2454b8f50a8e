//! Replaces TLS if it is not built in: no encrypted connection can be made.

/// Makes encrypted streams. No value of this type exists.
#[derive(Clone, Debug)]
pub(super) enum Rustls {}
