//! The fuzz targets: checks that they build, and runs them to find new inputs.
//!
//! They are in a separate workspace, because they are compiled for libFuzzer. The tests of each crate (`fuzz_smoke`)
//! call the same functions, with the inputs in `fuzz/corpus` and thousands of mutations of them. A run here follows the
//! coverage of the code and keeps inputs that reach more of it. Neither needs a nightly compiler.

use crate::shell::{self, Failure, Workspace};
use clap::Args;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Compiler options for the coverage that libFuzzer follows.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions --cfg fuzzing";

#[derive(Args, Debug)]
pub(crate) struct FuzzArguments {
    /// Run only this target
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    /// Seconds that each target runs
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    seconds: u32,
}

/// Checks that every target compiles. libFuzzer itself is not built.
pub(crate) fn check(workspace: &Workspace) -> Result<String, Failure> {
    let targets = targets(workspace)?;
    let mut command = cargo(workspace, "check");
    command.arg("--quiet").env("CUSTOM_LIBFUZZER_PATH", "/nowhere/libfuzzer.a");
    shell::run(command)?;
    Ok(format!("{} targets", targets.len()))
}

/// Runs the targets one after the other, starting from the corpus. Inputs that reach more code are stored below
/// `target`. An input that makes a target fail must be added to its corpus, and stays there after the fix.
pub(crate) fn run(workspace: &Workspace, arguments: &FuzzArguments) -> Result<String, Failure> {
    let all = targets(workspace)?;
    let wanted: Vec<&String> =
        all.iter().filter(|it| arguments.target.as_ref().is_none_or(|one| one == *it)).collect();
    if wanted.is_empty() {
        return Err(Failure::new(format!("the targets are {}", all.join(", "))));
    }
    let host = host(workspace)?;
    for target in &wanted {
        let corpus = workspace.root.join("fuzz/corpus").join(target);
        let found = shell::folder(workspace.target.join("fuzz/found").join(target))?;
        let mut command = cargo(workspace, "run");
        // An explicit `--target` is used, so that build programs are not instrumented.
        command.args(["--release", "--target", &host, "--bin", target, "--"]).arg(&found);
        if corpus.is_dir() {
            command.arg(&corpus);
        }
        command.arg(format!("-artifact_prefix={}/", found.display()));
        command.arg(format!("-max_total_time={}", arguments.seconds)).arg("-max_len=8192");
        command.env("RUSTFLAGS", COVERAGE);
        shell::run(command)?;
        println!("{target:<16} {} s, {} inputs found", arguments.seconds, count(&found));
    }
    Ok(format!("{} targets", wanted.len()))
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, |entries| entries.flatten().count())
}

fn cargo(workspace: &Workspace, what: &str) -> Command {
    let manifest = workspace.root.join("fuzz/Cargo.toml");
    let mut command = workspace.cargo([what, "--locked", "--manifest-path"]);
    command.arg(manifest).arg("--target-dir").arg(workspace.target.join("fuzz"));
    command
}

/// Returns the target of this compiler.
fn host(workspace: &Workspace) -> Result<String, Failure> {
    let mut command = Command::new("rustc");
    command.arg("-vV").current_dir(&workspace.root);
    let said = shell::run(command)?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::new("rustc names no host"))
}

/// Returns the targets, each of which is declared by its name.
fn targets(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    let folder = workspace.root.join("fuzz");
    let declared = shell::read(&folder.join("Cargo.toml"))?;
    let targets = folder.join("fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&targets).map_err(Failure::at(targets.display()))?.flatten() {
        let path = entry.path();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        names.extend(name);
    }
    names.sort();
    for name in &names {
        if !declared.contains(&format!("name = \"{name}\"\n")) {
            return Err(Failure::new(format!("fuzz/Cargo.toml does not declare {name}")));
        }
    }
    if names.is_empty() {
        return Err(Failure::new("there is no fuzz target"));
    }
    Ok(names)
}
