//! The configuration of a listener.
//!
//! What it depends on: validated settings. What it must never depend on: a connection.

use std::sync::Arc;

use crate::connection::ConnectionConfig;
use crate::protocol::ProtocolConfig;

mod frames;
mod http;
mod raw;

pub use frames::FramesConfig;
pub use http::HttpConfig;
pub use raw::{ConnectConfig, DatagramConfig};

/// The configuration of a listener.
#[derive(Debug)]
pub struct ListenerConfig {
    /// The configured name.
    pub name: String,
    /// The maximum number of connections.
    pub connections_max: u32,
    /// The maximum size of a datagram, in bytes.
    pub datagram_max: usize,
    /// Limits per client address.
    pub addresses: settings::Addresses,
    /// The part that each connection keeps.
    pub connection: Arc<ConnectionConfig>,
    /// The protocol; the same value as [`ConnectionConfig::protocol`].
    pub protocol_config: Arc<dyn ProtocolConfig>,
}
