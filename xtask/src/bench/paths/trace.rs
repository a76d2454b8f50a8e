//! Lists the files of the data plane that a request passes through, and counts the lookups of its exchange.

use crate::bench::callgrind;
use crate::shell::{Failure, Workspace};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The crates of the data plane.
const CRATES: [&str; 6] = ["flow", "frontend", "engine", "backend", "gateway", "observe"];
/// The traced paths: one for each kind of path of a request.
const TRACED: [&str; 3] = ["small", "line", "row"];
/// The numbers of requests of the two runs whose difference counts.
const REQUESTS: [u32; 2] = [64, 192];
/// Functions that look up an exchange by its id.
const LOOKUPS: [&str; 4] = [
    "exchanges::Exchanges::close",
    "exchanges::Exchanges::close_if",
    "exchanges::Exchanges::get_mut",
    "exchanges::Exchanges::remove",
];
pub(super) fn print(workspace: &Workspace, only: Option<&str>) -> Result<(), Failure> {
    let program = workspace.traced_example("roadstead-gateway", "paths")?;
    for name in TRACED.into_iter().filter(|name| only.is_none_or(|only| only == *name)) {
        let counts = REQUESTS.map(|requests| count(workspace, &program, name, requests));
        let [few, many] = counts;
        let (few, many) = (few?, many?);
        let more = f64::from(REQUESTS[1] - REQUESTS[0]);
        let files: Vec<&String> = many
            .files
            .iter()
            .filter(|(file, cost)| (*cost - few.files.get(*file).unwrap_or(&0.0)) / more >= 1.0)
            .map(|(file, _)| file)
            .collect();
        let lookups = (many.lookups - few.lookups) / more;
        println!("{name}: {} files, the exchange is looked up {lookups:.1} times", files.len());
        files.iter().for_each(|file| println!("  {file}"));
    }
    Ok(())
}

/// The counts of one run.
#[derive(Debug, Default)]
struct Counts {
    /// Instructions of each file of the data plane.
    files: BTreeMap<String, f64>,
    /// Calls of functions that look up an exchange.
    lookups: f64,
}

fn count(
    workspace: &Workspace,
    program: &Path,
    name: &str,
    requests: u32,
) -> Result<Counts, Failure> {
    let out = workspace.target.join(format!("trace-{name}-{requests}.out"));
    let mut command = Command::new(program);
    command.arg(name).arg(requests.to_string());
    let text = callgrind::written(&command, &out)?;
    Ok(read(&text))
}

/// Parses callgrind's format: a name is written only where its number first occurs.
fn read(text: &str) -> Counts {
    let mut counts = Counts::default();
    let (mut files, mut functions) = (BTreeMap::new(), BTreeMap::new());
    let (mut file, mut is_lookup, mut is_call) = (None, false, false);
    for line in text.lines() {
        if let Some((key, value)) = line.split_once('=') {
            let (number, name) = value.split_once(' ').unwrap_or((value, ""));
            match key {
                "fl" | "fi" | "fe" | "cfi" | "cfl" => {
                    if !name.is_empty() {
                        files.insert(number, of_data_plane(name));
                    }
                    if !key.starts_with('c') {
                        file = files.get(number).cloned().flatten();
                    }
                }
                "fn" | "cfn" => {
                    if !name.is_empty() {
                        functions.insert(number, finds_an_exchange(name));
                    }
                    if key == "cfn" {
                        is_lookup = functions.get(number).copied().unwrap_or(false);
                    }
                }
                "calls" => {
                    is_call = true;
                    let calls = value.split(' ').next().and_then(|count| count.parse().ok());
                    counts.lookups += calls.filter(|_| is_lookup).unwrap_or(0.0);
                }
                _ => {}
            }
            continue;
        }
        let cost = line.split_once(' ').and_then(|(_, cost)| cost.trim().parse::<f64>().ok());
        if let (Some(cost), false) = (cost, std::mem::take(&mut is_call))
            && let Some(file) = &file
        {
            *counts.files.entry(file.clone()).or_default() += cost;
        }
    }
    counts
}

/// Returns the path of a file below `crates/`, if it belongs to the data plane.
fn of_data_plane(name: &str) -> Option<String> {
    let (_, inside) = name.trim().rsplit_once("crates/")?;
    let (krate, file) = inside.split_once("/src/")?;
    CRATES.contains(&krate).then(|| format!("{krate}/src/{file}"))
}

/// Returns whether a function looks up an exchange. Names may end in a hash.
fn finds_an_exchange(name: &str) -> bool {
    let name = name.trim();
    let name = name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(name, |it| it.0);
    LOOKUPS.iter().any(|lookup| name.ends_with(lookup))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_data_plane_and_lookups_are_counted() {
        let text = "fl=(1) /x/crates/engine/src/engine.rs\nfn=(1) engine::engine::Engine::end\n10 4\n\
                    cfi=(2) /x/crates/engine/src/exchanges.rs\ncfn=(2) engine::exchanges::Exchanges::get_mut\n\
                    calls=3 7\n11 30\nfl=(2)\nfn=(2)\n7 30\nfl=(3) /x/crates/pool/src/pool.rs\nfn=(3) p\n1 9\n";
        let counts = read(text);
        assert_eq!(counts.lookups, 3.0);
        let files: Vec<_> = counts.files.into_iter().collect();
        let expected = [("engine/src/engine.rs", 4.0), ("engine/src/exchanges.rs", 30.0)];
        assert_eq!(files, expected.map(|(file, cost)| (file.to_owned(), cost)));
    }
}
