//! The progress of a run, and its summary.

use std::time::Duration;

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Connections that are open.
    pub opened: usize,
    /// Connections in total.
    pub connections: usize,
    /// The time since the first line was due; zero while connections are being opened.
    pub elapsed: Duration,
    /// Lines sent.
    pub sent: u64,
    /// Lines acknowledged.
    pub acknowledged: u64,
    /// Lines refused.
    pub refused: u64,
    /// Lines failed or unknown.
    pub failed_or_unknown: u64,
    /// Lines in flight.
    pub outstanding: u64,
    /// Connections that were reopened.
    pub reconnects: u64,
}

/// The summary of a run.
///
/// The field `sent` is the sum of `acknowledged`, `refused`, `failed`, `unknown`, and `misdirected` without `unasked`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Connections.
    pub connections: usize,
    /// Lines sent. Each line is counted once.
    pub sent: u64,
    /// Lines acknowledged.
    pub acknowledged: u64,
    /// Lines refused and not sent again.
    pub refused: u64,
    /// Lines attempted without effect.
    pub failed: u64,
    /// Lines that may or may not have taken effect.
    pub unknown: u64,
    /// Replies that were for another line than the oldest in flight, or for no line.
    pub misdirected: u64,
    /// The misdirected replies that arrived while no line was in flight.
    pub unasked: u64,
    /// The number of times that a refused line was sent again.
    pub resent: u64,
    /// Lines that were due but not sent, because there was no connection or the maximum number of lines was in flight.
    pub unsent: u64,
    /// Connections that were reopened.
    pub reconnects: u64,
    /// The number of error replies by code; `other` stands for unknown codes.
    pub codes: Vec<(&'static str, u64)>,
    /// The time from when a line was due to its acknowledgement.
    pub latency: Quantiles,
    /// The time from when a line was due to when it was sent; zero without a rate.
    pub lateness: Quantiles,
    /// Seconds from the first line to the last reply.
    pub seconds: f64,
}

/// The times of many lines, exact to three digits and to a microsecond at best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The maximum.
    pub max: Duration,
}
