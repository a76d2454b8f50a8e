//! Echo: workers that answer each request with its own text.
//!
//! They run on the loop itself. They answer before the call that delivers a request returns, so they need no stream, no
//! timer, no process and no thread.

mod config;
mod workers;

pub use config::{EchoConfig, OPTIONS};
