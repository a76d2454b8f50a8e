//! Three daemons that share a table, and a model of the bucket, with faults. Each world follows from a seed.
//!
//! | variable | what it does |
//! |---|---|
//! | `CLUSTER_SEED` | `replay_of_a_seed` prints all events in the world of that seed |
//! | `CLUSTER_FROM`, `CLUSTER_COUNT` | the first seed, and the number of seeds |
//! | `CLUSTER_FIRST` | stop at the first world with a violation |
//! | `ROADSTEAD_PLANT` | a mutant |
#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "the environment selects the worlds")]

mod bucket;
mod chance;
mod daemon;
mod oracle;
mod plants;
mod reader;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cluster::Counters;
use world::World;

/// The number of seeds that run by default.
const SEEDS: u64 = 300;

fn number(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().expect("a number is expected"))
}

/// Runs one world. Returns what was wrong, and the counters of all daemons.
fn run(seed: u64) -> (Vec<String>, Vec<Counters>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(seed, false);
        world.run();
        let counters = world.daemons.iter().map(|daemon| *daemon.replica.counters());
        (oracle::judge(&world), counters.collect())
    }));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| Some((*panic.downcast_ref::<&str>()?).to_owned()));
        (vec![format!("panic: {}", text.unwrap_or_default())], Vec::new())
    })
}

#[test]
fn all_daemons_agree_after_faults() {
    let first = number("CLUSTER_FROM").unwrap_or(0);
    let end = first + number("CLUSTER_COUNT").unwrap_or(SEEDS);
    let stops = std::env::var("CLUSTER_FIRST").is_ok();
    let (next, is_failed) = (AtomicU64::new(first), AtomicBool::new(false));
    let results = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || stops && is_failed.load(Ordering::Relaxed) {
                        return;
                    }
                    let (violations, counters) = run(seed);
                    is_failed.fetch_or(!violations.is_empty(), Ordering::Relaxed);
                    results.lock().unwrap().push((seed, violations, counters));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|result| result.0);
    let failed: Vec<_> = results.iter().filter(|result| !result.1.is_empty()).collect();
    for (seed, violations, _) in failed.iter().take(10) {
        println!(
            "seed {seed}: replay with CLUSTER_SEED={seed} cargo test -p roadstead-cluster replay_of_a_seed -- --nocapture"
        );
        violations.iter().take(4).for_each(|violation| println!("  {violation}"));
    }
    assert!(failed.is_empty(), "{} of {} seeds failed", failed.len(), results.len());
    all_paths_were_taken(results.iter().flat_map(|result| &result.2));
}

/// Every kind of event has happened in some world.
fn all_paths_were_taken<'a>(counters: impl Iterator<Item = &'a Counters>) {
    let mut seen = Counters::default();
    for it in counters {
        seen.lost_races += it.lost_races;
        seen.unknown += it.unknown;
        seen.conflicts += it.conflicts;
        seen.refused += it.refused;
        seen.stale += it.stale;
        seen.evicted += it.evicted;
        seen.kept += it.kept;
        seen.swept += it.swept;
        seen.overflows += it.overflows;
        seen.touches_dropped += it.touches_dropped;
        seen.resumes += it.resumes;
        seen.epochs += it.epochs;
        seen.compared += it.compared;
        seen.shard_mismatches += it.shard_mismatches;
        seen.fetches += it.fetches;
        seen.snapshots += it.snapshots;
    }
    println!("{seen:#?}");
    let all = [
        seen.lost_races,
        seen.unknown,
        seen.conflicts,
        seen.refused,
        seen.stale,
        seen.evicted,
        seen.kept,
        seen.swept,
        seen.overflows,
        seen.resumes,
        seen.epochs,
        seen.compared,
        seen.shard_mismatches,
        seen.fetches,
        seen.snapshots,
    ];
    assert!(number("CLUSTER_COUNT").is_some() || all.iter().all(|&count| count > 0));
}

#[test]
fn a_seed_gives_the_same_world_again() {
    let log = |seed| {
        let mut world = World::new(seed, true);
        world.run();
        world.log.unwrap()
    };
    assert!(log(5) == log(5), "the same events");
    assert!(log(5) != log(6));
}

/// Prints all events of the world of `CLUSTER_SEED`.
#[test]
fn replay_of_a_seed() {
    let Some(seed) = number("CLUSTER_SEED") else { return };
    let mut world = World::new(seed, true);
    world.run();
    println!("{}", world.log.as_deref().unwrap_or_default());
    let violations = oracle::judge(&world);
    assert!(violations.is_empty(), "{violations:#?}");
}
