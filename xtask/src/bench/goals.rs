//! Goals, and whether they were met: how pages list them, and how a benchmark ends. Pure.

use crate::shell::Failure;

/// A goal in words, and whether it was met.
pub(super) type Goal = (String, bool);

/// Returns a line for each goal.
pub(super) fn list(goals: &[Goal]) -> String {
    goals.iter().map(|(goal, met)| format!("- {}: {goal}\n", word(*met))).collect()
}

/// Returns whether a goal was met, as a word for a page.
pub(super) fn word(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}

/// Returns a failure if a goal was missed. Called after everything was printed.
pub(super) fn verdict(goals: impl IntoIterator<Item = Goal>) -> Result<(), Failure> {
    let missed = goals.into_iter().filter(|(_, met)| !met);
    failed(missed.map(|(goal, _)| format!("missed: {goal}")))
}

/// Returns a failure with all of these texts, if there are any.
pub(super) fn failed(said: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let said: Vec<String> = said.into_iter().collect();
    if said.is_empty() { Ok(()) } else { Err(Failure::new(said.join("\n"))) }
}
