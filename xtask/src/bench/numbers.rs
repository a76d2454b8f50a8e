//! The numbers of a program that prints one JSON object.

use crate::shell::{self, Failure};
use serde_json::Value;
use std::process::Command;

/// The printed object.
#[derive(Debug)]
pub(super) struct Numbers(pub(super) Value);

impl Numbers {
    /// Runs the program.
    pub(super) fn of(command: Command) -> Result<Self, Failure> {
        let shown = shell::show(&command);
        let said = shell::output(command)?;
        let read = serde_json::from_str(said.trim());
        read.map(Self).map_err(Failure::at(format!("{shown}: {said}")))
    }

    pub(super) fn get(&self, key: &str) -> Result<f64, Failure> {
        let number = self.0[key].as_f64();
        number.ok_or_else(|| Failure::new(format!("no `{key}` in {}", self.0)))
    }
}
