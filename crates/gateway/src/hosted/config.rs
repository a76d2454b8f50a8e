//! What programs that serve HTTP are started with and how they are asked.

use std::sync::Arc;

use settings::HttpSocket;

use crate::programs::ProgramConfig;
use crate::servers::ServersConfig;

/// Programs that serve HTTP.
#[derive(Clone, Debug)]
pub(crate) struct HostedConfig {
    /// What they are started with.
    pub(crate) program: Arc<ProgramConfig>,
    /// How they are asked. They have no address before they start.
    pub(crate) servers: ServersConfig,
    /// Where they serve.
    pub(crate) socket: HttpSocket,
}
