//! What the tests of a run could not do on this machine. Each such test writes a line into a file;
//! the run ends with all of them, so that nothing is green in silence.

use crate::shell::Workspace;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The variable that names the file.
const FILE: &str = "ROADSTEAD_UNTESTED";

fn path(workspace: &Workspace) -> PathBuf {
    // Its own, as several runs may share a target folder.
    workspace.target.join(format!("untested-{}", std::process::id()))
}

/// Lets the tests that `command` runs say what they could not do.
pub(crate) fn noted(workspace: &Workspace, mut command: Command) -> Command {
    command.env(FILE, path(workspace));
    command
}

/// What was said since it was last asked, each line once.
pub(crate) fn take(workspace: &Workspace) -> Vec<String> {
    let path = path(workspace);
    // No test had anything to say where there is none.
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
