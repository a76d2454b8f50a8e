//! The cookie by which a pool binds clients to servers.

use exchange::ByWorker;
use pool::{CookieCodec, CookieMode};

/// A cookie that tells clients' servers.
#[derive(Debug)]
pub(crate) struct CookieConfig {
    pub(crate) name: Vec<u8>,
    pub(crate) mode: CookieMode,
    /// None where the value is the server's own.
    pub(crate) codec: Option<CookieCodec>,
    pub(crate) lifetime_s: u32,
    /// What stands behind the value of one that is inserted.
    pub(crate) attributes: Vec<u8>,
    /// The servers' names, by place; none: its workers are programs, without names.
    pub(crate) servers: ByWorker<String>,
}
