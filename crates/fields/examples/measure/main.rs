//! Measures the stores with the system's allocator. `cargo xtask bench fields` runs this program and generates a page
//! from its output.
//!
//! ```text
//! measure time PART ROUNDS     prints one line per measurement: task, subject, threads, the quartiles of the
//!                              nanoseconds per unit, and their 99th percentile within the rounds
//! measure count WHAT TIMES     repeats one operation, so that a tool can count its instructions
//! measure peak STORE           prints how much the process grows with 1000 sets of that store, in KiB
//! ```

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // A benchmark needs a clock and threads.

#[path = "heads.rs"]
mod heads;
#[path = "layouts.rs"]
mod layouts;
#[path = "lookups.rs"]
mod lookups;
#[path = "query.rs"]
mod query;
#[path = "sets.rs"]
mod sets;
#[path = "subjects.rs"]
mod subjects;

use std::hint::black_box;
use std::time::Instant;

const THREADS: [usize; 5] = [1, 2, 4, 8, 30];

/// The result of a round: nanoseconds per unit, for the whole round and for each small part of it.
struct Round {
    ns: f64,
    parts: Vec<f64>,
}

type Run = Box<dyn Fn() -> Round>;

/// One measurement: its name, and the nanoseconds per unit in each round.
struct Measured {
    subject: &'static str,
    ns: Vec<f64>,
    parts: Vec<f64>,
}

/// Runs all subjects of a task in several rounds, in a different random order in each round.
fn alternate(task: &str, threads: usize, rounds: usize, subjects: Vec<(&'static str, Run)>) {
    let new = |subject| Measured { subject, ns: Vec::new(), parts: Vec::new() };
    let mut all: Vec<_> = subjects.iter().map(|(subject, _)| new(*subject)).collect();
    let (mut order, mut state): (Vec<usize>, u64) = ((0..subjects.len()).collect(), SEED);
    for round in 0..=rounds {
        shuffle(&mut order, &mut state);
        for &at in &order {
            let measured = &mut all[at];
            let Round { ns, parts } = (subjects[at].1)();
            // The first round fills caches and pools.
            if round > 0 {
                measured.ns.push(ns);
                measured.parts.extend(parts);
            }
        }
    }
    for Measured { subject, mut ns, mut parts } in all {
        ns.sort_by(f64::total_cmp);
        parts.sort_by(f64::total_cmp);
        let at = |part: usize| ns[(ns.len() - 1) * part / 4];
        let slow = parts.get(parts.len() * 99 / 100);
        let slow = slow.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.1}"));
        println!("{task}\t{subject}\t{threads}\t{:.1}\t{:.1}\t{:.1}\t{slow}", at(1), at(2), at(3));
    }
}

/// The seed for the order of the subjects. It is fixed, so that a run can be repeated.
const SEED: u64 = 0x5eed;

/// Shuffles with a linear congruential generator. Its high bits are sufficient for an order.
fn shuffle(order: &mut [usize], state: &mut u64) {
    for last in (1..order.len()).rev() {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from((*state >> 33) % (last as u64 + 1)).expect("it is an index");
        order.swap(last, other);
    }
}

/// The wall time per unit when each of `threads` threads processes `units` units.
fn timed(threads: usize, units: usize, work: impl Fn() + Sync) -> Round {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(&work);
        }
        work();
    });
    let ns = began.elapsed().as_nanos() as f64 / (threads * units) as f64;
    Round { ns, parts: Vec::new() }
}

/// Measures `count` parts of `units` units each, on this thread.
fn in_parts(count: usize, units: usize, mut work: impl FnMut()) -> Round {
    let part = |_| {
        let began = Instant::now();
        work();
        began.elapsed().as_nanos() as f64 / units as f64
    };
    let parts: Vec<f64> = (0..count).map(part).collect();
    Round { ns: parts.iter().sum::<f64>() / count as f64, parts }
}

/// A unit that is repeated ten thousand times on one thread.
fn unit<R>(work: impl Fn() -> R + 'static) -> Run {
    Box::new(move || in_parts(100, 100, || (0..100).for_each(|_| drop(black_box(work())))))
}

fn count(what: &str, times: usize) {
    let work: Box<dyn Fn()> = match what {
        "look-up" => return lookups::count(times),
        "nothing" => return lookups::count_nothing(times),
        "present" => lookups::present(),
        "head" => heads::parse_fields(),
        "httparse" => heads::parse_alone(),
        store => sets::refill(store),
    };
    (0..times).for_each(|_| work());
}

pub(crate) fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut word = || arguments.next().unwrap_or_default();
    let (what, which) = (word(), word());
    let number = word().parse().unwrap_or(5);
    match (&*what, &*which) {
        ("count", _) => count(&which, number),
        ("peak", _) => println!("{}", sets::peak(&which)),
        ("time", "query") => query::time(number),
        ("time", "sets") => sets::time(number),
        ("time", "heads") => heads::time(number),
        ("time", "lookups") => lookups::time(number),
        ("time", "layouts") => layouts::time(number),
        _ => eprintln!("measure time query|sets|heads|lookups|layouts ROUNDS, count, or peak"),
    }
}
