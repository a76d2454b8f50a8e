//! What was asked for, and how the page says it.

/// What was asked for, in words, and whether it was met.
pub(super) type Goals = Vec<(String, bool)>;

/// A line for each goal, with whether it was met.
pub(super) fn asked(goals: &[(String, bool)]) -> String {
    let line = |(goal, met): &(String, bool)| {
        format!("- {}: {goal}\n", if *met { "met" } else { "**missed**" })
    };
    format!("Asked for:\n\n{}", goals.iter().map(line).collect::<String>())
}
