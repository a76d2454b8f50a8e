//! Creates toys by their names: one match arm for each protocol and each kind of worker.

use std::fmt;
use std::sync::Arc;

use crate::echo;
use crate::finger;
use crate::options::{OptionError, Options};
use backend::workers::WorkersConfig;
use frontend::protocol::ProtocolConfig;

/// The implementation with a given name.
pub enum Toy {
    /// A client protocol.
    Protocol(Arc<dyn ProtocolConfig>),
    /// A kind of worker.
    Workers(WorkersConfig),
}

impl fmt::Debug for Toy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(config) => config.fmt(f),
            Self::Workers(_) => f.write_str("Workers"),
        }
    }
}

/// Why a toy cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToyError {
    /// No toy has this name.
    Unknown(String),
    /// Its options are not accepted.
    Options(OptionError),
}

impl fmt::Display for ToyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "there is no toy `{name}`"),
            Self::Options(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ToyError {}

/// Creates the toy with this name, with its options as TOML.
///
/// # Errors
/// No toy has this name, or its options are not accepted.
pub fn toy(name: &str, options: &str) -> Result<Toy, ToyError> {
    let read = |rows| Options::read(rows, options).map_err(ToyError::Options);
    Ok(match name {
        "echo" => {
            let config = echo::EchoConfig::new(&read(echo::OPTIONS)?);
            Toy::Workers(WorkersConfig::Other(Box::new(config)))
        }
        "finger" => Toy::Protocol(Arc::new(finger::FingerConfig::new(&read(finger::OPTIONS)?))),
        _ => return Err(ToyError::Unknown(name.to_owned())),
    })
}
