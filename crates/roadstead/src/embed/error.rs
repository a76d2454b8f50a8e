//! Errors of an embedded data plane.

use std::{fmt, io};

use gateway::BuildError;
use settings::{Diagnostics, Remark};

use crate::binding::BindError;

/// Why the data plane could not start.
#[derive(Debug)]
pub enum EmbedError {
    /// A listener has no socket.
    Bind(BindError),
    /// The workers of a pool cannot be created.
    Build(BuildError),
    /// `[cluster]` cannot be used.
    Cluster(String),
    /// Programs cannot be started, because [`Embed::init`](super::Embed::init) was not called first in `main`.
    Programs(spawn::SpawnError),
    /// The configuration uses an option that an embedded data plane does not support.
    Unsupported(&'static str),
    /// No pool uses this registered handler.
    UnusedHandler(String),
    /// A handler cannot be opened.
    Handler {
        /// The name of the handler.
        name: String,
        /// The cause.
        why: String,
    },
    /// The system could not create a thread or the event loop.
    System(io::Error),
}

impl fmt::Display for EmbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::Cluster(message) => f.write_str(message),
            Self::Programs(error) => write!(f, "no program can be started: {error}"),
            Self::Unsupported(what) => {
                write!(f, "{what} is not supported by an embedded data plane; remove it")
            }
            Self::UnusedHandler(name) => {
                write!(f, "no pool has `handler = \"{name}\"`, but such a handler is registered")
            }
            Self::Handler { name, why } => write!(f, "handler `{name}` cannot be opened: {why}"),
            Self::System(error) => write!(f, "the data plane cannot run: {error}"),
        }
    }
}

impl std::error::Error for EmbedError {}

/// Why a reload was rejected. The running configuration is kept.
#[derive(Debug)]
pub enum ReloadError {
    /// Every error in the text, with its location and a suggested fix.
    Invalid(Diagnostics),
    /// The options whose change needs a restart, or the option that cannot be built.
    Rejected(Vec<Remark>),
    /// The configuration uses an option that an embedded data plane does not support.
    Unsupported(&'static str),
    /// The data plane has ended or is about to end.
    Ended,
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(diagnostics) => diagnostics.fmt(f),
            Self::Rejected(remarks) => {
                f.write_str("the reload was rejected: nothing changed")?;
                remarks.iter().try_for_each(|Remark { path, message }| {
                    write!(f, "\n`{}`: {message}", path.join("."))
                })
            }
            Self::Unsupported(what) => EmbedError::Unsupported(what).fmt(f),
            Self::Ended => f.write_str("the data plane is about to end"),
        }
    }
}

impl std::error::Error for ReloadError {}

/// The data plane was not ready in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReady {
    /// What is missing, one sentence per pool.
    pub missing: Vec<String>,
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the data plane is not ready: {}", self.missing.join("; "))
    }
}

impl std::error::Error for NotReady {}
