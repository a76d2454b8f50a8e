//! What a daemon does, seen from outside: the real binary, real programs, a real database.

#[path = "../support/client.rs"]
mod client;
#[path = "../support/daemon.rs"]
mod daemon;

mod commands;
mod drain;
mod lines;
mod programs;
mod store;
