//! The cookie by which a pool binds clients to servers.

use exchange::ByWorker;
use pool::{CookieCodec, CookieMode};

/// A cookie that tells clients' servers.
#[derive(Debug)]
pub struct CookieConfig {
    pub name: Vec<u8>,
    pub mode: CookieMode,
    /// None where the value is the server's own.
    pub codec: Option<CookieCodec>,
    pub lifetime_s: u32,
    /// What stands behind the value of one that is inserted.
    pub attributes: Vec<u8>,
    /// The servers' names, by place; none: its workers are programs, without names.
    pub servers: ByWorker<String>,
}
