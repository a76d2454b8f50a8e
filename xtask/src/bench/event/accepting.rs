//! Two loops that serve one address: how they get its connections, and the cost.
//!
//! Clients connect, send, receive a byte and close, repeatedly on each of a few threads. The byte is the number of the
//! loop that answered, and shows how the connections were distributed.

use super::page::TEXT;
use crate::bench::clients::{connect, on_threads};
use crate::bench::driver::Part;
use crate::bench::ground::Ground;
use crate::bench::page::row;
use crate::bench::process;
use crate::shell::{Failure, command};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The methods, by their names in the example and in words.
const WAYS: [(&str, &str); 3] = [
    ("port", "a socket for each (`SO_REUSEPORT`)"),
    ("shared", "one socket that both watch"),
    ("handover", "a thread accepts and deals in turn"),
];
/// The number of concurrent clients.
const CLIENTS: usize = 4;
/// One of this number of connections of a client keeps its loop busy for 5 ms.
const BUSY_EVERY: usize = 100;
/// The number of connections that are kept open to see how they were distributed.
const KEPT: usize = 1000;

/// The results of one client: how often each loop answered, and the durations.
#[derive(Debug, Default)]
struct Done {
    by_loop: [u64; 2],
    times_us: Vec<f64>,
}

pub(super) fn measure(ground: &Ground) -> Result<Part, Failure> {
    let names = WAYS.map(|(name, _)| name);
    let trial = ground.rounds("accepting", &names, |_, at| sample(ground, names[at]))?;
    let rows = WAYS.map(|(way, words)| {
        let of = |what, digits| trial.of(way, what).digits(digits);
        row(&[
            &words,
            &of("connections_s", 0),
            &of("cpu_us", 1),
            &trial.ratio("cpu_us", way, names[0]).digits(2),
            &of("share_kept", 0),
            &of("share", 0),
            &of("p50_us", 0),
            &of("p99_us", 0),
        ])
    });
    Ok(Part::text(TEXT.fill(
        "accepting",
        &[
            ("clients", &CLIENTS),
            ("kept", &KEPT),
            ("busy_every", &BUSY_EVERY),
            ("rows", &rows.concat()),
        ],
    )))
}

/// Measures one method once. A share is the larger one of the connections, in percent. The times are from `connect` to
/// the byte, while a loop is busy occasionally.
fn sample(ground: &Ground, way: &str) -> Result<Value, Failure> {
    spread().map_err(Failure::at("affinity"))?;
    let server = ground.start(command(ground.example("accepting"), [way]), "accepting")?;
    let kept = keep(&server.address).map_err(Failure::at(way))?;
    let warm = ground.window / 4;
    ask(&server.address, warm, usize::MAX)?;
    let begun = Instant::now();
    let (cpu_us, plain) =
        process::cpu_us(&[server.process()], || ask(&server.address, ground.window, usize::MAX))?;
    let took = begun.elapsed().as_secs_f64();
    let mut busy = ask(&server.address, ground.window, BUSY_EVERY)?;
    server.stop()?;
    busy.times_us.sort_by(f64::total_cmp);
    let at = |part: usize| busy.times_us[busy.times_us.len() * part / 100];
    let all = plain.by_loop.iter().sum::<u64>() as f64;
    Ok(json!({
        "connections_s": all / took, "cpu_us": cpu_us / all, "share": larger(plain.by_loop),
        "share_kept": larger(kept), "p50_us": at(50), "p99_us": at(99),
    }))
}

/// Lets the processes use all processors. Other parts use only one.
fn spread() -> io::Result<()> {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|processor| all.set(processor));
    Ok(sched_setaffinity(None, &all)?)
}

fn larger([one, other]: [u64; 2]) -> f64 {
    100.0 * one.max(other) as f64 / (one + other).max(1) as f64
}

/// Opens persistent connections. Returns how many each loop has.
fn keep(address: &str) -> io::Result<[u64; 2]> {
    let (mut kept, mut by_loop) = (Vec::new(), [0; 2]);
    for _ in 0..KEPT {
        let mut stream = connect(address)?;
        by_loop[say(&mut stream, b"keep")?] += 1;
        kept.push(stream);
    }
    Ok(by_loop)
}

/// Runs all clients for this time. One of `busy_every` connections of each is `busy`.
fn ask(address: &str, window: Duration, busy_every: usize) -> Result<Done, Failure> {
    let until = Instant::now() + window;
    let each = on_threads(CLIENTS, |_| {
        let mut done = Done::default();
        for number in 1.. {
            let begun = Instant::now();
            if begun >= until {
                break;
            }
            let is_busy = number % busy_every == 0;
            let mut stream = connect(address)?;
            let number = say(&mut stream, if is_busy { b"busy" } else { b"once" })?;
            done.by_loop[number] += 1;
            if !is_busy {
                done.times_us.push(begun.elapsed().as_secs_f64() * 1e6);
            }
        }
        Ok(done)
    })?;
    let by_loop = [0, 1].map(|number: usize| each.iter().map(|done| done.by_loop[number]).sum());
    Ok(Done { by_loop, times_us: each.into_iter().flat_map(|done| done.times_us).collect() })
}

/// Sends a word. Returns the number of the loop that answered.
fn say(stream: &mut TcpStream, word: &[u8]) -> io::Result<usize> {
    stream.write_all(word)?;
    let mut number = [0];
    stream.read_exact(&mut number)?;
    Ok(usize::from(number[0].min(1)))
}
