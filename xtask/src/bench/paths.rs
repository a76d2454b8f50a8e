//! `bench paths`: instructions of one request on each of six paths through the data plane, compared with those on the
//! page. They do not depend on the load of the machine, so that a change of 1 % is visible. Changes to the inside of
//! the data plane are compared with this page.

mod trace;

use super::callgrind;
use super::page::{Template, row};
use super::statistics::Quartiles;
use crate::requirements;
use crate::shell::{Failure, Workspace, command};
use clap::Args;
use std::fs;
use std::path::Path as File;

#[derive(Args, Debug)]
pub(super) struct PathsArguments {
    /// Write the figures to the page as the new baseline
    #[arg(long)]
    write: bool,
    /// Measure only this path; the page is not written
    #[arg(long, value_parser = PATHS.map(|path| path.name), conflicts_with = "write")]
    only: Option<String>,
    /// List the files of the data plane that a request passes through, and count the lookups of its exchange, in a
    /// build without inlining
    #[arg(long, conflicts_with = "write")]
    files: bool,
    /// The number of runs of each path; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
}

/// One path through the data plane.
struct Path {
    name: &'static str,
    shown: &'static str,
    /// The numbers of requests of a short and a long run.
    requests: [u32; 2],
}

const PATHS: [Path; 6] = [
    path("small", "HTTP/1.1, reply of 128 bytes", [500, 4500]),
    path("chunked", "HTTP/1.1, 4 KiB in chunks in both directions", [500, 4500]),
    path("middle", "HTTP/1.1, reply of 16 KiB", [500, 2500]),
    path("large", "HTTP/1.1, reply of 1 MiB", [50, 450]),
    path("line", "line to a program", [500, 4500]),
    path("row", "line to a handler thread", [500, 4500]),
];

const fn path(name: &'static str, shown: &'static str, requests: [u32; 2]) -> Path {
    Path { name, shown, requests }
}

const PAGE: &str = "docs/bench-paths.md";
const TEXT: Template = Template(include_str!("../../pages/paths.md"));

/// The maximum ratio of the cost of a path to the figure on the page.
const GROWTH_MAX: f64 = 1.03;

pub(super) fn run(workspace: &Workspace, arguments: &PathsArguments) -> Result<(), Failure> {
    requirements::provide(requirements::COUNTING)?;
    if arguments.files {
        return trace::print(workspace, arguments.only.as_deref());
    }
    let program = workspace.example("roadstead-gateway", "paths")?;
    let before = fs::read_to_string(workspace.root.join(PAGE)).unwrap_or_default();
    let mut counts = Vec::new();
    let mut grown = Vec::new();
    for path in &PATHS {
        if arguments.only.as_deref().is_some_and(|only| only != path.name) {
            continue;
        }
        let count = count(&program, path, arguments.runs)?;
        let before = on_page(&before, path.name);
        let change = before.map(|before| format!(", {:+.1} %", (count / before - 1.0) * 100.0));
        println!("{:<8} {count:>9.0} instructions{}", path.name, change.unwrap_or_default());
        if before.is_some_and(|before| count > before * GROWTH_MAX) {
            grown.push(path.name);
        }
        counts.push((path, count));
    }
    if arguments.write {
        return workspace.write(PAGE, &text(&counts));
    }
    if grown.is_empty() {
        return Ok(());
    }
    let grown = grown.join(", ");
    Err(Failure::new(format!("more than 3 % above {PAGE}: {grown}; `--write` accepts that")))
}

/// Counts the instructions per request, from a short and a long run.
fn count(program: &File, path: &Path, runs: u32) -> Result<f64, Failure> {
    let run = |requests: u32| command(program, [path.name, &requests.to_string()]);
    let one = |_| callgrind::of_one(path.requests, run);
    let counts = (0..runs).map(one).collect::<Result<Vec<_>, Failure>>()?;
    Ok(Quartiles::of(&counts).median)
}

/// Returns the figure of a path on the page.
fn on_page(page: &str, name: &str) -> Option<f64> {
    let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")))?;
    row.split('|').nth(3)?.trim().replace(',', "").parse().ok()
}

fn text(counts: &[(&Path, f64)]) -> String {
    let line = |(path, count): &(&Path, f64)| {
        row(&[&format_args!("`{}`", path.name), &path.shown, &format_args!("{count:.0}")])
    };
    TEXT.fill("page", &[("rows", &counts.iter().map(line).collect::<String>())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let counts: Vec<_> = PATHS.iter().zip([12.4, 70_000.0]).collect();
        let page = text(&counts);
        assert_eq!(on_page(&page, "small"), Some(12.0));
        assert_eq!(on_page(&page, "chunked"), Some(70_000.0));
        assert_eq!(on_page(&page, "row"), None);
    }
}
