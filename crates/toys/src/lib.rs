//! Toys: a protocol and a kind of worker that nothing in the data plane knows.
//!
//! What it is: a test of the interfaces. Each toy is one folder, with its options in a table, and one arm in
//! [`build`]. What it depends on: the traits of `frontend` and `backend`, and `gateway` to assemble a shard. What
//! it must never depend on: anything of them that is not public.
//!
//! # What a toy costs
//!
//! The client protocol [`finger`] is three new files (`finger.rs`, `finger/config.rs` with its table of options,
//! `finger/session.rs`) and two changed ones: a line of `lib.rs` (`pub mod finger`) and an arm of `build.rs`. The kind
//! of worker [`echo`] is three new files (`echo.rs`, `echo/config.rs` with its table of options, `echo/workers.rs`) and
//! the same two changed ones. No file of another crate changes.

#![forbid(unsafe_code)]

pub mod build;
pub mod echo;
pub mod finger;
pub mod options;
pub mod shard;
