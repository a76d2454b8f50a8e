//! Limits on clients, on a scripted kernel: each rule at its exact bound of time and bytes.
#![allow(clippy::unwrap_used, reason = "a test")]

mod checks;
mod log;
mod mail;
mod memory;
mod paused;
mod programs;
mod script;
mod shared;
mod silent;
mod slow;
