//! `bench balance`: the cost of a request in a pool, by schedule and number of workers; the memory of a bound client;
//! the cost of stickiness, health checks and limits per HTTP request; and the requests that fail when servers fail.

mod http;
mod trial;

use super::driver::{Options, Part, Spec, Whole};
use super::goals::{Goal, at_most};
use super::page::{Template, row};
use super::{callgrind, numbers};
use crate::requirements;
use crate::shell::{Failure, Workspace, command};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct BalanceArguments {
    #[command(flatten)]
    options: Options,
    /// Additional requests of the second of two runs
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1000..))]
    requests: u32,
    /// Run only this scenario of the trial; the page is not written
    #[arg(long)]
    scenario: Option<String>,
    /// Use this binary in the trial instead of a release build; the page is not written
    #[arg(long)]
    roadstead: Option<PathBuf>,
}

const TEXT: Template = Template(include_str!("../../pages/balance.md"));

static SPEC: Spec = Spec {
    name: "balance",
    parts: &["pool", "http", "trial"],
    text: TEXT,
    tools: &[],
    rounds: 5,
    milliseconds: 0,
};

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

pub(super) fn run(workspace: &Workspace, arguments: &BalanceArguments) -> Result<(), Failure> {
    let BalanceArguments { options, requests, scenario, roadstead } = arguments;
    let mut options = options.clone();
    options.dry |= scenario.is_some() || roadstead.is_some();
    let more = format!(" --requests {requests}");
    let bench = SPEC.open(workspace, &options, &more)?;
    let measure = |part: &str| match part {
        "pool" => pool(workspace, *requests),
        "http" => http::measure(workspace),
        _ => {
            let (roadstead, scenario) = (roadstead.as_deref(), scenario.as_deref());
            trial::measure(workspace, &bench.ground, roadstead, scenario)
        }
    };
    bench.run(measure, |_| Whole::default())
}

fn pool(workspace: &Workspace, requests: u32) -> Result<Part, Failure> {
    requirements::provide(requirements::COUNTING)?;
    let admit = workspace.example("roadstead-pool", "admit")?;
    let mut lines = Vec::new();
    for (schedule, tree) in SCHEDULES {
        let each = |workers: &u32| instructions(&admit, schedule, *workers, requests);
        let counts = WORKERS.iter().map(each).collect::<Result<_, _>>()?;
        lines.push(Line { schedule, tree, counts });
    }
    // The bytes of memory per bound client.
    let bytes = numbers::last(command(&admit, ["clients", &CLIENTS.to_string()]))?;
    let line = |line: &Line| {
        let counts: Vec<String> = line.counts.iter().map(|count| format!("{count:.0}")).collect();
        let growth = format!("{:.2}", line.growth());
        row(&[&format_args!("`{}`", line.schedule), &counts.join(" | "), &growth])
    };
    let rows: String = lines.iter().map(line).collect();
    let text = TEXT.fill(
        "pool",
        &[("rows", &rows), ("bytes", &format_args!("{bytes:.0}")), ("clients", &CLIENTS)],
    );
    Ok(Part { goals: goals(&lines, bytes), ..Part::text(text) })
}

/// Counts the instructions of one request, from the difference of two runs.
fn instructions(admit: &Path, schedule: &str, workers: u32, more: u32) -> Result<f64, Failure> {
    callgrind::of_one([FIRST, FIRST + more], |requests| {
        command(admit, [schedule, &workers.to_string(), &requests.to_string()])
    })
}

fn goals(lines: &[Line], bytes: f64) -> Vec<Goal> {
    let growth = |line: &Line| {
        let max = line.growth_max();
        let text =
            format!("{}: 1000 workers at most {max:.2} × the instructions of 20", line.schedule);
        at_most(text, line.growth(), max)
    };
    let mut goals: Vec<_> = lines.iter().map(growth).collect();
    let text = "a bound client at most 100 bytes".to_owned();
    goals.push((text, format!("{bytes:.0}"), bytes <= 100.0));
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_held_against_the_logarithm_where_there_is_a_tree() {
        let line = |tree| Line { schedule: "x", tree, counts: vec![1000.0, 1100.0, 1200.0] };
        assert!(goals(&[line(true)], 58.0).iter().all(|(.., met)| *met));
        let missed = goals(&[line(false)], 101.0);
        assert!(missed.iter().all(|(.., met)| !*met), "{missed:?}");
    }
}
