//! Worlds from many seeds, and the printed events of one seed.
//!
//! | variable | what it does |
//! |---|---|
//! | `SIMULATE_SEED` | `replay_of_a_seed` prints all events in the world of that seed |
//! | `SIMULATE_FROM`, `SIMULATE_COUNT` | the first seed, and the number of seeds |
//! | `SIMULATE_PLANT` | a mutant at the interface of the kernel |
//! | `SIMULATE_SHARDS` | the number of loops of the gateway in a replay |
//! | `SIMULATE_ECHO` | `replay_of_a_seed` runs the loop alone |
//! | `SIMULATE_HTTP` | `replay_of_a_seed` runs the gateway with servers |
//! | `SIMULATE_HOSTS` | `replay_of_a_seed` runs the gateway with programs that serve HTTP |
//! | `SIMULATE_TRANSCRIPTS` | `write`: the current transcripts become the recorded ones |
//! | `SIMULATE_FIRST` | stop at the first world with a violation |
#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "the environment selects the worlds")]

mod plants;
mod transcripts;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use simulate::{Job, Mutant, Options, Report, replay};

/// The seeds that run by default.
const SEEDS: Range<u64> = 0..4000;
/// Every way in which a request can end that is reported to a client. Some seed must reach each.
const ENDS: [&str; 17] = [
    "ok",
    "toolong",
    "incomplete",
    "connections",
    "full",
    "waited",
    "down",
    "draining",
    "row",
    "worker",
    "database",
    "reply",
    "died",
    "deadline",
    "commit",
    "handler",
    "stopped",
];
/// The maximum number of failures that are printed for one run of many seeds.
const SHOWN_MAX: usize = 10;

fn mutant() -> Option<Mutant> {
    let word = std::env::var("SIMULATE_PLANT").ok()?;
    Some(Mutant::of_word(&word).expect("SIMULATE_PLANT names no plant"))
}

/// Returns the seeds from `SIMULATE_FROM`, as many as `SIMULATE_COUNT`, if these are set.
fn seeds(usual: &Range<u64>) -> Range<u64> {
    let from = number("SIMULATE_FROM").unwrap_or(usual.start);
    from..from + number("SIMULATE_COUNT").unwrap_or(usual.end - usual.start)
}

fn number(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().expect("a number is expected"))
}

/// Runs seeds on all cores; worlds are independent. Stops soon after the first failure if requested.
fn run_all(
    seeds: Range<u64>,
    shards: usize,
    mutant: Option<Mutant>,
    stop_at_first: bool,
    job: Job,
) -> Vec<Report> {
    let next = AtomicU64::new(seeds.start);
    let failed = AtomicU64::new(0);
    let reports = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let stop = stop_at_first && failed.load(Ordering::Relaxed) > 0;
                    if seed >= seeds.end || stop {
                        return;
                    }
                    let report = job.run(Options { seed, shards, mutant, trace: false });
                    failed.fetch_add(u64::from(!report.violations.is_empty()), Ordering::Relaxed);
                    reports.lock().unwrap().push(report);
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap();
    reports.sort_by_key(|report| report.seed);
    reports
}

#[test]
fn nobody_is_wronged_in_any_world() {
    let mutant = mutant();
    let seeds = seeds(&SEEDS);
    let begun = Instant::now();
    let first = std::env::var("SIMULATE_FIRST").is_ok();
    let reports = run_all(seeds.clone(), 1, mutant, first, Job::Gateway);
    let took = begun.elapsed();
    let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
    for report in &reports {
        for (end, count) in &report.ends {
            *ends.entry(end).or_default() += count;
        }
    }
    let turns: u64 = reports.iter().map(|report| report.turns).sum();
    let lasted: f64 = reports.iter().map(|report| report.lasted.as_secs_f64()).sum();
    println!(
        "{} worlds, {turns} turns, {:.0} h of their time, in {took:.1?} ({:.0} a second)",
        reports.len(),
        lasted / 3600.0,
        reports.len() as f64 / took.as_secs_f64()
    );
    println!("requests ended: {ends:?}");
    let failed = tell(&reports, 1, mutant, Job::Gateway);
    if seeds == SEEDS && mutant.is_none() && failed.is_empty() {
        let missing: Vec<_> = ENDS.iter().filter(|end| !ends.contains_key(*end)).collect();
        assert!(missing.is_empty(), "no world reaches {missing:?}");
        assert_made(&MOVES);
    }
    assert!(failed.is_empty(), "{} worlds in which somebody is wronged: {failed:?}", failed.len());
}

