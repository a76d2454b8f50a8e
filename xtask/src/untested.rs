//! Collects what the tests of a run could not test on this machine. Each such test writes a line into a file. The run
//! prints all lines at its end, so that no test is skipped silently.

use crate::shell::Workspace;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The variable that contains the path of the file.
const FILE: &str = "ROADSTEAD_UNTESTED";

fn path(workspace: &Workspace) -> PathBuf {
    // The file name contains the process id, because several runs may share a target folder.
    workspace.target.join(format!("untested-{}", std::process::id()))
}

/// Sets the variable, so that the tests of `command` can report what they could not test.
pub(crate) fn noted(workspace: &Workspace, mut command: Command) -> Command {
    command.env(FILE, path(workspace));
    command
}

/// Returns the reports since the last call, each line once.
pub(crate) fn take(workspace: &Workspace) -> Vec<String> {
    let path = path(workspace);
    // If the file does not exist, there are no reports.
    let text = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(path);
    lines(&text)
}

fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_runs_could_not_do_is_told_once() {
        assert_eq!(
            lines("b: why; how\na: why; how\nb: why; how\n"),
            ["a: why; how", "b: why; how"]
        );
        assert!(lines("").is_empty());
    }
}
