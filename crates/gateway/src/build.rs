//! Constructs what a shard is configured with from the settings: names resolved to ids, files and secrets
//! read.
//!
//! Each mapping takes its settings apart completely, so that a new option does not compile until
//! somebody has decided where it goes. Only the shard is built here: what is configured must never use this
//! module.

mod balance;
mod check;
mod context;
mod cookie;
mod fallback;
mod files;
mod launch;
mod listener;
mod member_shard;
mod metrics;
mod pool;
mod program;
mod reload;
mod routes;
mod said;
mod secret_file;
mod servers;
mod shape;
mod workers;

pub(crate) use context::BuildContext;
pub use context::HandlerRegistry;
pub use files::unread;
pub(crate) use listener::listener;
pub(crate) use member_shard::{elsewhere, member_shard};
pub use metrics::metrics_for;
pub(crate) use pool::pool;
pub use secret_file::{read_secret_file, read_secret_text};
