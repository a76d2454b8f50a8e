//! Where a walk adds its faults, and how they quote the file.

use std::collections::BTreeSet;

use crate::fault::Fault;

/// A walk under way.
pub(super) struct Walk<'a> {
    pub(super) text: &'a str,
    pub(super) faults: &'a mut Vec<Fault>,
    /// Looks up a variable of the daemon.
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
    /// Names of the variables that were looked up, and their values, which no error may show.
    pub(super) variables: BTreeSet<String>,
    pub(super) hidden: Vec<String>,
}

/// A word of a file within a sentence: not endless.
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

pub(super) fn with_mend(fault: Fault, mend: Option<String>) -> Fault {
    match mend {
        Some(mend) => fault.mend(mend),
        None => fault,
    }
}
