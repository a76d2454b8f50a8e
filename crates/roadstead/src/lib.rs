//! Many connections in, few workers behind: the parts of the `roadstead` program.

#![forbid(unsafe_code)]

pub mod record;
pub mod worker;
