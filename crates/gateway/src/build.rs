//! Builds the configuration of a shard from the settings: names are resolved to ids, and files and secrets are read.
//!
//! Each mapping destructures its settings completely, so that a new option does not compile until its use is decided.
//! Only the configuration of a shard is built here. The code that runs with the configuration must never use this
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
mod secret_file;
mod servers;
mod shape;
mod worker_properties;
mod workers;

pub(crate) use context::BuildContext;
pub use context::{FactoryError, HandlerRegistry};
pub use files::unread;
pub(crate) use listener::listener;
pub(crate) use member_shard::{member_shard, off_shard};
pub use metrics::metrics_for;
pub(crate) use pool::pool;
pub use secret_file::{read_secret_file, read_secret_text};
