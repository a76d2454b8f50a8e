//! The common parts of all measurements: paths, the time per round, and the rounds.

use super::order::{self, Order};
use super::server::Server;
use crate::shell::{self, Failure, Workspace};
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The common parts of all measurements.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// The checkout.
    pub(super) root: PathBuf,
    /// The folder of release builds.
    pub(super) release: PathBuf,
    /// A folder on the disk of the checkout for results, databases and logs.
    pub(super) folder: PathBuf,
    pub(super) rounds: u32,
    /// The measured time per round.
    pub(super) window: Duration,
    /// The seed for the order of the subjects within the rounds.
    pub(super) seed: u64,
}

impl Ground {
    /// Creates the folder `name`. The seed is random by default.
    pub(super) fn new(
        workspace: &Workspace,
        name: &str,
        rounds: u32,
        window: Duration,
        seed: Option<u64>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            root: workspace.root.clone(),
            release: workspace.target.join("release"),
            folder: shell::folder(workspace.target.join("bench").join(name))?,
            rounds,
            window,
            seed: seed.unwrap_or_else(order::seed),
        })
    }

    /// Returns the window in whole seconds, at least one.
    pub(super) fn seconds(&self) -> u32 {
        u32::try_from(self.window.as_secs()).unwrap_or(u32::MAX).max(1)
    }

    /// Returns the release build of `roadstead`.
    pub(super) fn roadstead(&self) -> PathBuf {
        self.release.join("roadstead")
    }

    /// Returns the release build of an example.
    pub(super) fn example(&self, name: &str) -> PathBuf {
        self.release.join("examples").join(name)
    }

    /// Starts a program that prints `ready`, with a log of this name.
    pub(super) fn start(&self, command: Command, name: &str) -> Result<Server, Failure> {
        Server::start(command, &self.folder.join(format!("{name}.log")))
    }

    /// Starts `roadstead serve` with a configuration of this name.
    pub(super) fn serve(&self, name: &str, configuration: &str) -> Result<Server, Failure> {
        let file = self.folder.join(format!("{name}.toml"));
        shell::write(&file, configuration)?;
        let mut command = Command::new(self.roadstead());
        command.arg("serve").arg(file).current_dir(&self.folder);
        self.start(command, name)
    }

    /// Runs all rounds. In each, every subject runs once, in a random order. Returns the samples of each subject.
    /// `sample` is called with the round and the subject.
    pub(super) fn rounds<T>(
        &self,
        name: &str,
        subjects: usize,
        mut sample: impl FnMut(u32, usize) -> Result<T, Failure>,
    ) -> Result<Vec<Vec<T>>, Failure> {
        let mut order = Order::new(self.seed);
        let mut samples: Vec<Vec<T>> = (0..subjects).map(|_| Vec::new()).collect();
        for round in 0..self.rounds {
            eprintln!("{name}: round {} of {}", round + 1, self.rounds);
            for at in order.round(subjects) {
                samples[at].push(sample(round, at)?);
            }
        }
        Ok(samples)
    }

    /// Runs pairs: both sides of a pair run directly after each other, and the first side alternates.
    pub(super) fn pairs<T: fmt::Debug>(
        &self,
        name: &str,
        mut ours: impl FnMut() -> Result<T, Failure>,
        mut theirs: impl FnMut() -> Result<T, Failure>,
    ) -> Result<[Vec<T>; 2], Failure> {
        let (mut all_ours, mut all_theirs) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let (one, other) = if round % 2 == 0 {
                let one = ours()?;
                (one, theirs()?)
            } else {
                let other = theirs()?;
                (ours()?, other)
            };
            let (number, all) = (round + 1, self.rounds);
            eprintln!("{name}: round {number} of {all}: {one:.2?} against {other:.2?}");
            all_ours.push(one);
            all_theirs.push(other);
        }
        Ok([all_ours, all_theirs])
    }
}
