//! The project rules that a tool can check.
//!
//! Each rule is a pure function of text or metadata, with a test in which it fails. Only this file reads the disk and
//! starts cargo. A finding says where, what, and what to do instead.

mod arrows;
mod file;
mod files;
mod finding;
mod kinds;
mod lexer;
mod modules;
mod runtimes;
mod sources;
mod test_code;
mod wording;

use crate::shell::{self, Failure, Workspace};
use clap::Args;
use file::File;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// The number of commits whose subjects are checked.
const LATEST: &str = "20";

/// The arguments of `cargo xtask tidy`.
#[derive(Debug, Default, Args)]
pub(crate) struct TidyArguments {
    /// Only print each use of one file by another in the import cycles of this crate
    #[arg(long, value_name = "CRATE")]
    cycles: Option<String>,
}

/// Runs the command.
pub(crate) fn run(workspace: &Workspace, arguments: &TidyArguments) -> Result<String, Failure> {
    match &arguments.cycles {
        Some(krate) => Ok(modules::uses_in_cycles(&files(workspace)?, krate).join("\n")),
        None => check(workspace),
    }
}

/// Checks all rules.
pub(crate) fn check(workspace: &Workspace) -> Result<String, Failure> {
    let mut findings = arrows::check(&workspace.metadata);
    findings.extend(runtimes::named(&workspace.metadata));
    for room in runtimes::rooms_without(&workspace.metadata) {
        let words = ["tree", "--edges=normal", "--prefix=none", "--format={p}", "-p"];
        let tree = shell::run(workspace.cargo(words.iter().chain([&room.package.as_str()])))?;
        findings.extend(runtimes::check(&room.name, &tree));
    }
    let all = files(workspace)?;
    findings.extend(files::required(&all));
    let mut long = 0;
    for file in &all {
        findings.extend(files::check(file));
        findings.extend(sources::check(file));
        findings.extend(wording::check(file));
        if let Some(note) = files::long(file) {
            println!("  long: {note}");
            long += 1;
        }
    }
    findings.extend(wording::subjects(&latest_subjects(workspace)));
    findings.extend(modules::check(&all));
    if findings.is_empty() {
        return Ok(format!("{} files, {long} long", all.len()));
    }
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    Err(Failure::new(lines.join("\n")).repeated_by("cargo xtask tidy"))
}

/// The subjects of the latest commits; none outside of a clone.
fn latest_subjects(workspace: &Workspace) -> String {
    let mut git = shell::command("git", ["log", "-n", LATEST, "--no-merges", "--format=%s"]);
    git.current_dir(&workspace.root);
    shell::run(git).unwrap_or_default()
}

/// The files that people write, sorted by path.
fn files(workspace: &Workspace) -> Result<Vec<File>, Failure> {
    let mut all = Vec::new();
    walk(&workspace.root, &workspace.root, &mut all)?;
    all.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(all)
}

/// Collects the files that people write, without generated, hidden and binary files.
fn walk(root: &Path, folder: &Path, files: &mut Vec<File>) -> Result<(), Failure> {
    let failed = Failure::at(folder.display());
    for entry in fs::read_dir(folder).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let path = entry.path();
        let name = entry.file_name();
        let hidden = name.as_encoded_bytes().starts_with(b".");
        if hidden || name == "target" || name == "corpus" {
            continue;
        }
        if entry.file_type().map_err(&failed)?.is_dir() {
            walk(root, &path, files)?;
            continue;
        }
        let written = ["rs", "toml", "md", "pl", "sh"];
        if path.extension().and_then(OsStr::to_str).is_some_and(|end| written.contains(&end)) {
            // The file may have been deleted meanwhile, or may not be text: for example a temporary file of an editor
            // or a test.
            if let Ok(text) = fs::read_to_string(&path) {
                let shown = path.strip_prefix(root).unwrap_or(&path);
                files.push(File { path: shown.to_string_lossy().into_owned(), text });
            }
        }
    }
    Ok(())
}
