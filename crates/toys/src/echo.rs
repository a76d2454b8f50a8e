//! Echo: workers that answer each request with what it says.
//!
//! They run on the loop itself and answer before the call that brings a request returns, so they need no stream, no
//! timer, no process and no thread.

mod config;
mod workers;

pub use config::{EchoConfig, OPTIONS};
