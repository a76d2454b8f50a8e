//! Collects the faults of a walk and quotes the file in them.

use std::collections::BTreeSet;

use crate::fault::Fault;
use crate::tree::Node;

/// The state of a walk.
pub(super) struct Walk<'a> {
    pub(super) text: &'a str,
    pub(super) faults: &'a mut Vec<Fault>,
    /// Looks up a variable of the daemon.
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
    /// Names of the variables that were looked up, and their values. Errors must not show the values.
    pub(super) variables: BTreeSet<String>,
    pub(super) hidden: Vec<String>,
}

/// Returns a word of the file for a message, shortened to 80 characters.
pub(super) fn shown(word: &str) -> String {
    const SHOWN_MAX: usize = 80;
    let mut shown: String = word.chars().take(SHOWN_MAX).collect();
    if word.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown
}

pub(super) fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

impl Walk<'_> {
    /// Returns a value as it is written in the file.
    pub(super) fn word(&self, node: &Node) -> &str {
        self.text.get(node.span.clone()).unwrap_or_default()
    }
}
