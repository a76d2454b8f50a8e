//! Toys: a protocol and a kind of worker that no crate of the data plane depends on.
//!
//! What it is: a test of the interfaces. Each toy is one folder, with its options in a table, and one arm in [`build`].
//! What it depends on: the traits of `frontend` and `backend`, and `gateway` to assemble a shard. What it must never
//! depend on: private items of these crates.
//!
//! # The cost of a toy
//!
//! The client protocol [`finger`] consists of three new files (`finger.rs`, `finger/config.rs` with its table of
//! options, `finger/session.rs`) and two changed files: a line of `lib.rs` (`pub mod finger`) and an arm of `build.rs`.
//! The kind of worker [`echo`] consists of three new files (`echo.rs`, `echo/config.rs` with its table of options,
//! `echo/workers.rs`) and the same two changed files. No file of another crate changes.

#![forbid(unsafe_code)]

pub mod build;
pub mod echo;
pub mod finger;
pub mod options;
pub mod shard;
