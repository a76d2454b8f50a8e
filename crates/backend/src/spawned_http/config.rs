//! What programs that serve HTTP are started with and how they are asked.

use std::sync::Arc;

use settings::HttpSocket;

use crate::programs::ProgramConfig;
use crate::upstream::UpstreamConfig;

/// Programs that serve HTTP.
#[derive(Clone, Debug)]
pub struct SpawnedHttpConfig {
    /// What they are started with.
    pub program: Arc<ProgramConfig>,
    /// How they are asked. They have no address before they start.
    pub servers: UpstreamConfig,
    /// Where they serve.
    pub socket: HttpSocket,
}
