//! Figures of the stored parts. Pure.

use crate::bench::statistics::Quartiles;
use serde_json::Value;

/// The name of Roadstead among the subjects.
pub(super) const OURS: &str = "Roadstead";

/// Returns the shape with this number of connections.
pub(super) fn row(shapes: &Value, connections: u64) -> Option<&Value> {
    shapes.as_array()?.iter().find(|shape| shape["connections"].as_u64() == Some(connections))
}

pub(super) fn samples(shape: &Value, subject: &str, what: &str) -> Option<Vec<f64>> {
    let samples = shape["subjects"].get(subject)?.as_array()?;
    Some(samples.iter().filter_map(|sample| sample[what].as_f64()).collect())
}

pub(super) fn quartiles(shape: &Value, subject: &str, what: &str) -> Option<Quartiles> {
    samples(shape, subject, what).map(|samples| Quartiles::of(&samples))
}

pub(super) fn median_of(shape: &Value, subject: &str, what: &str) -> Option<f64> {
    quartiles(shape, subject, what).map(|quartiles| quartiles.median)
}

/// Returns the ratio of the CPU times of two subjects, round by round.
pub(super) fn ratio_of(shape: &Value, over: &str, under: &str) -> Option<Quartiles> {
    let (over, under) = (samples(shape, over, "cpu_us")?, samples(shape, under, "cpu_us")?);
    Some(Quartiles::ratio(&over, &under))
}
