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
    /// The time of the fastest Erlang by its own.
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
        (
            "Erlang/OTP, no busy waiting",
            erlang(&["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"]),
        ),
    ];
    const ERLANG: usize = 3;
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
        let median = |at: &usize| Quartiles::of(&samples[*at]).median;
        let fastest = (ERLANG..samples.len())
            .min_by(|one, other| median(one).total_cmp(&median(other)))
            .expect("Erlang is among the subjects");
        let cells: Vec<Cell> = subjects
            .iter()
            .zip(&samples)
            .map(|(subject, own)| Cell {
                name: subject.name.clone(),
                time: Quartiles::of(own),
                by_bare: trial::ratio(own, &samples[0]),
                erlang_by: trial::ratio(&samples[fastest], own),
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
        "### On {place}\n\n| | µs per message | × bare loop | time of the fastest Erlang ÷ its own | context switches per \
         message | system calls per message |\n|---|---|---|---|---|---|\n"
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
        goal(
            format!("the gateway at least 1.2 × as fast as the fastest Erlang ({erlang:.2})"),
            erlang >= 1.2,
        );
    }
    goals
}

/// Where the difference to the bare loop goes.
const WHY: &str = "The gateway makes as many system calls per message as the bare loop; the rest of its time is computation. A profile \
                   (`perf record -e cpu-clock:u`) shows no single cause: moving requests and outcomes between tables is a tenth, and \
                   everything else (admission, the decision kept for `why`, counters, publishing) at most 4 % each. The client in the same \
                   process is included.\n\n";

fn page(command: &str, tables: &[(&str, Vec<Cell>)]) -> String {
    let Machine { cores, kernel, date, .. } = super::page::machine();
    let mut text = format!(
        "# Rings of programs: measurements\n\nGenerated by `{command}` on {date}. Do not edit. {cores} cores, Linux {kernel}.\n\n\
         Rings of `cat` processes: a line with a number passes from program to program, one less at each, until it is 0, \
         which ends the ring. All rings run at the same time; the time is from the first token to the last 0, without \
         starting the programs. Each subject runs once per round, in a random order that `--seed` repeats. Figures are medians with quartiles; \
         ratios are formed within a round. Context switches and system calls are those of all processes, programs included, in one \
         further run under `perf stat`, starting included.\n\n\
         The bare loop is `crates/gateway/examples/ring/bare.rs`: epoll, read, write. `event + spawn` is the event loop \
         and the spawner without protocols and pools. `gateway` has one pool per ring and a client in the same process. \
         Erlang is `xtask/peers/ring.erl`: one process with a port in line mode per program, with default flags, with one scheduler \
         (`+S 1:1`), and without busy waiting (`+sbwt none` and the like), which otherwise takes CPU time from the programs. Ratios to Erlang \
         are to the fastest of the three.\n\n\
         The placement of the programs decides most. On all processors, the kernel tends to wake the children of the bare loop on the \
         processor of the loop, and those of a supervisor on the other one, which costs a wake-up across processors per message. \
         The option `cpu = \"near\"` of a pool gives the table of one processor.\n\n"
    );
    for (place, cells) in tables {
        text += &table(place, cells);
        text.push('\n');
    }
    text += WHY;
    text += "## Goals\n\n";
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
