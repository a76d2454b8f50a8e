//! What was asked for, and whether it was so: how pages list it, and how a bench ends. Pure.

use crate::shell::Failure;

/// What was asked for, in words, and whether it was so.
pub(super) type Goal = (String, bool);

/// A line for each goal.
pub(super) fn list(goals: &[Goal]) -> String {
    goals.iter().map(|(goal, met)| format!("- {}: {goal}\n", word(*met))).collect()
}

/// Whether a goal was met, for a page.
pub(super) fn word(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}

/// A goal that was missed is a failure, after everything was shown.
pub(super) fn verdict(goals: impl IntoIterator<Item = Goal>) -> Result<(), Failure> {
    let missed = goals.into_iter().filter(|(_, met)| !met);
    failed(missed.map(|(goal, _)| format!("missed: {goal}")))
}

/// A failure that says all of this, if there is anything to say.
pub(super) fn failed(said: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let said: Vec<String> = said.into_iter().collect();
    if said.is_empty() { Ok(()) } else { Err(Failure::new(said.join("\n"))) }
}
