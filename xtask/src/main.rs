//! Development commands: `cargo xtask …`.
//!
//! What it is: tests, fault tests with full counts, benchmarks, generated pages, checks of the rules for the code.
//! What it depends on: cargo, and the command line of `roadstead`. What it must never depend on: a crate of the
//! workspace, so that it builds when they do not.

mod bench;
mod checks;
mod fuzz;
mod hang;
mod package;
mod pages;
mod plot;
mod proof;
mod report;
mod requirements;
mod runner;
mod shell;
mod steps;

mod tidy;
mod untested;

use clap::{Parser, Subcommand};
use shell::Workspace;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Development commands of Roadstead",
    disable_version_flag = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run all checks and tests, as CI does
    Test(checks::TestArguments),
    /// Run the fault tests with their full counts
    Faults(checks::FaultArguments),
    /// Run benchmarks against other software and write their pages
    Bench(bench::BenchArguments),
    /// Fuzz the codecs with libFuzzer
    Fuzz(fuzz::FuzzArguments),
    /// Draw the figures of the documentation
    Plot(plot::PlotArguments),
    /// Check the rules for the code: dependencies, import cycles, unsafe code, headers, sizes, wording
    Tidy(tidy::TidyArguments),
    /// Format the code
    Fmt,
    /// Generate the reference pages
    Docs,
    /// Check licences, advisories and sources of all dependencies (needs cargo-deny)
    Deny,
    /// Package the publishable crates and compile each package
    Package,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let workspace = match Workspace::find() {
        Ok(workspace) => workspace,
        Err(failure) => return failure.show(),
    };
    let result = match arguments.command {
        Task::Test(arguments) => return checks::test(&workspace, &arguments),
        Task::Faults(arguments) => return checks::faults(&workspace, &arguments),
        Task::Bench(arguments) => bench::run(&workspace, &arguments),
        Task::Fuzz(arguments) => fuzz::run(&workspace, &arguments).map(|note| println!("{note}")),
        Task::Plot(arguments) => plot::run(&workspace, &arguments).map(|note| println!("{note}")),
        Task::Tidy(arguments) => tidy::run(&workspace, &arguments).map(|note| println!("{note}")),
        Task::Fmt => shell::run(workspace.cargo(["fmt", "--all"])).map(drop),
        Task::Docs => pages::write(&workspace).map(|note| println!("{note}")),
        Task::Package => package::verify(&workspace),
        Task::Deny => checks::deny(&workspace),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(),
    }
}
