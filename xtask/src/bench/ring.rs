//! `bench ring`: a token through rings of `cat`s, over several loops.

use super::arguments::Rounds;
use super::goals::{self, Goal};
use super::ground::Ground;
use super::statistics::Quartiles;
use super::template::{Template, row};
use super::trial::{self, Subject};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use std::process::Command;
use std::time::Duration;

#[derive(Args, Debug)]
pub(super) struct RingArguments {
    #[command(flatten)]
    rounds: Rounds,
    /// Programs per ring
    #[arg(long, default_value_t = 10)]
    programs: u32,
    /// How often the token of each ring is passed on
    #[arg(long, default_value_t = 10_000)]
    hops: u32,
    /// The number of concurrent rings
    #[arg(long, default_value_t = 8)]
    rings: u32,
    /// The seed for the order of the subjects within the rounds; random by default
    #[arg(long)]
    seed: Option<u64>,
}

const TEXT: Template = Template(include_str!("../../pages/ring.md"));

/// The results of one subject on all processors or on one.
struct Cell {
    name: String,
    /// Microseconds per message.
    time: Quartiles,
    by_bare: Quartiles,
    /// The ratio of the time of the fastest Erlang to this one.
    erlang_by: Quartiles,
    /// Context switches and system calls per message, including the programs.
    counted: Option<[f64; 2]>,
}

const PLACES: [&str; 2] = ["all processors", "one processor"];

pub(super) fn run(workspace: &Workspace, arguments: &RingArguments) -> Result<(), Failure> {
    requirements::provide(requirements::BENCH_RING)?;
    let ring = workspace.example("roadstead-gateway", "ring")?;
    let RingArguments { rounds: Rounds { rounds, dry }, programs, hops, rings, seed } = arguments;
    let ground = Ground::new(workspace, "ring", *rounds, Duration::ZERO, *seed)?;
    let mut compile = Command::new("erlc");
    compile.arg("-o").arg(&ground.folder).arg(ground.root.join("xtask/peers/ring.erl"));
    shell::run(compile)?;
    let shape = [programs, hops, rings].map(ToString::to_string);
    let shape: Vec<&str> = shape.iter().map(String::as_str).collect();
    let ours = |mode: &str| trial::words(&ring, &[&[mode], &shape[..]].concat());
    let folder = ground.folder.display().to_string();
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
        let samples = trial::rounds(&ground, &subjects)?;
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
                by_bare: Quartiles::ratio(own, &samples[0]),
                erlang_by: Quartiles::ratio(&samples[fastest], own),
                counted: subject.counted().map(|counts| counts.map(|count| count / messages)),
            })
            .collect();
        println!("{}", table(place, &cells));
        tables.push((place, cells));
    }
    let command = format!(
        "cargo xtask bench ring --rounds {rounds} --programs {programs} --hops {hops} --rings {rings} --seed {}",
        ground.seed
    );
    let goals: Vec<Goal> =
        tables.iter().flat_map(|(place, cells)| goals_of(place, cells)).collect();
    if !dry {
        let shown: Vec<String> = tables.iter().map(|(place, cells)| table(place, cells)).collect();
        let (shown, list) = (shown.join("\n"), goals::list(&goals));
        let page =
            TEXT.fill("page", &[("command", &command), ("tables", &shown), ("goals", &list)]);
        workspace.write("docs/bench-ring.md", &page)?;
    }
    goals::verdict(goals)
}

/// Parses the last number of the closing line: `… 114000 messages/s, 8.77 µs each`.
fn microseconds(said: &str) -> Option<f64> {
    let line = said.lines().last()?;
    let words: Vec<&str> = line.split_whitespace().collect();
    words.iter().rev().find_map(|word| word.parse().ok())
}

fn table(place: &str, cells: &[Cell]) -> String {
    let line = |cell: &Cell| {
        let [time, bare, erlang] = [cell.time, cell.by_bare, cell.erlang_by].map(Quartiles::shown);
        let count = |at: usize| {
            cell.counted.map_or_else(|| "–".to_owned(), |all| format!("{:.2}", all[at]))
        };
        row(&[&cell.name, &time, &bare, &erlang, &count(0), &count(1)])
    };
    let rows: String = cells.iter().map(line).collect();
    TEXT.fill("table", &[("place", &place), ("rows", &rows)])
}

/// Returns the goals, and whether they were met.
fn goals_of(place: &str, cells: &[Cell]) -> [Goal; 3] {
    let [event, gateway] = [1, 2].map(|at: usize| cells[at].by_bare.median);
    let erlang = cells[2].erlang_by.median;
    [
        (format!("event + spawn at most 1.10 × the bare loop ({event:.2})"), event <= 1.10),
        (format!("the gateway at most 1.25 × the bare loop ({gateway:.2})"), gateway <= 1.25),
        (
            format!("the gateway at least 1.2 × as fast as the fastest Erlang ({erlang:.2})"),
            erlang >= 1.2,
        ),
    ]
    .map(|(goal, met)| (format!("{place}: {goal}"), met))
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
