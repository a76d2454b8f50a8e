//! The database: a table that survives a crash.
//!
//! A row exists after its commit, and never before. A batch is committed as a whole.

use std::collections::BTreeMap;

/// The committed rows, by id, with their number of copies.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) rows: BTreeMap<u64, u32>,
}

/// The course of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Commits,
    /// The commit fails; nothing is stored.
    Fails,
    /// The connection is lost during the commit, before or after the commit took effect.
    Lost {
        stored: bool,
    },
    /// The handler panics before or after the commit.
    Panics {
        stored: bool,
    },
    /// The handler commits and answers only a part of the requests.
    Forgets,
    /// The handler answers in two parts.
    InParts,
}

/// Returns the id at the beginning of a line.
pub(crate) fn id_of(line: &[u8]) -> Option<u64> {
    let word = line.split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(word).ok()?.parse().ok()
}
