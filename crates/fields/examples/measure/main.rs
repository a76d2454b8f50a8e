//! Measures the stores under the system's allocator. `measure time ROUNDS` prints one line a
//! measurement: task, subject, threads, and the quartiles of the nanoseconds of one unit.
//! `measure lookups COUNT` only looks up, to be counted by a tool. `cargo xtask bench fields` runs
//! it and makes the page of it.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // It measures: clock and threads.

#[path = "heads.rs"]
mod heads;
#[path = "subjects.rs"]
mod subjects;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use block::Slice;
use fields::{Case, Fields, Rows, Schema, Value, known};
use http::header::HeaderMap;
use subjects::{Classic, Members, Reform, Store, Strings};

const SETS: usize = 1000;
const THREADS: [usize; 5] = [1, 2, 4, 8, 30];

/// One measurement: what it is called, and how long a unit took in each round.
struct Measured {
    task: String,
    subject: &'static str,
    threads: usize,
    ns: Vec<f64>,
}

type Run = Box<dyn Fn() -> f64>;

/// Runs all subjects of a task in turn, round after round.
fn alternate(task: &str, threads: usize, rounds: usize, subjects: Vec<(&'static str, Run)>) {
    let new = |subject| Measured { task: task.to_owned(), subject, threads, ns: Vec::new() };
    let mut all: Vec<_> = subjects.iter().map(|(subject, _)| new(*subject)).collect();
    for round in 0..=rounds {
        for (measured, (_, run)) in all.iter_mut().zip(&subjects) {
            let ns = run();
            // The first round warms caches and pools up.
            if round > 0 {
                measured.ns.push(ns);
            }
        }
    }
    for mut measured in all {
        measured.ns.sort_by(f64::total_cmp);
        let Measured { task, subject, threads, ns } = measured;
        let at = |part: usize| ns[(ns.len() - 1) * part / 4];
        println!("{task}\t{subject}\t{threads}\t{:.1}\t{:.1}\t{:.1}", at(1), at(2), at(3));
    }
}

/// Wall time of one unit when `threads` do `units` each.
fn timed(threads: usize, units: usize, work: impl Fn() + Sync) -> f64 {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(&work);
        }
        work();
    });
    began.elapsed().as_nanos() as f64 / (threads * units) as f64
}

fn kept<S: Store>(threads: usize, members: &Members) -> f64 {
    timed(threads, SETS * 5, || {
        for _ in 0..5 {
            let sets: Vec<S> = (0..SETS).map(|_| S::fill(members)).collect();
            black_box(&sets);
        }
    })
}

fn streamed<S: Store>(threads: usize, members: &Members) -> f64 {
    timed(threads, SETS * 5, || {
        let mut set = S::fill(members);
        for _ in 0..SETS * 5 {
            set.refill(members);
            black_box(&mut set);
        }
    })
}

fn of<S: Store + 'static>(
    measure: fn(usize, &Members) -> f64,
    threads: usize,
) -> (&'static str, Run) {
    let members = subjects::twenty();
    (S::NAME, Box::new(move || measure(threads, &members)))
}

fn fill(rounds: usize) {
    for threads in THREADS {
        let task = "T1 kept: 1000 sets x 20 members, all alive";
        alternate(
            task,
            threads,
            rounds,
            vec![
                of::<Fields>(kept::<Fields>, threads),
                of::<HeaderMap>(kept::<HeaderMap>, threads),
                of::<Strings>(kept::<Strings>, threads),
                of::<Classic>(kept::<Classic>, threads),
                of::<Reform>(kept::<Reform>, threads),
            ],
        );
        let task = "T1 streamed: one set of 20 members, filled again";
        alternate(
            task,
            threads,
            rounds,
            vec![
                of::<Fields>(streamed::<Fields>, threads),
                of::<HeaderMap>(streamed::<HeaderMap>, threads),
                of::<Strings>(streamed::<Strings>, threads),
                of::<Classic>(streamed::<Classic>, threads),
                of::<Reform>(streamed::<Reform>, threads),
            ],
        );
    }
}

