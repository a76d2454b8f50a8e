//! `bench paths`: instructions of one request on each of six paths through the data plane, held against
//! those on the page. They do not depend on the load of the machine, so that a change of one in a hundred
//! shows: work on the inside of the data plane is held against this page.

use super::callgrind::whole_run;
use super::page;
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use std::fs;
use std::path::Path as File;
use std::process::Command;

#[derive(Args, Debug)]
pub(super) struct PathsArguments {
    /// Write the figures to the page, as those that later ones are held against
    #[arg(long)]
    write: bool,
    /// Only this path, which is then not written
    #[arg(long, value_parser = PATHS.map(|path| path.name), conflicts_with = "write")]
    only: Option<String>,
    /// Runs of each path; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
}

/// One way through the data plane.
struct Path {
    name: &'static str,
    shown: &'static str,
    /// Requests of a short run, and of a long one.
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

/// What a path may cost more than the page says.
const GROWTH_MAX: f64 = 1.03;

pub(super) fn run(workspace: &Workspace, arguments: &PathsArguments) -> Result<(), Failure> {
    requirements::provide(requirements::COUNTING)?;
    let example = ["build", "--release", "-p", "roadstead-gateway", "--example", "paths"];
    shell::run(workspace.cargo(example))?;
    let program = workspace.built("release", "examples/paths");
    let file = workspace.root.join(PAGE);
    let before = fs::read_to_string(&file).unwrap_or_default();
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
        fs::write(&file, text(&page::machine().date, &counts))
            .map_err(|error| Failure::new(format!("{PAGE}: {error}")))?;
        println!("wrote {PAGE}");
        return Ok(());
    }
    if grown.is_empty() {
        return Ok(());
    }
    let grown = grown.join(", ");
    Err(Failure::new(format!("more than 3 % above {PAGE}: {grown}; `--write` accepts that")))
}

/// Instructions of one request: what each adds between a short and a long run.
fn count(program: &File, path: &Path, runs: u32) -> Result<f64, Failure> {
    let whole = |requests: u32| {
        let mut command = Command::new(program);
        command.arg(path.name).arg(requests.to_string());
        whole_run(command)
    };
    let [short, long] = path.requests;
    let one = |_| Ok((whole(long)? - whole(short)?) / f64::from(long - short));
    let mut counts = (0..runs).map(one).collect::<Result<Vec<_>, Failure>>()?;
    counts.sort_by(f64::total_cmp);
    Ok(counts[counts.len() / 2])
}

/// The figure of a path on the page.
fn on_page(page: &str, name: &str) -> Option<f64> {
    let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")))?;
    row.split('|').nth(3)?.trim().replace(',', "").parse().ok()
}

fn text(date: &str, counts: &[(&Path, f64)]) -> String {
    let mut text = format!(
        "# Instructions of six paths\n\n\
         Made by `cargo xtask bench paths --write` on {date}. Do not edit it by hand.\n\n\
         Instructions outside the kernel of one request, by callgrind: what each adds between a short and a long run of \
         `crates/gateway/examples/paths`, which is a shard, a client and a server in one process. There is one client, with one \
         request at a time, so each request pays for whole turns of the loop. What client and server do is included; it is a few \
         hundred instructions, and more for `large`, where blocks are copied. The handler of `row` waits 2 ms before it answers, so that \
         each request takes two turns.\n\n\
         `cargo xtask bench paths` counts again and fails where a path takes over 3 % more than here.\n\n\
         | Path | What | Instructions |\n|---|---|---|\n"
    );
    for (path, count) in counts {
        text.push_str(&format!("| `{}` | {} | {count:.0} |\n", path.name, path.shown));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let counts: Vec<_> = PATHS.iter().zip([12.4, 70_000.0]).collect();
        let page = text("2026-01-02", &counts);
        assert_eq!(on_page(&page, "small"), Some(12.0));
        assert_eq!(on_page(&page, "chunked"), Some(70_000.0));
        assert_eq!(on_page(&page, "row"), None);
    }
}
