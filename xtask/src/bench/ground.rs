//! The common parts of all measurements: paths, the time per round, and the rounds.

use super::server::Server;
use super::trial::{self, Trial};
use crate::shell::{self, Failure, Workspace};
use serde_json::Value;
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
            seed: seed.unwrap_or_else(trial::seed),
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

    /// Runs all rounds of these subjects: in each, every subject runs once, in a random order. `sample` is called with
    /// the round and the number of the subject.
    pub(super) fn rounds(
        &self,
        name: &str,
        subjects: &[impl AsRef<str>],
        sample: impl FnMut(u32, usize) -> Result<Value, Failure>,
    ) -> Result<Trial, Failure> {
        Trial::run((self.rounds, self.seed), name, subjects, sample)
    }
}
