//! `bench ring`: a token through rings of `cat`s, over several loops.

use super::order;
use super::page::Machine;
use super::statistics::Quartiles;
use super::trial::{self, Subject, shown};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use std::fs;
use std::process::Command;

#[derive(Args, Debug)]
pub(super) struct RingArguments {
    /// Rounds
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Programs in a ring
    #[arg(long, default_value_t = 10)]
    programs: u32,
    /// How often the token of each ring is handed on
    #[arg(long, default_value_t = 10_000)]
    hops: u32,
    /// Rings at once
    #[arg(long, default_value_t = 8)]
    rings: u32,
    /// Seed of the order of the subjects within the rounds; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Show the tables without writing the page
    #[arg(long)]
    dry: bool,
}

/// What was measured of one subject, in one place.
struct Cell {
    name: String,
    /// Microseconds a message.
    time: Quartiles,
    by_bare: Quartiles,
    erlang_by: Quartiles,
    /// Context switches and system calls a message, programs included.
    counted: Option<[f64; 2]>,
}

const PLACES: [&str; 2] = ["all processors", "one processor"];

pub(super) fn run(workspace: &Workspace, arguments: &RingArguments) -> Result<(), Failure> {
    requirements::provide(requirements::BENCH_RING)?;
    let example = ["build", "--release", "-p", "roadstead-gateway", "--example", "ring"];
    shell::run(workspace.cargo(example))?;
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    let mut compile = Command::new("erlc");
    compile.arg("-o").arg(&folder).arg(workspace.root.join("xtask/peers/ring.erl"));
    shell::run(compile)?;
    let ring = workspace.built("release", "examples/ring");
    let RingArguments { rounds, programs, hops, rings, seed, dry } = arguments;
    let seed = seed.unwrap_or_else(order::seed);
    let shape = [programs, hops, rings].map(ToString::to_string);
    let shape: Vec<&str> = shape.iter().map(String::as_str).collect();
    let ours = |mode: &str| trial::words(&ring, &[&[mode], &shape[..]].concat());
    let folder = folder.display().to_string();
    let erlang = |flags: &[&str]| {
        let run = [&["-noshell", "-pa", &folder], flags, &["-run", "ring", "main"], &shape[..]];
        trial::words("erl".as_ref(), &run.concat())
    };
    let all = [
        ("bare epoll loop", ours("bare")),
        ("event + spawn", ours("event")),
        ("gateway", ours("gateway")),
        ("Erlang/OTP", erlang(&[])),
        ("Erlang/OTP, one scheduler", erlang(&["+S", "1:1"])),
    ];
    let messages = f64::from(*hops) * f64::from(*rings);
    let mut tables = Vec::new();
    for place in PLACES {
        let subjects: Vec<Subject> = all
            .iter()
            .map(|(name, words)| Subject {
                name: (*name).to_owned(),
                words: if place == PLACES[1] { trial::on_one(words) } else { words.clone() },
                read: microseconds,
            })
            .collect();
        let samples = trial::rounds(&subjects, *rounds, seed)?;
        let cells: Vec<Cell> = subjects
            .iter()
            .zip(&samples)
            .map(|(subject, own)| Cell {
                name: subject.name.clone(),
                time: Quartiles::of(own),
                by_bare: trial::ratio(own, &samples[0]),
                erlang_by: trial::ratio(&samples[3], own),
                counted: subject.counted().map(|counts| counts.map(|count| count / messages)),
            })
            .collect();
        println!("{}", table(place, &cells));
        tables.push((place, cells));
    }
    let command = format!(
        "cargo xtask bench ring --rounds {rounds} --programs {programs} --hops {hops} --rings {rings} --seed {seed}"
    );
    if !dry {
        fs::write(workspace.root.join("docs/bench-ring.md"), page(&command, &tables))
            .map_err(|error| Failure::new(format!("docs/bench-ring.md: {error}")))?;
        println!("wrote docs/bench-ring.md");
    }
    let missed: Vec<String> = goals(&tables)
        .into_iter()
        .filter_map(|(goal, met)| (!met).then(|| format!("missed: {goal}")))
        .collect();
    if missed.is_empty() { Ok(()) } else { Err(Failure::new(missed.join("\n"))) }
}

