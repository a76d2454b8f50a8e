//! One line of what the examples print.

/// One measurement under one allocator: nanoseconds of a unit, lower to upper quartile, and the
/// 99th percentile within the rounds.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) task: String,
    pub(super) subject: String,
    pub(super) threads: String,
    pub(super) ns: [String; 4],
}

pub(super) fn median(line: &Line) -> Option<f64> {
    line.ns[1].parse().ok()
}
