//! Why a configuration cannot be served.

use std::fmt;

/// Why a configuration cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A listener or a `then` names a pool that is not there. `settings` checks this first.
    NoPool(String),
    /// A listener was given no socket.
    NoSocket(String),
    /// The system draws nothing for what is to be secret, for this reason.
    NoSecret(String),
    /// Secrets in the environment of this process cannot be protected, for this reason.
    Unprotected(String),
    /// The file of a fallback response cannot be read.
    Fallback {
        /// The pool.
        pool: String,
        /// Why.
        why: String,
    },
    /// What the cookies of a pool are made with cannot be had.
    Cookie {
        /// The pool.
        pool: String,
        /// Why.
        why: String,
    },
    /// What a route answers with, or a secret of it, cannot be had.
    Route {
        /// The listener.
        listener: String,
        /// The keys below the listener that name it.
        place: Vec<String>,
        /// Why.
        why: String,
    },
    /// A pool has had more servers since the daemon started than it may: a place is kept for each.
    Servers(String),
    /// A variable that is passed to the programs of a pool is not set.
    Variable {
        /// The pool.
        pool: String,
        /// Why it cannot be passed.
        why: String,
    },
    /// `reset` of a pool is no request that its programs reply to.
    Reset {
        /// The pool.
        pool: String,
        /// Why.
        why: &'static str,
    },
    /// A server of a pool has a name, and no address is found for it.
    Name {
        /// The pool.
        pool: String,
        /// The name, with its port.
        name: String,
        /// Why.
        why: String,
    },
    /// The handlers of a pool cannot be made.
    Handler {
        /// The pool.
        pool: String,
        /// Why.
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
                write!(f, "pool `{pool}` has had {most} servers: restart the daemon for shard_link")
            }
            Self::Name { pool, name, why } => {
                write!(f, "pool `{pool}`: `{name}` cannot be looked up: {why}")
            }
            Self::Reset { pool, why } => {
                write!(f, "pool `{pool}`: `reset` is no request that gets a reply: {why}")
            }
            Self::Handler { pool, why }
            | Self::Fallback { pool, why }
            | Self::Variable { pool, why }
            | Self::Cookie { pool, why } => {
                write!(f, "pool `{pool}`: {why}")
            }
        }
    }
}

impl std::error::Error for BuildError {}
