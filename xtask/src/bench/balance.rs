//! `bench balance`: what a pool does for a request, by schedule and number of workers, and what a
//! bound client takes.

use super::event::whole_run;
use super::page::Machine;
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use std::fs;
use std::path::Path;
use std::process::Command;

#[derive(Args, Debug)]
pub(super) struct BalanceArguments {
    /// Requests that the second of two runs takes in more
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1000..))]
    requests: u32,
    /// Show the page without writing it
    #[arg(long)]
    dry: bool,
}

const WORKERS: [u32; 3] = [20, 100, 1000];
const CLIENTS: u32 = 1_000_000;
/// Requests of the first of two runs, whose cost is taken off.
const FIRST: u32 = 1000;

/// The schedules, and whether theirs is a tree over the workers.
const SCHEDULES: [(&str, bool); 7] = [
    ("round-robin", false),
    ("weighted-round-robin", true),
    ("least-outstanding", true),
    ("two-choices", true),
    ("random", true),
    ("hash", true),
    ("first", true),
];

/// Instructions a request with each number of workers.
struct Line {
    schedule: &'static str,
    tree: bool,
    counts: Vec<f64>,
}

impl Line {
    /// The most workers over the fewest.
    fn growth(&self) -> f64 {
        self.counts[WORKERS.len() - 1] / self.counts[0]
    }

    /// What the growth may be: none, or that of the logarithm.
    fn growth_max(&self) -> f64 {
        if self.tree { f64::from(WORKERS[2]).ln() / f64::from(WORKERS[0]).ln() } else { 1.05 }
    }
}

pub(super) fn run(workspace: &Workspace, arguments: &BalanceArguments) -> Result<(), Failure> {
    requirements::provide(requirements::COUNTING)?;
    let example = ["build", "--release", "-p", "roadstead-pool", "--example", "admit"];
    shell::run(workspace.cargo(example))?;
    let admit = workspace.built("release", "examples/admit");
    let mut lines = Vec::new();
    for (schedule, tree) in SCHEDULES {
        let each = |workers: &u32| instructions(&admit, schedule, *workers, arguments.requests);
        let counts = WORKERS.iter().map(each).collect::<Result<_, _>>()?;
        lines.push(Line { schedule, tree, counts });
    }
    let bytes = bytes(&admit)?;
    let command = format!("cargo xtask bench balance --requests {}", arguments.requests);
    let text = page(&command, &super::page::machine(), &lines, bytes);
    println!("{text}");
    if !arguments.dry {
        let file = "docs/bench-balance.md";
        fs::write(workspace.root.join(file), &text)
            .map_err(|error| Failure::new(format!("{file}: {error}")))?;
        println!("wrote {file}");
    }
    let missed: Vec<String> = goals(&lines, bytes)
        .into_iter()
        .filter_map(|(text, met)| (!met).then(|| format!("missed: {text}")))
        .collect();
    if missed.is_empty() { Ok(()) } else { Err(Failure::new(missed.join("\n"))) }
}

/// Instructions of one request: what so many more of them add to a run.
fn instructions(admit: &Path, schedule: &str, workers: u32, more: u32) -> Result<f64, Failure> {
    let of = |requests: u32| {
        let mut command = Command::new(admit);
        command.arg(schedule).args([workers, requests].map(|number| number.to_string()));
        whole_run(command)
    };
    Ok((of(FIRST + more)? - of(FIRST)?) / f64::from(more))
}

/// Bytes that a bound client takes.
fn bytes(admit: &Path) -> Result<f64, Failure> {
    let mut command = Command::new(admit);
    command.arg("clients").arg(CLIENTS.to_string());
    let said = shell::output(command)?;
    let bytes = said.rsplit(' ').next().and_then(|word| word.trim().parse().ok());
    bytes.ok_or_else(|| Failure::new(format!("no number of bytes in: {said}")))
}

fn goals(lines: &[Line], bytes: f64) -> Vec<(String, bool)> {
    let mut goals: Vec<_> = lines
        .iter()
        .map(|line| {
            let (growth, max) = (line.growth(), line.growth_max());
            let text = format!(
                "{}: 1000 workers at most {max:.2} × the instructions of 20 ({growth:.2})",
                line.schedule
            );
            (text, growth <= max)
        })
        .collect();
    goals.push((format!("a bound client at most 100 bytes ({bytes:.0})"), bytes <= 100.0));
    goals
}

fn page(command: &str, machine: &Machine, lines: &[Line], bytes: f64) -> String {
    let Machine { cores, kernel, date, .. } = machine;
    let mut text = format!(
        "# Balancing, measured\n\nMade by `{command}` on {date}: {cores} cores, Linux {kernel}. Do not edit it by \
         hand.\n\nInstructions of one request in `pool` alone, by callgrind: it is taken in, a worker is chosen and \
         given it, and a slot is released. What so many more requests add to a run, so that the start cancels. The \
         workers have four slots each, half of all are in use, weights are 1, 2 and 3, `decisions` is 0; with `hash` \
         each request has a key. No sockets, no protocol.\n\n| schedule |"
    );
    WORKERS.iter().for_each(|workers| text.push_str(&format!(" {workers} workers |")));
    text.push_str(" 1000 ÷ 20 |\n|---|---|---|---|---|\n");
    for line in lines {
        text.push_str(&format!("| `{}` |", line.schedule));
        line.counts.iter().for_each(|count| text.push_str(&format!(" {count:.0} |")));
        text.push_str(&format!(" {:.2} |\n", line.growth()));
    }
    text.push_str(&format!(
        "\nA client bound by `sticky` takes {bytes:.0} bytes: what the process occupies more with {CLIENTS} of \
         them, divided by their number.\n\n## What was asked for\n\n"
    ));
    for (goal, met) in goals(lines, bytes) {
        text.push_str(&format!("- {}: {goal}\n", if met { "met" } else { "**missed**" }));
    }
    text.push_str(
        "- not measured yet: HTTP with stickiness, health and limits at most 3 % more user-space instructions and \
         no more system calls than without\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_held_against_the_logarithm_where_there_is_a_tree() {
        let line = |tree| Line { schedule: "x", tree, counts: vec![1000.0, 1100.0, 1200.0] };
        assert!(goals(&[line(true)], 58.0).iter().all(|(_, met)| *met));
        let missed = goals(&[line(false)], 101.0);
        assert!(missed.iter().all(|(_, met)| !*met), "{missed:?}");
    }
}
