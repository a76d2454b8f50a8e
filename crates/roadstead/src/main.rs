//! The `roadstead` program.
fn main() {}
