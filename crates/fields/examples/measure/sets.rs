//! Sets of twenty members: many sets that are kept, or one set that is refilled repeatedly.

use std::hint::black_box;

use fields::Fields;
use http::header::HeaderMap;

use super::subjects::{self, Classic, Members, Reform, Store, Strings, Tree};
use super::{Round, Run, THREADS, alternate, in_parts, timed};

const SETS: usize = 1000;
const TIMES: usize = 5;

/// The copies that every store must make, into existing memory: the lower bound.
struct Copies(Vec<u8>);

impl Store for Copies {
    const NAME: &'static str = "the copies alone, nothing kept";

    fn fill(members: &Members) -> Self {
        let mut copies = Self(Vec::with_capacity(1024));
        copies.refill(members);
        copies
    }

    fn refill(&mut self, members: &Members) {
        self.0.clear();
        for (name, value) in members {
            self.0.extend_from_slice(name);
            self.0.extend_from_slice(value);
        }
    }
}

fn kept<S: Store>(threads: usize, members: &Members) -> Round {
    let fill = || S::fill(members);
    if threads == 1 {
        let mut sets: Vec<S> = Vec::with_capacity(SETS);
        return in_parts(TIMES * SETS / 10, 10, || {
            if sets.len() == SETS {
                sets.clear();
            }
            sets.extend((0..10).map(|_| fill()));
        });
    }
    timed(threads, SETS * TIMES, || {
        for _ in 0..TIMES {
            let sets: Vec<S> = (0..SETS).map(|_| fill()).collect();
            black_box(&sets);
        }
    })
}

fn streamed<S: Store>(threads: usize, members: &Members) -> Round {
    if threads == 1 {
        let mut set = S::fill(members);
        return in_parts(TIMES * SETS / 10, 10, || {
            for _ in 0..10 {
                set.refill(members);
                black_box(&mut set);
            }
        });
    }
    timed(threads, SETS * TIMES, || {
        let mut set = S::fill(members);
        for _ in 0..SETS * TIMES {
            set.refill(members);
            black_box(&mut set);
        }
    })
}

fn of<S: Store + 'static>(
    measure: fn(usize, &Members) -> Round,
    threads: usize,
) -> (&'static str, Run) {
    let members = subjects::twenty();
    (S::NAME, Box::new(move || measure(threads, &members)))
}

pub(crate) fn time(rounds: usize) {
    for threads in THREADS {
        let subjects = vec![
            of::<Fields>(kept::<Fields>, threads),
            of::<HeaderMap>(kept::<HeaderMap>, threads),
            of::<Tree>(kept::<Tree>, threads),
            of::<Strings>(kept::<Strings>, threads),
            of::<Classic>(kept::<Classic>, threads),
            of::<Reform>(kept::<Reform>, threads),
        ];
        alternate("T1 kept: 1000 sets x 20 members, all alive", threads, rounds, subjects);
        let subjects = vec![
            of::<Fields>(streamed::<Fields>, threads),
            of::<HeaderMap>(streamed::<HeaderMap>, threads),
            of::<Tree>(streamed::<Tree>, threads),
            of::<Strings>(streamed::<Strings>, threads),
            of::<Classic>(streamed::<Classic>, threads),
            of::<Reform>(streamed::<Reform>, threads),
            of::<Copies>(streamed::<Copies>, threads),
        ];
        alternate("T1 streamed: one set of 20 members, filled again", threads, rounds, subjects);
    }
}

fn refilled<S: Store + 'static>() -> Box<dyn Fn()> {
    let members = subjects::twenty();
    let set = std::cell::RefCell::new(S::fill(&members));
    Box::new(move || {
        set.borrow_mut().refill(&members);
        black_box(&set);
    })
}

/// Refills a set of this store. Does nothing for an unknown name.
pub(crate) fn refill(store: &str) -> Box<dyn Fn()> {
    match store {
        Fields::NAME => refilled::<Fields>(),
        HeaderMap::NAME => refilled::<HeaderMap>(),
        Tree::NAME => refilled::<Tree>(),
        Strings::NAME => refilled::<Strings>(),
        Classic::NAME => refilled::<Classic>(),
        Reform::NAME => refilled::<Reform>(),
        Copies::NAME => refilled::<Copies>(),
        _ => Box::new(|| ()),
    }
}

/// The maximum growth of the resident memory of this process, in KiB.
fn grown<S: Store>() -> u64 {
    let members = subjects::twenty();
    drop(S::fill(&members));
    let before = status("VmRSS:");
    let sets: Vec<S> = (0..SETS).map(|_| S::fill(&members)).collect();
    black_box(&sets);
    status("VmHWM:").saturating_sub(before)
}

/// A number from `/proc/self/status`, in KiB.
fn status(name: &str) -> u64 {
    let all = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = all.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

/// The maximum memory of 1000 sets of this store, including the overhead of the allocator, in KiB.
pub(crate) fn peak(store: &str) -> u64 {
    match store {
        Fields::NAME => grown::<Fields>(),
        HeaderMap::NAME => grown::<HeaderMap>(),
        Tree::NAME => grown::<Tree>(),
        Strings::NAME => grown::<Strings>(),
        Classic::NAME => grown::<Classic>(),
        Reform::NAME => grown::<Reform>(),
        _ => 0,
    }
}
