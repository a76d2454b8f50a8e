#![doc = include_str!("../README.md")]
//!
//! # Scope
//!
//! What it is: codecs that find messages in received bytes and write replies. What it depends on: the rules and limits
//! of each protocol. What it must never depend on: a stream, a clock, the worker that answers.
//!
//! [`Decoder`] finds frames in any [`Framing`]. [`envelope`] and [`encode`] put a body into a frame. [`write_reply`]
//! writes an outcome as a frame. [`jsonrpc`] parses frames that are JSON-RPC messages.

#![forbid(unsafe_code)]

mod decoder;
mod framing;
pub mod http1;
mod http_start;
pub mod jsonrpc;
pub mod lines;
mod reply;

pub use decoder::{Decoder, Fault, Last, OversizePolicy, Piece};
pub use framing::{Envelope, Framing, HEAD_MAX, Unframable, Width, encode, envelope};
pub use http_start::{HttpStart, Start};
pub use http1::Upgrades;
pub use jsonrpc::ErrorId;
pub use reply::{Marks, write_reply};
