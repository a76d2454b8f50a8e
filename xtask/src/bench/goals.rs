//! Goals, and whether they were met: how pages list them, and how a benchmark ends. Pure.

use crate::shell::Failure;

/// A goal in words, the measured value, and whether it was met.
pub(super) type Goal = (String, String, bool);

/// Returns the goal that a value is not above a limit. A value that is not a number does not meet it.
pub(super) fn at_most(text: impl Into<String>, value: f64, max: f64) -> Goal {
    (text.into(), format!("{value:.2}"), value <= max)
}

/// Returns the goal that a value is not below a limit.
pub(super) fn at_least(text: impl Into<String>, value: f64, min: f64) -> Goal {
    (text.into(), format!("{value:.2}"), value >= min)
}

/// Returns a line for each goal.
pub(super) fn list(goals: &[Goal]) -> String {
    let line = |(text, value, met): &Goal| format!("- {}: {text} ({value})\n", word(*met));
    goals.iter().map(line).collect()
}

/// Returns whether a goal was met, as a word for a page.
pub(super) fn word(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}

/// Returns a failure if a goal was missed. Called after everything was printed.
pub(super) fn verdict(goals: impl IntoIterator<Item = Goal>) -> Result<(), Failure> {
    let missed = goals.into_iter().filter(|(.., met)| !met);
    let missed: Vec<String> =
        missed.map(|(text, value, _)| format!("missed: {text} ({value})")).collect();
    if missed.is_empty() { Ok(()) } else { Err(Failure::new(missed.join("\n"))) }
}