/// A unit that is done ten thousand times on one thread.
fn unit<R>(work: impl Fn() -> R + 'static) -> Run {
    Box::new(move || {
        let began = Instant::now();
        (0..10_000).for_each(|_| drop(black_box(work())));
        began.elapsed().as_nanos() as f64 / 10_000.0
    })
}

fn head(rounds: usize, name: &str, members: &Members) {
    let lines = subjects::lines(members);
    let (ended, slice) = (heads::ended(&lines), Slice::copy_of(&lines));
    let task = format!("T2 parse and store, {name}");
    let (a, b, c, d) = (ended.clone(), slice.clone(), ended.clone(), ended.clone());
    alternate(
        &task,
        1,
        rounds,
        vec![
            ("Fields", unit(move || black_box(heads::adopt(&b)).give_back())),
            ("httparse alone, nothing stored", unit(move || heads::httparse(&a))),
            ("http::HeaderMap", unit(move || heads::header_map(&c))),
            ("Vec<(String, String)>", unit(move || heads::strings(&d))),
        ],
    );
    let task = format!("T2 parse, store, 8 look-ups, send, {name}");
    let (c, d) = (ended.clone(), ended);
    alternate(
        &task,
        1,
        rounds,
        vec![
            (
                "Fields",
                unit(move || {
                    let set = heads::adopt(&slice);
                    let mut out = Vec::with_capacity(2048);
                    black_box(heads::ask_fields(&set));
                    heads::send_fields(&set, black_box(&mut out));
                    set.give_back();
                }),
            ),
            (
                "http::HeaderMap",
                unit(move || {
                    let map = heads::header_map(&c);
                    let mut out = Vec::with_capacity(2048);
                    black_box(heads::ask_map(&map));
                    heads::send_map(&map, black_box(&mut out));
                }),
            ),
            (
                "Vec<(String, String)>",
                unit(move || {
                    let list = heads::strings(&d);
                    let mut out = Vec::with_capacity(2048);
                    black_box(heads::ask_strings(&list));
                    heads::send_strings(&list, black_box(&mut out));
                }),
            ),
        ],
    );
}

fn edit(rounds: usize) {
    let lines = subjects::lines(&subjects::twenty());
    let (ended, slice) = (heads::ended(&lines), Slice::copy_of(&lines));
    let (set, map, list) =
        (heads::adopt(&slice), heads::header_map(&ended), heads::strings(&ended));
    let same = set.clone();
    alternate(
        "T3 send unchanged, 20 headers",
        1,
        rounds,
        vec![
            (
                "Fields",
                unit({
                    let set = set.clone();
                    move || fields::http1::io_slices(&set).count()
                }),
            ),
            (
                "Fields, copied",
                unit(move || {
                    let mut out = Vec::with_capacity(2048);
                    heads::send_fields(&same, black_box(&mut out));
                }),
            ),
            (
                "http::HeaderMap",
                unit({
                    let map = map.clone();
                    move || {
                        let mut out = Vec::with_capacity(2048);
                        heads::send_map(&map, black_box(&mut out));
                    }
                }),
            ),
        ],
    );
    alternate(
        "T3 copy the set, 2 out, 2 in, send",
        1,
        rounds,
        vec![
            (
                "Fields",
                unit(move || {
                    let mut set = set.clone();
                    heads::edit_fields(&mut set);
                    let mut out = Vec::with_capacity(2048);
                    heads::send_fields(&set, black_box(&mut out));
                }),
            ),
            (
                "http::HeaderMap",
                unit(move || {
                    let mut map = map.clone();
                    heads::edit_map(&mut map);
                    let mut out = Vec::with_capacity(2048);
                    heads::send_map(&map, black_box(&mut out));
                }),
            ),
            (
                "Vec<(String, String)>",
                unit(move || {
                    let mut list = list.clone();
                    heads::edit_strings(&mut list);
                    let mut out = Vec::with_capacity(2048);
                    heads::send_strings(&list, black_box(&mut out));
                }),
            ),
        ],
    );
}

