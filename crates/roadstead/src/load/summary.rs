//! How far a run is, and what came out of it.

use std::time::Duration;

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Connections that are open.
    pub opened: usize,
    /// Connections there should be.
    pub connections: usize,
    /// Since the first line was due; zero while connections are being opened.
    pub elapsed: Duration,
    /// Lines sent.
    pub sent: u64,
    /// Lines acknowledged.
    pub acknowledged: u64,
    /// Lines refused.
    pub refused: u64,
    /// Lines failed or unknown.
    pub failed_or_unknown: u64,
    /// Lines on their way.
    pub outstanding: u64,
    /// Connections that were opened again.
    pub reconnects: u64,
}

/// What came out of a run.
///
/// Of the lines, `sent` is the sum of `acknowledged`, `refused`, `failed`, `unknown`, and
/// `misdirected` without `unasked`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Connections.
    pub connections: usize,
    /// Lines sent, each counted once.
    pub sent: u64,
    /// Lines acknowledged.
    pub acknowledged: u64,
    /// Lines refused for good.
    pub refused: u64,
    /// Lines tried without effect.
    pub failed: u64,
    /// Lines that may or may not have taken effect.
    pub unknown: u64,
    /// Replies that were not for the line whose turn it was, or for none.
    pub misdirected: u64,
    /// Of them, those that came when nothing had been asked.
    pub unasked: u64,
    /// Times that a refused line was sent again.
    pub resent: u64,
    /// Lines that were due and not sent: no connection, or too many on their way.
    pub unsent: u64,
    /// Connections that were opened again.
    pub reconnects: u64,
    /// Replies that were no acknowledgement, by their code; `other` for unknown ones.
    pub codes: Vec<(&'static str, u64)>,
    /// From when a line was due to its acknowledgement.
    pub latency: Quantiles,
    /// From when a line was due to when it was sent; zeros without a rate.
    pub lateness: Quantiles,
    /// From the first line to the last reply.
    pub seconds: f64,
}

/// Times of many lines, exact to three digits and at least a microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Half of the lines took no longer.
    pub p50: Duration,
    /// 99 % of the lines took no longer.
    pub p99: Duration,
    /// No line took longer.
    pub max: Duration,
}
