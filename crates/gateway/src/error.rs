//! Errors that prevent a configuration from being served.

use std::fmt;

/// Why a configuration cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A listener or a `then` names a pool that does not exist. `settings` checks this first.
    NoPool(String),
    /// No socket was passed for a listener.
    NoSocket(String),
    /// The system cannot provide random bytes for a secret. The text is the reason.
    NoSecret(String),
    /// Secrets in the environment of this process cannot be protected. The text is the reason.
    Unprotected(String),
    /// The file of a fallback response cannot be read.
    Fallback {
        /// The name of the pool.
        pool: String,
        /// The reason.
        why: String,
    },
    /// The secret for the cookies of a pool is not available.
    Cookie {
        /// The name of the pool.
        pool: String,
        /// The reason.
        why: String,
    },
    /// The response file or a secret of a route is not available.
    Route {
        /// The name of the listener.
        listener: String,
        /// The configuration keys below the listener that lead to the option.
        place: Vec<String>,
        /// The reason.
        why: String,
    },
    /// A pool has had too many servers since the daemon started: a place is reserved for each.
    Servers(String),
    /// A variable that is passed to the programs of a pool is not set.
    Variable {
        /// The name of the pool.
        pool: String,
        /// The reason.
        why: String,
    },
    /// The `reset` of a pool is not a request that its programs reply to.
    Reset {
        /// The name of the pool.
        pool: String,
        /// The reason.
        why: &'static str,
    },
    /// No address was found for a named server of a pool.
    Name {
        /// The name of the pool.
        pool: String,
        /// The name of the server, with its port.
        name: String,
        /// The reason.
        why: String,
    },
    /// The handlers of a pool cannot be created.
    Handler {
        /// The name of the pool.
        pool: String,
        /// The configuration keys below the pool that lead to the option.
        option: Vec<String>,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPool(name) => write!(f, "there is no pool `{name}`"),
            Self::NoSecret(why) => write!(f, "no secret can be drawn: {why}"),
            Self::Unprotected(why) => {
                write!(f, "secrets in the environment cannot be protected: {why}")
            }
            Self::NoSocket(name) => write!(f, "listener `{name}` was given no socket"),
            Self::Route { listener, place: _, why } => write!(f, "listener `{listener}`: {why}"),
            Self::Servers(pool) => {
                let most = crate::shared_upstreams::PLACES_MAX;
                write!(f, "pool `{pool}` has had {most} servers: restart the daemon to use more")
            }
            Self::Name { pool, name, why } => {
                write!(f, "pool `{pool}`: `{name}` cannot be looked up: {why}")
            }
            Self::Reset { pool, why } => {
                write!(f, "pool `{pool}`: `reset` is no request that gets a reply: {why}")
            }
            Self::Handler { pool, why, .. }
            | Self::Fallback { pool, why }
            | Self::Variable { pool, why }
            | Self::Cookie { pool, why } => {
                write!(f, "pool `{pool}`: {why}")
            }
        }
    }
}

impl std::error::Error for BuildError {}
