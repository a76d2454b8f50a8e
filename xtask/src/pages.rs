//! Pages that are generated from the code with `roadstead reference PAGE`.

use crate::runner::PLANTS;
use crate::shell::{self, Failure, Workspace};
use std::fs;
use std::path::{Path, PathBuf};

/// The command that generates the pages.
pub(crate) const REPEAT: &str = "cargo xtask docs";

/// Builds the program and returns its path. The tests are built too, so that cargo selects the same features for all
/// packages, and nothing is built twice.
pub(crate) fn program(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let args = ["build", "--workspace", "--features", PLANTS, "--bins", "--tests"];
    shell::run(workspace.cargo(args))?;
    Ok(workspace.built("debug", "roadstead"))
}

/// Each page: its argument of `roadstead reference`, and its file.
const PAGES: &[(&str, &str)] =
    &[("reference", "docs/reference.md"), ("outcomes", "docs/outcomes.md")];

/// Generates the pages.
pub(crate) fn write(workspace: &Workspace) -> Result<String, Failure> {
    let program = program(workspace)?;
    for (word, file) in PAGES {
        shell::write(&workspace.root.join(file), &made(&program, word)?)?;
    }
    Ok(format!("wrote {}", files()))
}

/// Fails if a generated page differs from the current code.
pub(crate) fn check(workspace: &Workspace) -> Result<String, Failure> {
    let program = program(workspace)?;
    for (word, file) in PAGES {
        let there = fs::read_to_string(workspace.root.join(file)).unwrap_or_default();
        if let Some(difference) = difference(&there, &made(&program, word)?) {
            let why = format!("{file} is stale, {difference}");
            return Err(Failure::new(why).repeated_by(REPEAT));
        }
    }
    Ok(files())
}

fn files() -> String {
    let files: Vec<&str> = PAGES.iter().map(|(_, file)| *file).collect();
    files.join(", ")
}

fn made(program: &Path, word: &str) -> Result<String, Failure> {
    shell::output(shell::command(program, ["reference", word]))
}

/// Describes the first difference between two texts.
fn difference(there: &str, wanted: &str) -> Option<String> {
    if there == wanted {
        return None;
    }
    let mut there_lines = there.lines();
    for (index, wanted) in wanted.lines().enumerate() {
        let there = there_lines.next();
        if there != Some(wanted) {
            let there = there.unwrap_or("(the end)");
            let line = index + 1;
            return Some(format!("first in line {line}\n  there:  {there}\n  wanted: {wanted}"));
        }
    }
    Some("it has more lines than it should, or lacks its last newline".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let said = difference("a\nb\nc\n", "a\nx\nc\n").unwrap();
        assert!(said.contains("line 2") && said.contains("there:  b"), "{said}");
        assert!(difference("a\n", "a\nb\n").unwrap().contains("(the end)"));
        assert!(difference("a\nb\n", "a\n").unwrap().contains("more lines"));
    }
}
