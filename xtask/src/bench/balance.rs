//! `bench balance`: the cost of a request in a pool, by schedule and number of workers; the memory of a bound client;
//! the cost of stickiness, health checks and limits per HTTP request; and the requests that fail when servers fail.

mod http;
mod trial;

use super::callgrind;
use super::goals::{self, Goal};
use super::process;
use super::section;
use super::template::{Template, date, kernel, row};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use std::path::Path;
use std::process::Command;

#[derive(Args, Debug)]
pub(super) struct BalanceArguments {
    /// Additional requests of the second of two runs
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1000..))]
    requests: u32,
    /// Measure only this part; the page keeps the other parts
    #[arg(long, value_parser = PARTS)]
    only: Option<String>,
    /// The number of runs of each scenario of the trial
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Run only this scenario of the trial; the page is not written
    #[arg(long)]
    scenario: Option<String>,
    /// Use this binary in the trial instead of a release build; the page is not written
    #[arg(long)]
    roadstead: Option<std::path::PathBuf>,
    /// Print the parts without writing the page
    #[arg(long)]
    dry: bool,
}

const TEXT: Template = Template(include_str!("../../pages/balance.md"));

/// The page with the results.
const PAGE: &str = "docs/bench-balance.md";

const WORKERS: [u32; 3] = [20, 100, 1000];
const CLIENTS: u32 = 1_000_000;
/// Requests of the first of two runs, whose cost is subtracted.
const FIRST: u32 = 1000;

/// The schedules, and whether they use a tree over the workers.
const SCHEDULES: [(&str, bool); 7] = [
    ("round-robin", false),
    ("weighted-round-robin", true),
    ("least-requests", true),
    ("power-of-two", true),
    ("random", true),
    ("hash", true),
    ("first", true),
];

/// Instructions per request for each number of workers.
struct Line {
    schedule: &'static str,
    tree: bool,
    counts: Vec<f64>,
}

impl Line {
    /// Returns the ratio of the cost with the most workers to the cost with the fewest.
    fn growth(&self) -> f64 {
        self.counts[WORKERS.len() - 1] / self.counts[0]
    }

    /// Returns the maximum growth: logarithmic for a tree, otherwise none (with a tolerance of 5 %).
    fn growth_max(&self) -> f64 {
        if self.tree { f64::from(WORKERS[2]).ln() / f64::from(WORKERS[0]).ln() } else { 1.05 }
    }
}

/// The parts that can be measured separately.
const PARTS: [&str; 3] = ["pool", "http", "trial"];

pub(super) fn run(workspace: &Workspace, arguments: &BalanceArguments) -> Result<(), Failure> {
    let mut all = Vec::new();
    for part in PARTS {
        if arguments.only.as_deref().is_some_and(|only| only != part) {
            continue;
        }
        let (text, goals) = match part {
            "pool" => pool(workspace, arguments.requests)?,
            "http" => http::measure(workspace)?,
            _ => {
                let (roadstead, scenario) =
                    (arguments.roadstead.as_deref(), arguments.scenario.as_deref());
                let plan = trial::Plan { runs: arguments.runs, roadstead, scenario };
                trial::measure(workspace, &plan)?
            }
        };
        println!("{text}");
        if !arguments.dry && arguments.scenario.is_none() && arguments.roadstead.is_none() {
            let (cores, kernel, date) = (process::processors(), kernel(), date());
            let by = format!(
                "`cargo xtask bench balance --only {part}` on {date}: {cores} cores, Linux {kernel}"
            );
            section::put_into(workspace, PAGE, &section::made(&text, &by), "")?;
        }
        all.extend(goals);
    }
    goals::verdict(all)
}

fn pool(workspace: &Workspace, requests: u32) -> Result<(String, Vec<Goal>), Failure> {
    requirements::provide(requirements::COUNTING)?;
    let admit = workspace.example("roadstead-pool", "admit")?;
    let mut lines = Vec::new();
    for (schedule, tree) in SCHEDULES {
        let each = |workers: &u32| instructions(&admit, schedule, *workers, requests);
        let counts = WORKERS.iter().map(each).collect::<Result<_, _>>()?;
        lines.push(Line { schedule, tree, counts });
    }
    let bytes = bytes(&admit)?;
    let goals = goals_of(&lines, bytes);
    Ok((section(&lines, bytes, &goals), goals))
}

/// Counts the instructions of one request, from the difference of two runs.
fn instructions(admit: &Path, schedule: &str, workers: u32, more: u32) -> Result<f64, Failure> {
    callgrind::of_one([FIRST, FIRST + more], |requests| {
        let mut command = Command::new(admit);
        command.arg(schedule).args([workers, requests].map(|number| number.to_string()));
        command
    })
}

/// Returns the bytes of memory per bound client.
fn bytes(admit: &Path) -> Result<f64, Failure> {
    let mut command = Command::new(admit);
    command.arg("clients").arg(CLIENTS.to_string());
    let said = shell::output(command)?;
    let bytes = said.rsplit(' ').next().and_then(|word| word.trim().parse().ok());
    bytes.ok_or_else(|| Failure::new(format!("no number of bytes in: {said}")))
}

fn goals_of(lines: &[Line], bytes: f64) -> Vec<Goal> {
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

fn section(lines: &[Line], bytes: f64, goals: &[Goal]) -> String {
    let line = |line: &Line| {
        let counts: Vec<String> = line.counts.iter().map(|count| format!("{count:.0}")).collect();
        let growth = format!("{:.2}", line.growth());
        row(&[&format_args!("`{}`", line.schedule), &counts.join(" | "), &growth])
    };
    TEXT.fill(
        "pool",
        &[
            ("rows", &lines.iter().map(line).collect::<String>()),
            ("bytes", &format_args!("{bytes:.0}")),
            ("clients", &CLIENTS),
            ("goals", &goals::list(goals)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_held_against_the_logarithm_where_there_is_a_tree() {
        let line = |tree| Line { schedule: "x", tree, counts: vec![1000.0, 1100.0, 1200.0] };
        assert!(goals_of(&[line(true)], 58.0).iter().all(|(_, met)| *met));
        let missed = goals_of(&[line(false)], 101.0);
        assert!(missed.iter().all(|(_, met)| !*met), "{missed:?}");
    }
}
