//! Listeners of raw bytes: a connection, or a datagram, is the request.

/// The connection is the request. There is nothing to configure.
#[derive(Clone, Copy, Debug)]
pub struct ConnectConfig;

/// Each datagram is a request. There are no sessions, and nothing to configure.
#[derive(Clone, Copy, Debug)]
pub struct DatagramConfig;