#[test]
fn an_echo_gives_everything_back_in_any_world() {
    let mutant = mutant();
    let reports = run_all(seeds(&SEEDS), 1, mutant, false, Job::Echo);
    let failed = tell(&reports, 1, mutant, Job::Echo);
    assert!(failed.is_empty(), "{} worlds in which somebody is wronged: {failed:?}", failed.len());
}

/// Every way in which a request of a visitor can end. Some seed must reach each.
const ANSWERS: [&str; 8] = ["200", "101", "408", "413", "502", "503", "504", "cut off"];
/// Fewer seeds, because these worlds take more time for their long bodies.
const HTTP_SEEDS: Range<u64> = 0..1500;

const HOSTS_SEEDS: Range<u64> = 0..1000;

#[test]
fn nobody_gets_another_body_or_fails_without_need_in_any_world() {
    before_http(&HTTP_SEEDS, Job::Http);
}

#[test]
fn nobody_gets_another_body_or_fails_without_need_before_programs_in_any_world() {
    before_http(&HOSTS_SEEDS, Job::Hosts);
}

fn before_http(usual: &Range<u64>, job: Job) {
    let mutant = mutant();
    let seeds = seeds(usual);
    let begun = Instant::now();
    let first = std::env::var("SIMULATE_FIRST").is_ok();
    let reports = run_all(seeds.clone(), 1, mutant, first, job);
    let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
    for (end, count) in reports.iter().flat_map(|report| &report.ends) {
        *ends.entry(end).or_default() += count;
    }
    println!("{} worlds of {job:?} in {:.1?}: {ends:?}", reports.len(), begun.elapsed());
    let failed = tell(&reports, 1, mutant, job);
    if seeds == *usual && mutant.is_none() && failed.is_empty() {
        let missing: Vec<_> = ANSWERS.iter().filter(|end| !ends.contains_key(*end)).collect();
        assert!(missing.is_empty(), "no world reaches {missing:?}");
        // Worlds of spawned servers have no fallback, so their requests are not passed on.
        if job == Job::Http {
            assert_made(&MOVES_HTTP);
        }
        assert_all_of_sessions();
    }
    assert!(failed.is_empty(), "{} worlds in which somebody is wronged: {failed:?}", failed.len());
}

/// The seeds for each number of shards and each job.
const SHARD_SEEDS: Range<u64> = 0..400;

#[test]
fn nobody_is_wronged_by_several_shards_in_any_world() {
    several_shards(Job::Gateway);
}

#[test]
fn nobody_is_wronged_by_several_shards_before_servers_in_any_world() {
    several_shards(Job::Http);
}

#[test]
fn nobody_is_wronged_by_several_shards_before_programs_that_serve_in_any_world() {
    several_shards(Job::Hosts);
}

fn several_shards(job: Job) {
    let (mutant, first) = (mutant(), std::env::var("SIMULATE_FIRST").is_ok());
    let mut failed = Vec::new();
    for shards in [2, 4] {
        let begun = Instant::now();
        let reports = run_all(seeds(&SHARD_SEEDS), shards, mutant, first, job);
        let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
        for (end, count) in reports.iter().flat_map(|report| &report.ends) {
            *ends.entry(end).or_default() += count;
        }
        let (worlds, took) = (reports.len(), begun.elapsed());
        println!("{worlds} worlds of {shards} shards in {took:.1?}: {ends:?}");
        failed.extend(tell(&reports, shards, mutant, job).into_iter().map(|seed| (shards, seed)));
    }
    let usual = seeds(&SHARD_SEEDS) == SHARD_SEEDS;
    if job == Job::Http && usual && mutant.is_none() && failed.is_empty() {
        assert_made(&MOVES_SHARDS);
    }
    assert!(failed.is_empty(), "{} worlds in which somebody is wronged: {failed:?}", failed.len());
}

