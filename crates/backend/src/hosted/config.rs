//! What programs that serve HTTP are started with and how they are asked.

use std::sync::Arc;

use settings::HttpSocket;

use crate::programs::ProgramConfig;
use crate::servers::ServersConfig;

/// Programs that serve HTTP.
#[derive(Clone, Debug)]
pub struct HostedConfig {
    /// What they are started with.
    pub program: Arc<ProgramConfig>,
    /// How they are asked. They have no address before they start.
    pub servers: ServersConfig,
    /// Where they serve.
    pub socket: HttpSocket,
}
