//! Instructions outside the kernel, and allocations, per request: callgrind's counts for a long run
//! minus those for a short one. They do not depend on the load of the machine.

use super::running::{Load, Running};
use super::subject::Subject;
use crate::bench::ground::Ground;
use crate::shell::{self, Failure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

const CONNECTIONS: usize = 16;
/// Sizes of a reply, with the requests of the short and of the long run.
const SIZES: [(usize, [u64; 2]); 3] = [(128, SMALL), (16 << 10, [500, 2500]), (1 << 20, [50, 450])];
const SMALL: [u64; 2] = [500, 4500];
/// callgrind counts `rep movsb`, by which glibc copies large blocks, as one instruction per byte.
const NO_REP_MOVSB: &str = "GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824";
const ALLOCATORS: [&str; 6] =
    ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"];

pub(super) fn measure(ground: &Ground, all: &[Subject]) -> Result<Value, Failure> {
    let mut sizes = serde_json::Map::new();
    for (size, runs) in SIZES {
        let mut subjects = serde_json::Map::new();
        for subject in all {
            let (instructions, allocations) = between(ground, subject, size, runs)?;
            eprintln!(
                "{size} bytes, {}: {instructions:.0} instructions, {allocations:.4} allocations",
                subject.name
            );
            let counted = json!({ "instructions": instructions, "allocations": allocations });
            subjects.insert(subject.name.clone(), counted);
        }
        sizes.insert(size.to_string(), json!({ "requests": runs, "subjects": subjects }));
    }
    Ok(json!({ "connections": CONNECTIONS, "sizes": sizes }))
}

/// Instructions and allocations of a request of 128 bytes.
pub(super) fn of_a_request(ground: &Ground, subject: &Subject) -> Result<(f64, f64), Failure> {
    between(ground, subject, 128, SMALL)
}

/// What each request adds between a short and a long run.
fn between(
    ground: &Ground,
    subject: &Subject,
    size: usize,
    [short, long]: [u64; 2],
) -> Result<(f64, f64), Failure> {
    let requests = (long - short) as f64;
    let short = count(ground, subject, size, short)?;
    let long = count(ground, subject, size, long)?;
    let instructions = long.0.saturating_sub(short.0) as f64 / requests;
    Ok((instructions, long.1.saturating_sub(short.1) as f64 / requests))
}

/// Instructions and allocations of a whole run.
fn count(
    ground: &Ground,
    subject: &Subject,
    size: usize,
    requests: u64,
) -> Result<(u64, u64), Failure> {
    let file = ground.folder.join("callgrind.out");
    let out = format!("--callgrind-out-file={}", file.display());
    // The file of an earlier run would be read as the result of this one.
    let _ = fs::remove_file(&file);
    let below = ["env", NO_REP_MOVSB, "valgrind", "--tool=callgrind", "-q", &out];
    let running = Running::start(ground, subject, &below)?;
    let mut load = Load::start(ground, &running, size, CONNECTIONS)?;
    load.run(&format!("count {CONNECTIONS} {requests}"))?;
    drop(load);
    running.stop()?;
    read(&shell::read(&file)?).ok_or_else(|| Failure::new("callgrind wrote no totals"))
}

/// The totals and the number of calls to allocators in callgrind's output. A function has its name
/// only where it first occurs, and a number everywhere: `cfn=(12) malloc`, later `cfn=(12)`.
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
