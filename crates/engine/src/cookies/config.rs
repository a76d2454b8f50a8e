//! Configuration of the session affinity cookie.

use exchange::ByWorker;
use pool::{CookieCodec, CookieMode};

/// The session affinity cookie of a pool.
#[derive(Debug)]
pub struct CookieConfig {
    /// The name of the cookie.
    pub name: Vec<u8>,
    /// How the value is written and read.
    pub mode: CookieMode,
    /// Writes and reads values; `None`: the server sets the value.
    pub codec: Option<CookieCodec>,
    /// The lifetime of a value in seconds. It is renewed after half of it.
    pub lifetime_s: u32,
    /// The attributes that follow the value of an inserted cookie.
    pub attributes: Vec<u8>,
    /// The names of the servers; empty: the workers are programs, which have no names.
    pub servers: ByWorker<String>,
}
