//! `bench programs`: where programs run, how they are connected, the cost of opening one, and a pool of programs
//! against a bare loop.

use super::arguments::Rounds;
use super::goals::{self, Goal};
use super::ground::Ground;
use super::lines;
use super::statistics::Quartiles;
use super::template::{Template, date, row};
use super::trial::{self, Subject};
use super::{alignment, process, section};
use crate::requirements;
use crate::shell::{Failure, Workspace};
use clap::Args;
use std::path::Path;
use std::time::Duration;

#[derive(Args, Debug)]
pub(super) struct ProgramsArguments {
    #[command(flatten)]
    rounds: Rounds,
    /// Seconds measured per round of a pool
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// One-byte writes of the measurement of access times
    #[arg(long, default_value_t = 10_000_000)]
    writes: u32,
    /// The seed for the order of the subjects within the rounds; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Measure only this part; only `alignment` then writes its section of the page
    #[arg(long, value_parser = PARTS)]
    only: Option<String>,
}

const PARTS: [&str; 5] = ["flights", "opening", "atime", "pools", "alignment"];

/// The page with the results.
const PAGE: &str = "docs/bench-programs.md";
const TEXT: Template = Template(include_str!("../../pages/programs.md"));

/// A section of the page, and its goals.
type Part = (String, Vec<Goal>);

pub(super) fn run(workspace: &Workspace, arguments: &ProgramsArguments) -> Result<(), Failure> {
    requirements::provide(requirements::BENCH)?;
    process::raise_descriptors();
    let ProgramsArguments { rounds: Rounds { rounds, dry }, seconds, writes, seed, only } =
        arguments;
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    if only.as_deref() != Some("alignment") {
        workspace.release(&["-p", "roadstead-gateway", "--examples"])?;
    }
    if wanted("pools") || wanted("alignment") {
        workspace.release(&["-p", "roadstead"])?;
    }
    let window = Duration::from_secs((*seconds).into());
    let ground = Ground::new(workspace, "programs", *rounds, window, *seed)?;
    let mut parts = Vec::new();
    for part in PARTS.into_iter().filter(|part| wanted(part)) {
        let (text, goals) = match part {
            "flights" => flights(&ground),
            "opening" => opening(&ground),
            "atime" => atime(&ground, *writes),
            "pools" => pools(&ground, &ground.example("pool_bare")),
            _ => alignment::measure(&ground, TEXT),
        }?;
        println!("{text}");
        parts.push((text, goals));
    }
    let command = format!(
        "cargo xtask bench programs --rounds {rounds} --seconds {seconds} --writes {writes} --seed {}",
        ground.seed
    );
    let texts: Vec<&str> = parts.iter().map(|(text, _)| text.as_str()).collect();
    let goals: Vec<Goal> = parts.iter().flat_map(|(_, goals)| goals.iter().cloned()).collect();
    match only.as_deref() {
        _ if *dry => {}
        None => {
            let (texts, list) = (texts.join("\n"), goals::list(&goals));
            let page =
                TEXT.fill("page", &[("command", &command), ("parts", &texts), ("goals", &list)]);
            workspace.write(PAGE, &page)?;
        }
        Some("alignment") => {
            let by = format!("`{command} --only alignment` on {}", date());
            let section = section::made(texts[0], &by);
            section::put_into(workspace, PAGE, &section, "## What was asked for")?;
        }
        Some(_) => {}
    }
    goals::verdict(goals)
}

/// Returns a measurement of `crates/gateway/examples/programs.rs`.
fn subject(ground: &Ground, words: &[&str]) -> Subject {
    let words = trial::words(&ground.example("programs"), words);
    Subject { name: words[1..].join(" "), words, read: trial::number }
}

/// Measures where the program runs and how it is connected, with 1 and with 64 messages in flight.
fn flights(ground: &Ground) -> Result<Part, Failure> {
    let mut rows = String::new();
    for (in_flight, messages) in [("1", "20000"), ("64", "400000")] {
        for cpu in ["near", "other", "any"] {
            let both = ["pipe", "socket"]
                .map(|io| subject(ground, &["flights", cpu, io, in_flight, messages]));
            let samples = trial::rounds(ground, &both)?;
            let [pipe, socket] = [0, 1].map(|at: usize| Quartiles::of(&samples[at]).shown());
            let ratio = Quartiles::ratio(&samples[1], &samples[0]).shown();
            rows += &row(&[&in_flight, &cpu, &pipe, &socket, &ratio]);
        }
    }
    Ok((TEXT.fill("flights", &[("rows", &rows)]), Vec::new()))
}

/// Measures the time from the request for a program to the report that it runs.
fn opening(ground: &Ground) -> Result<Part, Failure> {
    let (mut rows, mut goals, mut medians) = (String::new(), Vec::new(), Vec::new());
    for (held, limit) in [("10", "1024"), ("10", "20000"), ("10000", "20000")] {
        let both =
            ["supervisor", "posix"].map(|how| subject(ground, &["open", how, held, limit, "50"]));
        let samples = trial::rounds(ground, &both)?;
        let [supervisor, posix] = [0, 1].map(|at: usize| Quartiles::of(&samples[at]));
        let ratio = Quartiles::ratio(&samples[0], &samples[1]);
        rows += &row(&[&held, &limit, &supervisor.shown(), &posix.shown(), &ratio.shown()]);
        let ratio = ratio.median;
        let goal = format!(
            "opening with {held} descriptors and a limit of {limit}: at most 1.3 × posix_spawn ({ratio:.2})"
        );
        goals.push((goal, ratio <= 1.3));
        medians.push(supervisor.median);
    }
    let most = medians.iter().copied().fold(0.0, f64::max) / medians[0];
    let goal = format!(
        "opening costs the same with 10,000 descriptors and any limit (at most {most:.2} ×)"
    );
    goals.push((goal, most <= 1.3));
    Ok((TEXT.fill("opening", &[("rows", &rows)]), goals))
}

/// Measures access times of pipes, as the author of the ring did.
fn atime(ground: &Ground, writes: u32) -> Result<Part, Failure> {
    let count = writes.to_string();
    let both = ["yes", "no"].map(|kept| subject(ground, &["atime", kept, &count]));
    // Each run is ten million writes, so three runs are sufficient.
    let samples = trial::rounds(&Ground { rounds: 3, ..ground.clone() }, &both)?;
    let [yes, no] = [0, 1].map(|at: usize| Quartiles::of(&samples[at]).shown());
    let ratio = Quartiles::ratio(&samples[1], &samples[0]).shown();
    let text =
        TEXT.fill("atime", &[("writes", &writes), ("yes", &yes), ("no", &no), ("ratio", &ratio)]);
    Ok((text, Vec::new()))
}

/// Measures twenty programs with a thousand clients.
fn pools(ground: &Ground, bare: &Path) -> Result<Part, Failure> {
    let (mut rows, mut goals) = (String::new(), Vec::new());
    for pipeline in [1, 64] {
        let [ours, theirs] = lines::pool(ground, pipeline, bare)?;
        let ratio = Quartiles::ratio(&ours, &theirs);
        let [ours, theirs] = [ours, theirs].map(|samples| Quartiles::of(&samples).shown());
        rows += &row(&[&pipeline, &ours, &theirs, &ratio.shown()]);
        let ratio = ratio.median;
        let goal =
            format!("a pool with {pipeline} in flight: at most 1.25 × the bare loop ({ratio:.2})");
        goals.push((goal, ratio <= 1.25));
    }
    Ok((TEXT.fill("pools", &[("rows", &rows)]), goals))
}
