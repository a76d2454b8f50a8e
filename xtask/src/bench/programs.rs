//! `bench programs`: where programs run, what they are connected by, what opening one costs, and a
//! pool of them against a bare loop.

use super::ground::{self, Ground};
use super::lines::{self, PoolShape};
use super::order;
use super::page::Machine;
use super::statistics::Quartiles;
use super::trial::{self, Subject, shown};
use super::{alignment, process, section};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use std::fs;

#[derive(Args, Debug)]
pub(super) struct ProgramsArguments {
    /// Rounds
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds that are measured in each round of a pool
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// One-byte writes of the measurement of access times
    #[arg(long, default_value_t = 10_000_000)]
    writes: u32,
    /// Seed of the order of the subjects within the rounds; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Only this part; of these, only `alignment` is then written, as its section of the page
    #[arg(long, value_parser = ["flights", "opening", "atime", "pools", "alignment"])]
    only: Option<String>,
    /// Show the tables without writing the page
    #[arg(long)]
    dry: bool,
}

/// The page.
const PAGE: &str = "docs/bench-programs.md";

/// A table, and what was asked for of it.
struct Part {
    text: String,
    goals: Vec<(String, bool)>,
}

pub(super) fn run(workspace: &Workspace, arguments: &ProgramsArguments) -> Result<(), Failure> {
    requirements::provide(requirements::BENCH)?;
    process::raise_descriptors();
    let ProgramsArguments { rounds, seconds, writes, seed, only, dry } = arguments;
    let seed = seed.unwrap_or_else(order::seed);
    if only.as_deref() != Some("alignment") {
        let examples = ["build", "--release", "-p", "roadstead-gateway", "--examples"];
        shell::run(workspace.cargo(examples))?;
    }
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let program = workspace.built("release", "examples/programs");
    let subject = |name: &str, words: &[&str]| Subject {
        name: name.to_owned(),
        words: trial::words(&program, words),
        read: trial::number,
    };
    let mut parts = Vec::new();
    if wanted("flights") {
        parts.push(flights(&subject, *rounds, seed)?);
    }
    if wanted("opening") {
        parts.push(opening(&subject, *rounds, seed)?);
    }
    if wanted("atime") {
        parts.push(atime(&subject, *writes, seed)?);
    }
    if wanted("pools") {
        let ground = ground::prepare(workspace, *rounds, *seconds)?;
        parts.push(pools(&ground, &workspace.built("release", "examples/pool_bare"))?);
    }
    if wanted("alignment") {
        let ground = ground::prepare(workspace, *rounds, *seconds)?;
        let alignment::Measured { text, goals } = alignment::measure(&ground)?;
        if only.is_some() && !dry {
            let command = format!(
                "`cargo xtask bench programs --only alignment --rounds {rounds} --seconds {seconds}` on {}",
                super::page::machine().date
            );
            let section = section::made(&text, &command);
            section::put_into(workspace, PAGE, &section, "## What was asked for")?;
        }
        parts.push(Part { text, goals });
    }
    for part in &parts {
        println!("{}", part.text);
    }
    if only.is_none() && !dry {
        let command = format!(
            "cargo xtask bench programs --rounds {rounds} --seconds {seconds} --writes {writes} --seed {seed}"
        );
        fs::write(workspace.root.join(PAGE), page(&command, &parts))
            .map_err(|error| Failure::new(format!("{PAGE}: {error}")))?;
        println!("wrote {PAGE}");
    }
    let goals = parts.into_iter().flat_map(|part| part.goals);
    let missed: Vec<String> =
        goals.filter_map(|(goal, met)| (!met).then(|| format!("missed: {goal}"))).collect();
    if missed.is_empty() { Ok(()) } else { Err(Failure::new(missed.join("\n"))) }
}

/// Where the program runs, and what it is connected by, with one message and with 64 on their way.
fn flights(
    subject: &dyn Fn(&str, &[&str]) -> Subject,
    rounds: u32,
    seed: u64,
) -> Result<Part, Failure> {
    let mut text = "## Where a program runs, and by what it is connected\n\nMicroseconds for a message of 16 \
                    bytes through one `cat`. `near`: on the loop's own processor; `other`: on any but that; `any`: where \
                    the kernel puts it.\n\n| In flight | Placed | Pipe | Socket | Socket × pipe |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    for (in_flight, messages) in [("1", "20000"), ("64", "400000")] {
        for cpu in ["near", "other", "any"] {
            let both = ["pipe", "socket"]
                .map(|io| subject(io, &["flights", cpu, io, in_flight, messages]));
            let samples = trial::rounds(&both, rounds, seed)?;
            let [pipe, socket] = [&samples[0], &samples[1]].map(|own| shown(Quartiles::of(own)));
            let ratio = shown(trial::ratio(&samples[1], &samples[0]));
            text += &format!("| {in_flight} | {cpu} | {pipe} | {socket} | {ratio} |\n");
        }
    }
    text += "\nSo `io = \"pipe\"` is the default. `cpu = \"any\"` is, too: `near` is the best for programs that answer in \
             microseconds and the worst for those that compute, for it gives them the loop's own processor.\n";
    Ok(Part { text, goals: Vec::new() })
}

