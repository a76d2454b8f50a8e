//! The state of the connection to the server.

/// The state of a replica's connection. Requests are answered from the table in every state.
///
/// ```text
///                     connected                 caught up, table walked
///   Connecting ──────────────────▶ CatchingUp ──────────────────────────▶ InSync
///                                    ▲  │  ▲                               │  │
///                          connected │  │  └── the epoch changed, a large ─┘  │
///                                    │  │      part of the table differs      │
///                                    │  ▼ disconnected                        │
///                                  Detached ◀─────────────────────────────────┘
///                                             disconnected, no acknowledgement
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There has been no connection since the start.
    Connecting,
    /// A snapshot, or the changes since the last connection, are read. Nothing is written.
    CatchingUp,
    /// Changes are read and written as they happen. Whether the contents agree is a matter of digests.
    InSync,
    /// The connection is lost. Bindings wait to be written.
    Detached,
}

impl State {
    /// The name in the admin API and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::CatchingUp => "catching-up",
            Self::InSync => "in-sync",
            Self::Detached => "detached",
        }
    }
}
