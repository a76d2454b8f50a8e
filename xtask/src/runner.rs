//! Runs `cargo test` and prints one line per test binary.

use crate::hang;
use crate::report::Report;
use crate::shell::{self, Failure, Workspace};
use crate::untested::noted;
use std::cell::RefCell;
use std::process::Command;
use std::time::Duration;

/// The feature that compiles the test-only defects in. Each is off until a test enables it.
pub(crate) const PLANTS: &str = "roadstead/plants";

/// The variable that sets the counts of the fault tests.
const FAULTS: &str = "ROADSTEAD_FAULTS";

/// The maximum time without output of a test binary. With a tenth of the counts, the longest single test takes a tenth
/// of this time; with full counts it may take all of it.
const SILENCE: Duration = Duration::from_secs(5 * 60);
const SILENCE_FULL: Duration = Duration::from_secs(30 * 60);

/// The counts of the fault tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    Tenth,
    Full,
}

impl Counts {
    const fn word(self) -> &'static str {
        match self {
            Self::Tenth => "tenth",
            Self::Full => "full",
        }
    }

    const fn silence(self) -> Duration {
        match self {
            Self::Tenth => SILENCE,
            Self::Full => SILENCE_FULL,
        }
    }
}

/// Returns the arguments of `cargo test` for the whole workspace.
pub(crate) fn whole() -> Vec<String> {
    ["test", "--workspace", "--features", PLANTS].map(str::to_owned).to_vec()
}

/// Builds all test binaries without running them.
pub(crate) fn build(workspace: &Workspace) -> Result<String, Failure> {
    let mut args = whole();
    args.extend(["--no-run".to_owned(), "--quiet".to_owned()]);
    shell::run(workspace.cargo(args)).map(|_| String::new())
}

/// The variable that sets how many tests of a binary run at the same time.
const THREADS: &str = "RUST_TEST_THREADS";

/// The number of tests that run at the same time. Most of them wait for other processes for most of their time: with
/// three tests per processor, those of the daemon take half as long as with one.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) * 3
}

/// The variable that sets the number of shards for the daemons of the jobs tests.
const SHARDS: &str = "ROADSTEAD_TEST_SHARDS";

/// The jobs tests that also run with two shards. They cover each protocol, each kind of worker, drain and the access
/// log. Tests that wait for databases or for long times are left out.
const ON_TWO_SHARDS: [&str; 9] = [
    "access_log::",
    "addresses::",
    "balance::",
    "drain::",
    "framings::",
    "http::sticky::",
    "lines::",
    "lives::",
    "programs::",
];

/// Runs a part of the jobs tests with two shards.
pub(crate) fn on_two_shards(workspace: &Workspace) -> Result<String, Failure> {
    // The arguments are those with which all tests are built, so that nothing is rebuilt.
    let mut args = whole();
    args.extend(["--test=jobs", "--"].map(str::to_owned));
    args.extend(ON_TWO_SHARDS.map(str::to_owned));
    let mut command = noted(workspace, workspace.cargo(args));
    command.env(FAULTS, Counts::Tenth.word()).env(SHARDS, "2");
    finish(command, Counts::Tenth, false, &mut Report::default())
        .map_err(|failure| failure.repeated_by("cargo xtask test --only shards".to_owned()))
}

/// Returns the names of the tests that these `cargo test` arguments select.
pub(crate) fn list(workspace: &Workspace, args: &[String]) -> Result<Vec<String>, Failure> {
    let mut command = workspace.cargo(args);
    command.args(["--quiet", "--", "--list"]);
    Ok(listed(&shell::run(command)?))
}

/// Parses the names from the output of a test binary with `--list`.
fn listed(said: &str) -> Vec<String> {
    said.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Runs tests with these `cargo test` arguments. Returns the report even if tests failed.
pub(crate) fn run(
    workspace: &Workspace,
    args: &[String],
    counts: Counts,
) -> (Report, Result<String, Failure>) {
    run_with(workspace, args, &[], counts)
}

/// Does the same, with arguments for the test binaries.
pub(crate) fn run_with(
    workspace: &Workspace,
    args: &[String],
    rest: &[String],
    counts: Counts,
) -> (Report, Result<String, Failure>) {
    let mut report = Report::default();
    let mut command = noted(workspace, workspace.cargo(args));
    command.arg("--no-fail-fast").env(FAULTS, counts.word());
    if !rest.is_empty() {
        command.arg("--").args(rest);
    }
    let repeat = shell::show(&command);
    let is_shown = rest.iter().any(|it| it == "--nocapture");
    let result = finish(command, counts, is_shown, &mut report);
    (report, result.map_err(|failure| failure.repeated_by(repeat)))
}

fn finish(
    mut command: Command,
    counts: Counts,
    is_shown: bool,
    report: &mut Report,
) -> Result<String, Failure> {
    if counts == Counts::Tenth && std::env::var_os(THREADS).is_none() {
        command.env(THREADS, threads().to_string());
    }
    let success = follow(command, counts.silence(), is_shown, report)?;
    verdict(report, success)
}

/// Runs the command and counts its tests. `is_shown`: what it prints is shown, and not only the counts.
fn follow(
    command: Command,
    silence: Duration,
    is_shown: bool,
    report: &mut Report,
) -> Result<bool, Failure> {
    let report = RefCell::new(report);
    let each = |line: &str| {
        if is_shown {
            println!("{line}");
        }
        let finished = report.borrow_mut().take(line);
        if let Some(binary) = finished.filter(|binary| binary.passed + binary.failed > 0) {
            println!("{}", binary.line());
        }
    };
    // The hanging binary is killed and counts as failed. The following binaries still run.
    let silent = |cargo| {
        let mut report = report.borrow_mut();
        report.take(&format!("silent for {} s, and ended:", silence.as_secs()));
        hang::end_children(cargo).lines().for_each(|line| drop(report.take(line)));
    };
    let status = shell::follow_watched(command, silence, each, silent);
    let report = report.into_inner();
    if let Some(binary) = report.finish().filter(|binary| binary.passed + binary.failed > 0) {
        println!("{}", binary.line());
    }
    status.map(|status| status.success())
}

/// Requires both: no failure in the counts, and success of cargo (a build may fail without counts).
fn verdict(report: &Report, success: bool) -> Result<String, Failure> {
    if success && report.failed == 0 {
        return Ok(report.sum());
    }
    let mut output = String::new();
    for binary in &report.failures {
        output.push_str(&format!("── {}\n{}\n", binary.name, binary.said.trim()));
    }
    if output.is_empty() {
        output.clone_from(&report.outside);
    }
    output.push_str(&report.sum());
    Err(Failure::new(output))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Report {
        let mut report = Report::default();
        for line in text.lines() {
            report.take(line);
        }
        report.finish();
        report
    }

    #[test]
    fn a_build_that_fails_is_no_pass() {
        let report = report("error[E0425]: cannot find value");
        let failure = verdict(&report, false).unwrap_err();
        assert!(failure.output.contains("E0425"), "{}", failure.output);
    }

    #[test]
    fn tests_are_listed_by_their_names() {
        let said = "kills::one: test\nwarning: unused\nweb::two: test\n\n2 tests, 0 benchmarks\n";
        assert_eq!(listed(said), ["kills::one", "web::two"]);
    }

    #[test]
    fn a_failed_test_is_no_pass_whatever_cargo_says() {
        let report = report("     Running tests/a.rs (d/a-1)\nkilled");
        assert!(verdict(&report, true).is_err());
    }
}
