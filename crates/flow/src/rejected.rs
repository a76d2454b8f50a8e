//! A request that is rejected while its body is still read.

/// What a client of HTTP was told of its request while that was read.
#[derive(Clone, Copy, Debug)]
pub struct Rejected {
    pub status: u16,
    /// The rule that it broke; empty: another cause.
    pub reason: &'static str,
}
