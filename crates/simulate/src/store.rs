//! The database: a table that survives a crash.
//!
//! A row is there once its commit has happened, and never before; a batch commits as a whole.

use std::collections::BTreeMap;

/// What is committed: rows by their id, and how many times each.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) rows: BTreeMap<u64, u32>,
}

/// How a batch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Commits,
    /// The commit fails; nothing is stored.
    Fails,
    /// The connection is lost during the commit, before or after it took effect.
    Lost {
        stored: bool,
    },
    /// The handler panics before the commit, or behind it.
    Panics {
        stored: bool,
    },
    /// It commits and forgets to answer some.
    Forgets,
    /// It answers in parts.
    InParts,
}

/// The id that a line begins with.
pub(crate) fn id_of(line: &[u8]) -> Option<u64> {
    let word = line.split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(word).ok()?.parse().ok()
}
