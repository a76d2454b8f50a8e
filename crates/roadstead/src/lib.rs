//! Many connections in, few workers behind: the parts of the `roadstead` program.
//!
//! What it is: the command line and what stands behind each command: the daemon, the load with its
//! ledger, the demo. What it knows: every room, and which handlers there are; it builds them, names
//! them and hands them to `gateway`. What it must never know: how a request finds its way.

#![forbid(unsafe_code)]

pub mod ask;
pub mod cli;
pub mod cpu;
pub mod ctl;
pub mod daemon;
pub mod demo;
pub mod doctor;
pub mod ledger;
pub mod load;
pub mod outcomes;
pub mod record;
pub mod worker;
pub mod workshop;
