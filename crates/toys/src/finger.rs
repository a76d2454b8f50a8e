//! Finger (RFC 1288): a client sends one line with the name of a user, receives text, and the connection ends.
//!
//! The worker receives the line without its end, and its reply is the text. A query that would be forwarded to another
//! host (`user@host`) is rejected, as RFC 1288 §3.2.1 recommends.

mod config;
mod session;

pub use config::{FingerConfig, OPTIONS};
