//! The commands that decide whether a change is good: `test`, `faults`, `deny`.

use crate::report::Report;
use crate::requirements;
use crate::runner::{self, Counts, PLANTS};
use crate::shell::{self, Failure, Workspace};
use crate::steps::Steps;
use crate::{fuzz, package, pages, proof, tidy, untested};
use clap::Args;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The steps of `test`, in their order.
const STEPS: [&str; 15] = [
    "tools",
    "format",
    "tidy",
    "clippy",
    "features",
    "build",
    "tests",
    "shards",
    "loom",
    "fuzz",
    "docs",
    "reference",
    "examples",
    "package",
    "rust-version",
];

#[derive(Args, Debug)]
pub(crate) struct TestArguments {
    /// Continue after a failed step
    #[arg(long)]
    keep_going: bool,
    /// Run only these steps
    #[arg(long, value_name = "STEP", value_parser = STEPS)]
    only: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct FaultArguments {
    /// Run a tenth of the counts, as `test` does
    #[arg(long)]
    tenth: bool,
    /// Run only the tests whose name contains this
    #[arg(value_name = "NAME")]
    filter: Option<String>,
    /// After `--`: arguments for the test binary, such as `--nocapture`
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Runs everything that must pass. The last line is the sum of all test binaries.
pub(crate) fn test(workspace: &Workspace, arguments: &TestArguments) -> ExitCode {
    let mut steps = Steps::new(arguments.keep_going, &arguments.only);
    let mut report = None;
    steps.step("tools", "cargo xtask test --only tools", || {
        let tools = requirements::provide(requirements::TESTS)?;
        let node = requirements::provide_node(&workspace.root)?;
        Ok(format!("{tools}, {node}, {}", requirements::provide_go(&workspace.root)?))
    });
    steps.step("format", "cargo xtask fmt", || {
        shell::run(workspace.cargo(["fmt", "--all", "--check", "--", "--color", "never"]))
            .map(|_| String::new())
            .map_err(|mut failure| {
                failure.output.push_str("\nfix with: cargo xtask fmt");
                failure
            })
    });
    steps.step("tidy", "cargo xtask tidy", || tidy::check(workspace));
    steps.step("clippy", "cargo xtask test --only clippy", || clippy(workspace));
    steps.step("features", "cargo xtask test --only features", || features(workspace));
    steps.step("build", "cargo xtask test --only build", || runner::build(workspace));
    steps.step("tests", "cargo xtask test --only tests", || {
        let (counted, result) = runner::run(workspace, &runner::whole(), Counts::Tenth);
        report = Some(counted);
        result
    });
    steps.step("loom", "cargo xtask test --only loom", || proof::bounded(workspace));
    steps.step("shards", "cargo xtask test --only shards", || runner::on_two_shards(workspace));
    steps.step("fuzz", "cargo xtask test --only fuzz", || fuzz::check(workspace));
    steps.step("docs", "cargo xtask test --only docs", || documentation(workspace));
    steps.step("reference", pages::REPEAT, || pages::check(workspace));
    steps.step("examples", "cargo xtask test --only examples", || examples(workspace));
    steps.step("package", "cargo xtask package", || package::check(workspace));
    steps.step("rust-version", "cargo xtask test --only rust-version", || {
        package::check_rust_versions(workspace)
    });
    end(&steps, report.as_ref(), &untested::take(workspace))
}

/// Runs the fault tests with full counts, and the proofs without bounds.
pub(crate) fn faults(workspace: &Workspace, arguments: &FaultArguments) -> ExitCode {
    let mut steps = Steps::new(false, &[]);
    let mut report = None;
    steps.step("tools", "cargo xtask test --only tools", || {
        let tools = requirements::provide(requirements::TESTS)?;
        Ok(format!("{tools}, {}", requirements::provide_go(&workspace.root)?))
    });
    steps.step("faults", "cargo xtask faults", || {
        // The arguments are those with which all tests are built, so that nothing is rebuilt.
        let mut args = runner::whole();
        args.extend(["--test=faults", "--test=nats"].map(str::to_owned));
        if let Some(filter) = &arguments.filter {
            find_tests(&runner::list(workspace, &args)?, filter)?;
        }
        let rest: Vec<String> = arguments.filter.iter().chain(&arguments.rest).cloned().collect();
        let counts = if arguments.tenth { Counts::Tenth } else { Counts::Full };
        let (counted, result) = runner::run_with(workspace, &args, &rest, counts);
        report = Some(counted);
        result
    });
    if !arguments.tenth && arguments.filter.is_none() && arguments.rest.is_empty() {
        steps.step("loom", "cargo xtask faults", || proof::whole(workspace));
    }
    end(&steps, report.as_ref(), &untested::take(workspace))
}

/// Prints what was `left_out`, and the last line. It contains other failures and untested parts after the counts, so
/// that the counts are not mistaken for the whole result.
fn end(steps: &Steps, report: Option<&Report>, left_out: &[String]) -> ExitCode {
    println!("took {}", steps.took());
    let mut last = report.map_or_else(|| "no tests were run".to_owned(), Report::sum);
    if !left_out.is_empty() {
        println!("not tested here:");
        left_out.iter().for_each(|line| println!("  {line}"));
        last.push_str(&format!("; not tested: {}", left_out.len()));
    }
    if !steps.failed().is_empty() {
        last.push_str(&format!("; failed: {}", steps.failed().join(", ")));
    }
    println!("{last}");
    if steps.failed().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs clippy on the code as it is tested and as it is released.
fn clippy(workspace: &Workspace) -> Result<String, Failure> {
    let tested = ["clippy", "--quiet", "--workspace", "--all-targets", "--features", PLANTS];
    let released = ["clippy", "--quiet", "--workspace"];
    for args in [&tested[..], &released[..]] {
        shell::run(workspace.cargo(args.iter().chain(&["--", "-D", "warnings"])))?;
    }
    Ok(String::new())
}

/// Checks each database driver alone and no driver, and the program with each of its features alone and with none,
/// because an embedder selects features. Without features the tests of the library for embedders are also compiled.
fn features(workspace: &Workspace) -> Result<String, Failure> {
    let database = ["-p", "roadstead-database", "--lib"];
    let program = ["-p", "roadstead", "--lib", "--bins"];
    let builds = ["", "sqlite", "postgres", "mysql", "mysql,postgres,tls"]
        .map(|features| (&database[..], features))
        .into_iter()
        .chain(
            ["", "daemon", "admin", "cluster", "databases"]
                .map(|features| (&program[..], features)),
        );
    for (package, features) in builds {
        let build = ["clippy", "--quiet", "--no-default-features", "--features", features];
        let args = build.iter().chain(package).chain(&["--", "-D", "warnings"]);
        shell::run(workspace.cargo(args))?;
    }
    let embed = ["check", "--quiet", "-p", "roadstead", "--no-default-features", "--test", "embed"];
    shell::run(workspace.cargo(embed))?;
    Ok("roadstead-database and roadstead with each feature alone, and with none".to_owned())
}

fn documentation(workspace: &Workspace) -> Result<String, Failure> {
    let mut command = workspace.cargo(["doc", "--quiet", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    shell::run(command).map(|_| String::new())
}

/// Examples of `roadstead` that serve their own clients and end.
const SELF_SERVING: &[&str] = &["handler", "handler_udp", "handler_database"];

/// Checks that every configuration under `examples/` is valid, that every script compiles, and that the examples for
/// embedders run.
fn examples(workspace: &Workspace) -> Result<String, Failure> {
    let mut files = Vec::new();
    collect(&workspace.root.join("examples"), &mut files)?;
    let program = pages::program(workspace)?;
    let mut checked = 0;
    for file in &files {
        let mut command = match file.extension().and_then(OsStr::to_str) {
            Some("toml") => Command::new(&program),
            Some("pl") => Command::new("perl"),
            _ => continue,
        };
        let perl = command.get_program() == "perl";
        // The command runs beside the file, as its README says, so that relative paths in it are correct.
        command.current_dir(file.parent().unwrap_or(&workspace.root));
        command.arg(if perl { "-wc" } else { "check" }).arg(file.file_name().unwrap_or_default());
        shell::run(command).map_err(|failure| {
            let place = workspace.shown(file).display();
            Failure { output: format!("{place}\n{}", failure.output), ..failure }
        })?;
        checked += 1;
    }
    if checked == 0 {
        return Err(Failure::new("there is no example under examples/"));
    }
    for example in SELF_SERVING {
        // The arguments are those with which the tests are built, so that nothing is built twice.
        let args =
            ["run", "--quiet", "-p", "roadstead", "--features", "plants", "--example", example];
        shell::run(workspace.cargo(args))?;
    }
    Ok(format!("{checked} files, {} programs", SELF_SERVING.len()))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = Failure::at(folder.display());
    for entry in fs::read_dir(folder).map_err(&failed)? {
        let path = entry.map_err(&failed)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

/// Fails if no test name contains this, and prints the names of the existing tests.
fn find_tests(names: &[String], filter: &str) -> Result<(), Failure> {
    if names.iter().any(|name| name.contains(filter)) {
        return Ok(());
    }
    let all = names.join("\n  ");
    Err(Failure::new(format!("no fault test has `{filter}` in its name; the tests are:\n  {all}")))
}

/// Checks licences, advisories and sources with cargo-deny. It is not a step of `test`, because it needs the network
/// and a tool that takes minutes to build.
pub(crate) fn deny(workspace: &Workspace) -> Result<(), Failure> {
    if shell::run(workspace.cargo(["deny", "--version"])).is_err() {
        return Err(Failure::new("cargo-deny is missing")
            .repeated_by("cargo install cargo-deny --locked && cargo xtask deny"));
    }
    let said = shell::run(workspace.cargo(["deny", "check"]))?;
    print!("{said}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_tests_are_found_by_a_part_of_their_name() {
        let names = ["kills::one", "web::hangs"].map(str::to_owned);
        for filter in ["kills::one", "kills", "hang", ""] {
            assert!(find_tests(&names, filter).is_ok(), "{filter}");
        }
        let failure = find_tests(&names, "faults").unwrap_err();
        for due in ["`faults`", "\n  kills::one\n  web::hangs"] {
            assert!(failure.output.contains(due), "{}", failure.output);
        }
    }

    #[test]
    fn every_step_can_be_named() {
        let source = include_str!("checks.rs");
        for step in STEPS {
            assert!(source.contains(&format!("steps.step(\"{step}\"")), "{step}");
        }
    }
}
