//! Many connections in, few workers behind: the parts of the `roadstead` program.

#![forbid(unsafe_code)]

pub mod ask;
pub mod cli;
pub mod cpu;
pub mod daemon;
pub mod demo;
pub mod ledger;
pub mod load;
pub mod outcomes;
pub mod record;
pub mod worker;
pub mod workshop;
