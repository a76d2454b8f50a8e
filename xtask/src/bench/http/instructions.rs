//! Instructions outside the kernel, and allocations, of a request: what callgrind counts in a long
//! run less what it counts in a short one.

use super::Ground;
use super::subject::{Load, Running, Subject};
use crate::shell::Failure;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

const CONNECTIONS: usize = 16;
const SHORT: u64 = 500;
const LONG: u64 = 4500;
const ALLOCATORS: [&str; 6] =
    ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"];

pub(super) fn measure(ground: &Ground) -> Result<Value, Failure> {
    let mut subjects = serde_json::Map::new();
    for subject in &ground.subjects {
        let (instructions, allocations) = of_a_request(ground, subject)?;
        eprintln!("{}: {instructions:.0} instructions, {allocations:.3} allocations", subject.name);
        let counted = json!({ "instructions": instructions, "allocations": allocations });
        subjects.insert(subject.name.clone(), counted);
    }
    Ok(json!({ "connections": CONNECTIONS, "size": 128, "subjects": subjects }))
}

/// Instructions and allocations of a request.
pub(super) fn of_a_request(ground: &Ground, subject: &Subject) -> Result<(f64, f64), Failure> {
    let short = count(ground, subject, SHORT)?;
    let long = count(ground, subject, LONG)?;
    let requests = (LONG - SHORT) as f64;
    let instructions = long.0.saturating_sub(short.0) as f64 / requests;
    Ok((instructions, long.1.saturating_sub(short.1) as f64 / requests))
}

/// Instructions and allocations of a whole run.
fn count(ground: &Ground, subject: &Subject, requests: u64) -> Result<(u64, u64), Failure> {
    let file = ground.folder.join("callgrind.out");
    let out = format!("--callgrind-out-file={}", file.display());
    // What an earlier run left would be taken for this one's.
    let _ = fs::remove_file(&file);
    let below = ["valgrind", "--tool=callgrind", "-q", &out];
    let running = Running::start(ground, subject, &below)?;
    let mut load = Load::start(ground, &running, 128, CONNECTIONS)?;
    load.run(&format!("count {CONNECTIONS} {requests}"), || {})?;
    drop(load);
    running.stop()?;
    let text = fs::read_to_string(&file)
        .map_err(|error| Failure::new(format!("callgrind wrote nothing: {error}")))?;
    read(&text).ok_or_else(|| Failure::new("callgrind wrote no totals"))
}

/// The totals, and how often allocators were called, in what callgrind writes. A function has its
/// name where it is first named, and a number behind that: `cfn=(12) malloc`, later `cfn=(12)`.
fn read(text: &str) -> Option<(u64, u64)> {
    let mut names: BTreeMap<&str, bool> = BTreeMap::new();
    let (mut totals, mut calls, mut called) = (None, 0, false);
    for line in text.lines() {
        if let Some(total) = line.strip_prefix("totals: ") {
            totals = total.split(' ').next()?.parse().ok();
        } else if let Some((kind, named)) = line.split_once('=') {
            match kind {
                "fn" | "cfn" => {
                    let (number, name) = named.split_once(' ').unwrap_or((named, ""));
                    if !name.is_empty() {
                        // `malloc'2` is a malloc that was called from within another.
                        let plain = name.split('\'').next().unwrap_or_default();
                        names.insert(number, ALLOCATORS.contains(&plain));
                    }
                    if kind == "cfn" {
                        called = names.get(number).copied().unwrap_or(false);
                    }
                }
                "calls" if called => {
                    calls += named.split(' ').next()?.parse::<u64>().ok()?;
                }
                _ => {}
            }
        }
    }
    Some((totals?, calls))
}

#[cfg(test)]
mod tests {
    #[test]
    fn totals_and_calls_of_allocators_are_read() {
        let text = "fn=(1) main\n1 10\ncfn=(2) malloc\ncalls=3 0\n1 30\ncfn=(3) free\ncalls=9 0\n\
                    fn=(4) other\ncfn=(2)\ncalls=4 0\n2 40\ntotals: 1234\n";
        assert_eq!(super::read(text), Some((1234, 7)));
        assert_eq!(super::read("fn=(1) main\n"), None);
    }
}