fn lookup(rounds: usize) {
    let lines = subjects::lines(&subjects::twenty());
    let (ended, slice) = (heads::ended(&lines), Slice::copy_of(&lines));
    let (set, map) = (heads::adopt(&slice), heads::header_map(&ended));
    for (task, name) in [
        ("look-up of an absent known name", known::UPGRADE),
        ("look-up of a present known name, the 12th of 20", known::CONTENT_LENGTH),
    ] {
        let (set, map) = (set.clone(), map.clone());
        let theirs = http::HeaderName::from_static(name.as_str());
        alternate(
            task,
            1,
            rounds,
            vec![
                ("Fields", unit(move || black_box(black_box(&set).get(&name)).is_some())),
                (
                    "http::HeaderMap",
                    unit(move || black_box(black_box(&map).get(&theirs)).is_some()),
                ),
            ],
        );
    }
    alternate(
        "look-up of an absent name given as text",
        1,
        rounds,
        vec![
            ("Fields", unit(move || black_box(set.get(black_box("x-not-there"))).is_some())),
            (
                "http::HeaderMap",
                unit(move || black_box(map.get(black_box("x-not-there"))).is_some()),
            ),
        ],
    );
}

const COLUMNS: usize = 12;

/// What a query gave: for each of its rows the values of all columns.
struct Query {
    schema: Schema,
    cells: Vec<[u8; 22]>,
}

impl Query {
    fn rows(&self) -> impl Iterator<Item = &[[u8; 22]]> {
        self.cells.chunks_exact(COLUMNS)
    }

    fn batch(&self) {
        let schema = self.schema.clone();
        let mut rows = Rows::with_capacity(schema, SETS, SETS * COLUMNS * 22);
        for row in self.rows() {
            rows.push(row.iter().map(Value::from)).expect("a row");
        }
        black_box(&rows);
    }

    fn sets(&self) {
        let set = |row: &[[u8; 22]]| {
            let mut set = Fields::with_capacity(COLUMNS, 400);
            for (name, value) in self.schema.names().zip(row) {
                set.append(name, value);
            }
            set
        };
        black_box(self.rows().map(set).collect::<Vec<_>>());
    }

    fn strings(&self) {
        let boxed = |bytes: &[u8]| -> Box<[u8]> { bytes.into() };
        let set = |row: &[[u8; 22]]| {
            let mut set = Vec::with_capacity(10);
            for (name, value) in self.schema.names().zip(row) {
                set.push([boxed(name), boxed(value)]);
            }
            set
        };
        black_box(self.rows().map(set).collect::<Vec<_>>());
    }
}

/// The original's own case: a query of 1000 rows with 12 columns, 100 times on each thread. Here
/// without the database, so only what is stored counts.
fn rows(rounds: usize) {
    const QUERIES: usize = 100;
    let names = (0..COLUMNS).map(|column| format!("column_{column}"));
    let schema = Schema::new(names, Case::Exact);
    let query = Arc::new(Query { schema, cells: vec![[b'v'; 22]; SETS * COLUMNS] });
    for threads in THREADS {
        let of = |store: fn(&Query)| -> Run {
            let query = Arc::clone(&query);
            Box::new(move || {
                timed(threads, QUERIES, || (0..QUERIES).for_each(|_| store(&query))) / SETS as f64
            })
        };
        let subjects = vec![
            ("Rows", of(Query::batch)),
            ("Fields, one set a row", of(Query::sets)),
            ("one allocation a string", of(Query::strings)),
        ];
        alternate("T4 a row of a query of 1000 x 12", threads, rounds, subjects);
    }
}

fn only_lookups(count: usize) {
    let lines = subjects::lines(&subjects::twenty());
    let set = heads::adopt(&Slice::copy_of(&lines));
    for _ in 0..count {
        black_box(black_box(&set).get(&known::UPGRADE));
    }
}

pub(crate) fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(5);
    if what == "lookups" {
        return only_lookups(count);
    }
    rows(count);
    fill(count);
    head(count, "20 headers", &subjects::twenty());
    head(count, "9 headers", &subjects::twenty()[..9].to_vec());
    head(count, "100 tiny headers", &subjects::hundred_tiny());
    edit(count);
    lookup(count);
}