/// The transitions of exchanges that must be reached by worlds of one shard with programs, by worlds with servers, and
/// by worlds with servers on several shards. Together these are all transitions, except that of a request that is sent
/// directly to the dedicated program of its connection.
const MOVES: [(&str, &str); 4] =
    [("received", "admit"), ("waiting", "dispatch"), ("working", "give back"), ("working", "next")];
const MOVES_HTTP: [(&str, &str); 3] =
    [("received", "admit"), ("received", "pass on"), ("waiting", "pass on")];
const MOVES_SHARDS: [(&str, &str); 2] = [("received", "cross"), ("working", "cross")];

/// Checks that every transition of an HTTP session was reached, except those of bodies that are buffered completely
/// before the request is submitted: no world uses them.
fn assert_all_of_sessions() {
    let made = gateway::session_moves_made();
    let here = |(stage, step): &(&str, &str)| *stage != "buffered" && *step != "gather";
    let missing: Vec<_> =
        gateway::session_moves().into_iter().filter(here).filter(|it| !made.contains(it)).collect();
    assert!(missing.is_empty(), "no world reaches {missing:?}");
}

fn assert_made(moves: &[(&str, &str)]) {
    let made = gateway::moves_made();
    let missing: Vec<_> = moves.iter().filter(|one| !made.contains(one)).collect();
    assert!(missing.is_empty(), "no world reaches {missing:?}");
}

/// Prints the violations, and returns the seeds with violations.
fn tell(reports: &[Report], shards: usize, mutant: Option<Mutant>, job: Job) -> Vec<u64> {
    let failed: Vec<_> = reports.iter().filter(|report| !report.violations.is_empty()).collect();
    for report in failed.iter().take(SHOWN_MAX) {
        println!("\nseed {}:", report.seed);
        for text in &report.violations {
            println!("  {text}");
        }
        let options = Options { seed: report.seed, shards, mutant, trace: true };
        println!("  {}", replay(options, job));
    }
    failed.iter().map(|report| report.seed).collect()
}

/// Prints all events in the world of `SIMULATE_SEED`; without it, of one seed of each job. Printing changes nothing:
/// the world is the same as without it.
#[test]
fn replay_of_a_seed() {
    let shards = number("SIMULATE_SHARDS").map_or(1, |it| usize::try_from(it).unwrap());
    let named =
        Job::ALL.iter().find(|job| job.variable().is_some_and(|it| std::env::var(it).is_ok()));
    let (seed, jobs) = match number("SIMULATE_SEED") {
        Some(seed) => (seed, vec![*named.unwrap_or(&Job::Gateway)]),
        None => (REPLAYED, Job::ALL.to_vec()),
    };
    for job in jobs {
        let options = Options { seed, shards, mutant: mutant(), trace: true };
        let report = job.run(options);
        println!("seed {seed}: {report:#?}");
        assert!(report.violations.is_empty(), "somebody is wronged");
        let untold = job.run(Options { trace: false, ..options });
        assert_eq!(report.digest, untold.digest, "{job:?}: a replay is another world");
        assert!(report.turns > 10 && report.digest.1 > 10, "{job:?}: nothing happens in it");
    }
}

/// A seed whose world has some activity.
const REPLAYED: u64 = 7;

#[test]
fn the_same_seed_gives_the_same_world() {
    for seed in 0..200 {
        let shards = if seed % 2 == 0 { 1 } else { 3 };
        let options = Options { seed: seed * 31, shards, mutant: None, trace: false };
        for job in Job::ALL {
            let (one, other) = (job.run(options), job.run(options));
            assert_eq!(one.violations, other.violations, "{job:?}, seed {}", options.seed);
            assert_eq!(one.digest, other.digest, "{job:?}, seed {}", options.seed);
            assert_eq!(one.ends, other.ends);
        }
    }
}
