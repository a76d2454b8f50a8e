//! The proof of the state words that shards share: loom runs the tests called `proof` of `pool` through the
//! interleavings of their threads.
//!
//! Everything is compiled with `--cfg loom` in a separate folder. `test` limits the number of preemptions per
//! interleaving, which takes seconds; `faults` has no limit.

use crate::shell::{self, Failure, Workspace};
use std::process::Command;

/// The maximum number of preemptions in one interleaving for `test`.
const PREEMPTIONS: u32 = 5;

/// Runs the proof with this limit.
pub(crate) fn bounded(workspace: &Workspace) -> Result<String, Failure> {
    let mut command = command(workspace);
    command.env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS.to_string());
    run(command, &format!("at most {PREEMPTIONS} preemptions"))
}

/// Runs the proof with every interleaving.
pub(crate) fn whole(workspace: &Workspace) -> Result<String, Failure> {
    run(command(workspace), "every interleaving")
}

fn command(workspace: &Workspace) -> Command {
    let mut command =
        workspace.cargo(["test", "-p", "roadstead-pool", "--lib", "--release", "--target-dir"]);
    command.arg(workspace.target.join("loom")).args(["--", "proof"]);
    command.env("RUSTFLAGS", "--cfg loom").env_remove("LOOM_MAX_PREEMPTIONS");
    command
}

fn run(command: Command, bound: &str) -> Result<String, Failure> {
    let repeat = shell::show(&command);
    let said = shell::run(command)?;
    match passed(&said) {
        Some(count @ 1..) => Ok(format!("{count} proofs, {bound}")),
        _ => Err(Failure::new(format!("{said}no proof was run")).repeated_by(repeat)),
    }
}

/// Returns the number of passed tests from the last line of the test binary.
fn passed(said: &str) -> Option<u32> {
    let line = said.lines().find_map(|line| line.strip_prefix("test result: ok. "))?;
    line.split_once(' ')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_are_counted() {
        let said = "running 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 0 ignored\n";
        assert_eq!(passed(said), Some(2));
        assert_eq!(passed("test result: FAILED. 1 passed; 1 failed"), None);
    }
}
