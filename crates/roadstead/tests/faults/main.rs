//! Faults of programs, daemons and databases under load, checked with the ledger afterwards.
//!
//! `cargo xtask test` runs a tenth of the counts, `cargo xtask faults` all of them (`ROADSTEAD_FAULTS=full`).

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../support/client.rs"]
mod client;
#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../support/daemon.rs"]
mod daemon;

mod dropped;
mod ground;
mod kills;
mod limits;
mod programs;
#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../../../database/tests/support/proxy.rs"]
mod proxy;
mod rows;
#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../../../database/tests/support/server.rs"]
mod server;
mod servers;
#[path = "../../../database/tests/support/tmpfs.rs"]
mod tmpfs;
mod under_load;
#[path = "../../../database/tests/support/untested.rs"]
mod untested;
mod web;

/// Returns how often to cause a fault for which the plan requires `full` times.
fn times(full: u32) -> u32 {
    match std::env::var("ROADSTEAD_FAULTS").as_deref() {
        Ok("full") => full,
        _ => full.div_ceil(10),
    }
}
