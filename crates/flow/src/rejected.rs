//! A request that is rejected while its body is still being read.

/// The response to an HTTP request that was rejected while it was being read.
#[derive(Clone, Copy, Debug)]
pub struct Rejected {
    /// The status code that was sent.
    pub status: u16,
    /// The protocol rule that the request violated; empty: another cause.
    pub reason: &'static str,
}
