//! What the measurements of the main job and of programs share: what was built, and rounds of pairs.

use super::statistics::Pairs;
use crate::shell::{self, Failure, Workspace};
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// What all measurements share.
#[derive(Debug)]
pub(super) struct Ground {
    /// The checkout.
    pub(super) root: PathBuf,
    /// `roadstead`, as it is released.
    pub(super) roadstead: PathBuf,
    /// The bare client of SQLite.
    pub(super) row_by_row: PathBuf,
    /// A folder of ours on the disk that the checkout is on, for databases and logs.
    pub(super) folder: PathBuf,
    pub(super) rounds: u32,
    pub(super) seconds: u32,
}

/// Builds `roadstead` as it is released.
pub(super) fn prepare(workspace: &Workspace, rounds: u32, seconds: u32) -> Result<Ground, Failure> {
    eprintln!("building as released");
    shell::run(workspace.cargo(["build", "--release", "-p", "roadstead"]))?;
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    Ok(Ground {
        root: workspace.root.clone(),
        roadstead: workspace.built("release", "roadstead"),
        row_by_row: workspace.built("release", "examples/row_by_row"),
        folder,
        rounds,
        seconds,
    })
}

/// Runs pairs: both sides of a pair right after each other, and which goes first alternates.
pub(super) fn pairs(
    ground: &Ground,
    name: &str,
    ours: impl FnMut() -> Result<f64, Failure>,
    theirs: impl FnMut() -> Result<f64, Failure>,
) -> Result<Pairs, Failure> {
    let mut pairs = Pairs::default();
    for (ours, theirs) in pairs_of(ground, name, ours, theirs)? {
        pairs.push(ours, theirs);
    }
    Ok(pairs)
}

/// The same where a run shows more than one number.
pub(super) fn pairs_of<T: fmt::Debug>(
    ground: &Ground,
    name: &str,
    mut ours: impl FnMut() -> Result<T, Failure>,
    mut theirs: impl FnMut() -> Result<T, Failure>,
) -> Result<Vec<(T, T)>, Failure> {
    let mut pairs = Vec::new();
    for round in 0..ground.rounds {
        let pair = if round % 2 == 0 {
            let ours = ours()?;
            (ours, theirs()?)
        } else {
            let theirs = theirs()?;
            (ours()?, theirs)
        };
        let (number, all) = (round + 1, ground.rounds);
        eprintln!("{name}: round {number} of {all}: {:.2?} against {:.2?}", pair.0, pair.1);
        pairs.push(pair);
    }
    Ok(pairs)
}
