//! The chores of this house: `cargo xtask …`.
//!
//! What it is: everything that is done to the code rather than by it: the checks that must pass,
//! the fault tests with full counts, measurements, generated pages. What it depends on: cargo, the
//! house rules, the command line of `roadstead`. What it must never depend on: a room from the inside;
//! it depends on none of them, so that it builds when they do not.

mod bench;
mod checks;
mod fuzz;
mod hang;
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
#[command(name = "cargo xtask", about = "The chores of this house", disable_version_flag = true)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Everything that must pass before a change is taken
    Test(checks::TestArguments),
    /// The fault tests, with their full counts
    Faults(checks::FaultArguments),
    /// Measure against the peers, and write the pages with the results
    Bench(bench::BenchArguments),
    /// Look for inputs that break a codec, with libFuzzer
    Fuzz(fuzz::FuzzArguments),
    /// Draw the pictures of the documentation
    Plot(plot::PlotArguments),
    /// The house rules: arrows between rooms, import cycles, runtimes, unsafe, headers, lengths, words
    Tidy(tidy::TidyArguments),
    /// Format everything
    Fmt,
    /// Make the generated pages again
    Docs,
    /// Licences, advisories and sources of all packages (needs cargo-deny)
    Deny,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let workspace = match Workspace::find() {
        Ok(workspace) => workspace,
        Err(failure) => return failure.show(),
    };
    let result = match arguments.chore {
        Chore::Test(arguments) => return checks::test(&workspace, &arguments),
        Chore::Faults(arguments) => return checks::faults(&workspace, &arguments),
        Chore::Bench(arguments) => bench::run(&workspace, &arguments),
        Chore::Fuzz(arguments) => fuzz::run(&workspace, &arguments).map(|note| println!("{note}")),
        Chore::Plot(arguments) => plot::run(&workspace, &arguments).map(|note| println!("{note}")),
        Chore::Tidy(arguments) => tidy::run(&workspace, &arguments).map(|note| println!("{note}")),
        Chore::Fmt => shell::run(workspace.cargo(["fmt", "--all"])).map(drop),
        Chore::Docs => pages::write(&workspace).map(|note| println!("{note}")),
        Chore::Deny => checks::deny(&workspace),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(),
    }
}