/// From asking for a program to knowing that it runs.
fn opening(
    subject: &dyn Fn(&str, &[&str]) -> Subject,
    rounds: u32,
    seed: u64,
) -> Result<Part, Failure> {
    let mut text = "## Opening a program\n\nMicroseconds from asking for a `cat` with three pipes to knowing that it \
                    runs, the median of 50 in each round, by the spawner and its keeper, and by `posix_spawn` \
                    in the process itself, which waits until the program is executed and puts it into no session.\n\n\
                    | Open descriptors | Soft limit | Keeper | posix_spawn | Keeper × posix_spawn |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    let mut goals = Vec::new();
    let mut medians = Vec::new();
    for (held, limit) in [("10", "1024"), ("10", "20000"), ("10000", "20000")] {
        let both = ["keeper", "posix"].map(|how| subject(how, &["open", how, held, limit, "50"]));
        let samples = trial::rounds(&both, rounds, seed)?;
        let [keeper, posix] = [&samples[0], &samples[1]].map(|own| Quartiles::of(own));
        let ratio = trial::ratio(&samples[0], &samples[1]);
        text += &format!(
            "| {held} | {limit} | {} | {} | {} |\n",
            shown(keeper),
            shown(posix),
            shown(ratio)
        );
        goals.push((
            format!(
                "opening with {held} descriptors and a limit of {limit}: at most 1.3 × posix_spawn ({:.2})",
                ratio.median
            ),
            ratio.median <= 1.3,
        ));
        medians.push(keeper.median);
    }
    let most = medians.iter().copied().fold(0.0, f64::max) / medians[0];
    goals.push((
        format!(
            "opening costs the same with 10,000 descriptors and any limit (at most {most:.2} ×)"
        ),
        most <= 1.3,
    ));
    Ok(Part { text, goals })
}

/// Access times of pipes, as the ring's author measured them.
fn atime(
    subject: &dyn Fn(&str, &[&str]) -> Subject,
    writes: u32,
    seed: u64,
) -> Result<Part, Failure> {
    let count = writes.to_string();
    let both = ["yes", "no"].map(|kept| subject(kept, &["atime", kept, &count]));
    // Each run is ten million writes: three of them are a measurement.
    let samples = trial::rounds(&both, 3, seed)?;
    let [yes, no] = [&samples[0], &samples[1]].map(|own| shown(Quartiles::of(own)));
    let ratio = shown(trial::ratio(&samples[1], &samples[0]));
    let text = format!(
        "## Access times of pipes\n\n{writes} one-byte writes into a pipe that another thread reads byte by byte, \
         nanoseconds each, three rounds: {yes} with access times, {no} with `O_NOATIME` on both ends, {ratio} × as \
         long. The kernel takes the flag for a pipe and it has no effect any more; the spawner does not set it.\n"
    );
    Ok(Part { text, goals: Vec::new() })
}

/// Twenty programs and a thousand clients.
fn pools(ground: &Ground, bare: &std::path::Path) -> Result<Part, Failure> {
    let mut text = "## A pool of 20 programs, 1000 clients\n\nCPU of the daemon with its keeper for a line, in µs, \
                    against a bare epoll loop (`crates/gateway/examples/pool_bare.rs`: no limits, timers or \
                    queue) with the same programs, `roadstead worker --echo`, and the same load, 10 lines a second \
                    on each connection.\n\n| In flight a program | Roadstead | Bare loop | Roadstead × bare |\n|---|---|---|---|\n"
        .to_owned();
    let mut goals = Vec::new();
    for pipeline in [1, 64] {
        let pairs = lines::pool(ground, PoolShape { pipeline, bare })?;
        let [ours, theirs] = [pairs.ours(), pairs.theirs()].map(shown);
        let ratio = pairs.ours_by_theirs();
        text += &format!("| {pipeline} | {ours} | {theirs} | {} |\n", shown(ratio));
        goals.push((
            format!(
                "a pool with {pipeline} in flight: at most 1.25 × the bare loop ({:.2})",
                ratio.median
            ),
            ratio.median <= 1.25,
        ));
    }
    Ok(Part { text, goals })
}

fn page(command: &str, parts: &[Part]) -> String {
    let Machine { cores, kernel, date, .. } = super::page::machine();
    let mut text = format!(
        "# Programs, measured\n\nMade by `{command}` on {date}: {cores} cores, Linux {kernel}. Do not edit it by hand. \
         Both sides of a comparison run in every round, in random order (pools: which side is first alternates); shown are medians with quartiles over the rounds, \
         ratios within a round.\n\n"
    );
    for part in parts {
        text += &part.text;
        text.push('\n');
    }
    text += "## What was asked for\n\n";
    for (goal, met) in parts.iter().flat_map(|part| &part.goals) {
        text += &format!("- {}: {goal}\n", if *met { "met" } else { "**missed**" });
    }
    text
}
