//! User-space instructions and allocations per request, as the difference between a long and a short run under
//! callgrind. They do not depend on the load of the machine.

use super::running::{Load, Running};
use super::subject::Subject;
use super::windows::once;
use crate::bench::callgrind::Profile;
use crate::bench::ground::Ground;
use crate::shell::Failure;
use serde_json::{Map, Value, json};
use std::fs;

const CONNECTIONS: usize = 16;
/// Sizes of a reply, with the numbers of requests of the short and the long run.
const SIZES: [(usize, [u64; 2]); 3] = [(128, SMALL), (16 << 10, [500, 2500]), (1 << 20, [50, 450])];
const SMALL: [u64; 2] = [500, 4500];
/// callgrind counts `rep movsb`, by which glibc copies large blocks, as one instruction per byte.
const NO_REP_MOVSB: &str = "GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824";

pub(super) fn measure(ground: &Ground, all: &[Subject]) -> Result<Value, Failure> {
    let mut sizes = Map::new();
    for (size, runs) in SIZES {
        let subjects = once(all, |subject| {
            let profile = between(ground, subject, size, runs)?;
            let (instructions, allocations) = (profile.instructions(), profile.allocations());
            Ok(json!({ "instructions": instructions, "allocations": allocations }))
        })?;
        sizes.insert(size.to_string(), json!({ "requests": runs, "subjects": subjects }));
    }
    Ok(json!({ "connections": CONNECTIONS, "sizes": sizes }))
}

/// Returns the cost of a request with a reply of 128 bytes.
pub(super) fn of_a_request(ground: &Ground, subject: &Subject) -> Result<Profile, Failure> {
    between(ground, subject, 128, SMALL)
}

/// Returns the cost per request, from a short and a long run.
fn between(
    ground: &Ground,
    subject: &Subject,
    size: usize,
    [short, long]: [u64; 2],
) -> Result<Profile, Failure> {
    let requests = (long - short) as f64;
    let short = count(ground, subject, size, short)?;
    Ok(short.of_one_more(count(ground, subject, size, long)?, requests))
}

/// Returns the cost of a complete run.
fn count(
    ground: &Ground,
    subject: &Subject,
    size: usize,
    requests: u64,
) -> Result<Profile, Failure> {
    let file = ground.folder.join("callgrind.out");
    let out = format!("--callgrind-out-file={}", file.display());
    // The file of an earlier run would be read as the result of this run.
    let _ = fs::remove_file(&file);
    let below = ["env", NO_REP_MOVSB, "valgrind", "--tool=callgrind", "-q", &out];
    let running = Running::start(ground, subject, &below)?;
    let mut load = Load::start(ground, &running, size, CONNECTIONS)?;
    load.run(&format!("count {CONNECTIONS} {requests}"))?;
    drop(load);
    running.stop()?;
    Profile::read(&file)
}
