//! The configuration of programs that serve HTTP.

use std::sync::Arc;

use settings::HttpSocket;

use crate::programs::ProgramConfig;
use crate::upstream::UpstreamConfig;

/// The configuration of a pool of programs that serve HTTP.
#[derive(Clone, Debug)]
pub struct SpawnedHttpConfig {
    /// How the programs are started.
    pub program: Arc<ProgramConfig>,
    /// How requests are sent to them. Their addresses are assigned at the start.
    pub servers: UpstreamConfig,
    /// The kind of socket that they serve on.
    pub socket: HttpSocket,
}