/// The last number of the closing line: `… 114000 messages/s, 8.77 µs each`.
fn microseconds(said: &str) -> Option<f64> {
    let line = said.lines().last()?;
    let words: Vec<&str> = line.split_whitespace().collect();
    words.iter().rev().find_map(|word| word.parse().ok())
}

fn table(place: &str, cells: &[Cell]) -> String {
    let mut text = format!(
        "### On {place}\n\n| | µs a message | × bare loop | Erlang's time ÷ its | context switches a \
         message | system calls a message |\n|---|---|---|---|---|---|\n"
    );
    for cell in cells {
        let [time, bare, erlang] = [cell.time, cell.by_bare, cell.erlang_by].map(shown);
        let count = |at: usize| {
            cell.counted.map_or_else(|| "–".to_owned(), |all| format!("{:.2}", all[at]))
        };
        let [switches, calls] = [0, 1].map(count);
        text += &format!("| {} | {time} | {bare} | {erlang} | {switches} | {calls} |\n", cell.name);
    }
    text
}

/// What was asked for, and whether it was so.
fn goals(tables: &[(&str, Vec<Cell>)]) -> Vec<(String, bool)> {
    let mut goals = Vec::new();
    for (place, cells) in tables {
        let (event, gateway) = (&cells[1].by_bare, &cells[2].by_bare);
        let erlang = cells[2].erlang_by.median;
        let mut goal = |text: String, met| goals.push((format!("{place}: {text}"), met));
        goal(
            format!("event + spawn at most 1.10 × the bare loop ({:.2})", event.median),
            event.median <= 1.10,
        );
        goal(
            format!("the gateway at most 1.25 × the bare loop ({:.2})", gateway.median),
            gateway.median <= 1.25,
        );
        goal(format!("the gateway at least 1.2 × as fast as Erlang ({erlang:.2})"), erlang >= 1.2);
    }
    goals
}

/// What a profile says of the difference.
const WHY: &str = "Why the gateway takes longer than the loop: where its system calls a message are as many as the loop's, as the tables show, \
                   the rest is its own computing. A profile \
                   (`perf record -e cpu-clock:u`) has no one place in it: moving requests and outcomes between the tables \
                   is a tenth, and everything else (admission, the decision that is kept for `why`, the exchange, counting, publishing) \
                   at most a twenty-fifth each. The client within the process, its closures and texts, is part of it.\n\n";

fn page(command: &str, tables: &[(&str, Vec<Cell>)]) -> String {
    let Machine { cores, kernel, date, .. } = super::page::machine();
    let mut text = format!(
        "# The ring, measured\n\nMade by `{command}` on {date}: {cores} cores, Linux {kernel}. Do not edit it by \
         hand.\n\n\
         Rings of `cat`s: a line with a number goes from program to program, one less at each, until it is 0, \
         which tears the ring down. All rings run at once; timed is from the first token to the last 0, without \
         the setting up. Each subject runs once per round, in a random order that `--seed` repeats; shown are medians with quartiles, ratios within \
         a round. Switches and calls are those of the whole family, programs included, of one further run by \
         `perf stat`, setting up included.\n\n\
         The bare loop is `crates/gateway/examples/ring/bare.rs`: epoll, read, write. `event + spawn` is the loop \
         and the spawner without protocols and pools. The gateway is a pool a ring, asked by the client within \
         the process. Erlang is `xtask/peers/ring.erl`: a process with a port in line mode for each program.\n\n\
         Where the kernel puts the programs decides most: on all processors the children of the bare loop tend to be \
         woken on its own processor, those of a keeper on another, which costs a wake-up across processors for \
         every message. `cpu = \"near\"` of a pool is the table of one processor.\n\n"
    );
    for (place, cells) in tables {
        text += &table(place, cells);
        text.push('\n');
    }
    text += WHY;
    text += "## What was asked for\n\n";
    for (goal, met) in goals(tables) {
        text += &format!("- {}: {goal}\n", if met { "met" } else { "**missed**" });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_gives_its_time() {
        let said = "ring 1: 10 programs in 4.4 ms\n80000 messages over 80 programs in 1.517 s: 52740 \
                    messages/s, 18.96 us each\n";
        assert_eq!(microseconds(said), Some(18.96));
    }
}
