//! Tests with real programs, a real supervisor and real kills.
//!
//! The supervisor is a process of this executable, so the tests have their own `main`. It calls `init` first. Depending
//! on its argument it acts as a daemon that will be killed; otherwise it runs the tests one after another.

#![allow(clippy::unwrap_used, reason = "a test without the harness by which clippy knows one")]

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

mod bounds;
mod crowds;
mod ends;
mod losses;
mod starts;
mod strays;
mod support;
#[path = "../../../database/tests/support/untested.rs"]
mod untested;

/// The limit of descriptors that programs must have, although this process raises its own.
const DESCRIPTORS: u64 = 777;

type Test = (&'static str, fn());

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|role| role == ends::LEADER) {
        ends::lead_a_group();
    }
    lower_the_descriptor_limit();
    spawn::init().expect("the supervisor starts");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == losses::DAEMON) {
        losses::play_the_daemon();
    }
    if arguments.first().is_some_and(|first| first == crowds::CROWDED) {
        crowds::be_crowded();
    }
    if arguments.first().is_some_and(|first| first == bounds::CAPABLE) {
        bounds::be_capable();
    }
    if arguments.first().is_some_and(|first| first == bounds::KEYED) {
        bounds::be_keyed();
    }
    // As in the standard test harness: words select tests by name, `--list` lists them, and other flags are for other
    // harnesses.
    let words: Vec<_> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(*word));
    let all = [starts::ALL, bounds::ALL, crowds::ALL, ends::ALL, strays::ALL, losses::ALL].concat();
    let tests: Vec<Test> = all.into_iter().filter(|(name, _)| chosen(name)).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    run(&tests)
}

fn run(tests: &[Test]) -> ExitCode {
    println!("\nrunning {} tests", tests.len());
    let mut failed = Vec::new();
    let whole = Instant::now();
    for (name, test) in tests {
        print!("test {name} ... ");
        let _ = io::stdout().flush();
        let began = Instant::now();
        match catch_unwind(AssertUnwindSafe(test)) {
            Ok(()) => println!("ok ({:?})", began.elapsed()),
            Err(_) => {
                println!("FAILED");
                failed.push(name);
            }
        }
    }
    let verdict = if failed.is_empty() { "ok" } else { "FAILED" };
    let (passed, failures) = (tests.len() - failed.len(), failed.len());
    let took = whole.elapsed().as_secs_f64();
    println!(
        "\ntest result: {verdict}. {passed} passed; {failures} failed; 0 ignored; finished in {took:.2}s"
    );
    failed.iter().for_each(|name| println!("    {name}"));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Lowers the limit in the first process only: its child daemons must raise it again and restore it for programs.
fn lower_the_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let lowered = Rlimit { current: Some(DESCRIPTORS), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, lowered).expect("a soft limit can be lowered");
}
