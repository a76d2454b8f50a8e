//! Constructs toys by their names: one arm for each protocol and each kind of worker.

use std::fmt;
use std::sync::Arc;

use crate::echo;
use crate::finger;
use crate::options::{OptionError, Options};
use backend::workers::WorkersConfig;
use frontend::protocol::ProtocolConfig;

/// What a name stands for.
pub enum Toy {
    /// What clients speak.
    Protocol(Arc<dyn ProtocolConfig>),
    /// Who answers.
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

/// Why a toy cannot be constructed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToyError {
    /// There is no toy of this name.
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

/// The toy of this name, with its options as TOML.
///
/// # Errors
/// When there is none, or its options are not accepted.
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
