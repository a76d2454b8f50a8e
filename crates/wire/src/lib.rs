//! Protocols: bytes in, messages out, and back.
//!
//! What it is: codecs that find messages in received bytes and write replies. What it knows: the
//! rules and limits of each protocol. What it must never know: a stream, a clock, who answers.

#![forbid(unsafe_code)]

pub mod lines;
