//! The case of row E: a thousand connections receive 64 KiB each at the same time. The balancer of that case was
//! reported to be 1.3 times as fast with epoll as with select, by the time that clients spent in `send`.
//!
//! Here the kernel accepts the bytes immediately, because the loopback buffers hold 64 KiB, and `send` does not wait
//! for the server. So the time until the server has received everything and its CPU time are measured too.

use super::page::TEXT;
use crate::bench::child::wait_until;
use crate::bench::clients::connect;
use crate::bench::driver::Part;
use crate::bench::ground::Ground;
use crate::bench::page::row;
use crate::bench::process;
use crate::bench::server::Server;
use crate::shell::{Failure, command};
use serde_json::Value;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 1000;
/// Bytes per connection.
const SIZE: usize = 64 << 10;
/// The number of repetitions per round, each with new connections.
const RELEASES: usize = 5;

const BACKENDS: [&str; 2] = ["epoll", "select"];

/// The names of the values, and their rows.
const MEASURES: [(&str, &str); 3] = [
    ("send_us", "µs in the client's `send`"),
    ("received_us", "µs until the server has received all"),
    ("cpu_us", "CPU µs of the server"),
];

pub(super) fn measure(ground: &Ground) -> Result<Part, Failure> {
    let trial = ground.rounds("release", &BACKENDS, |_, at| sample(ground, BACKENDS[at]))?;
    let rows = MEASURES.map(|(what, words)| {
        let [epoll, select] = BACKENDS.map(|backend| trial.of(backend, what).digits(2));
        row(&[&words, &epoll, &select, &trial.ratio(what, "select", "epoll").digits(2)])
    });
    let values: [(&str, &dyn Display); 3] =
        [("connections", &CONNECTIONS), ("kib", &(SIZE >> 10)), ("rows", &rows.concat())];
    Ok(Part::text(TEXT.fill("release", &values)))
}

/// Returns the times of one round of one backend, per connection.
fn sample(ground: &Ground, backend: &str) -> Result<Value, Failure> {
    super::echo::share_a_core().map_err(Failure::at("affinity"))?;
    let server = ground.start(command(ground.example("echo"), [backend, "discard"]), "release")?;
    // After the first repetition, buffers and tables have their final sizes.
    release(&server)?;
    let mut sums = [0.0; 3];
    for _ in 0..RELEASES {
        for (sum, one) in sums.iter_mut().zip(release(&server)?) {
            *sum += one / RELEASES as f64;
        }
    }
    server.stop()?;
    Ok(MEASURES.iter().zip(sums).map(|((what, _), sum)| ((*what).to_owned(), sum)).collect())
}

/// Sends the bytes to a thousand accepted connections, one after the other. Then each waits until the server, which
/// sends no reply, has received everything and closes. Returns the values of [`MEASURES`].
fn release(server: &Server) -> Result<[f64; 3], Failure> {
    let failed = |error: io::Error| Failure::new(format!("a release: {error}"));
    let open = || process::descriptors(server.process());
    let (before, bytes) = (open()?, vec![b'r'; SIZE]);
    let streams: io::Result<Vec<TcpStream>> =
        (0..CONNECTIONS).map(|_| connect(&server.address)).collect();
    let mut streams = streams.map_err(failed)?;
    if !wait_until(|| open().is_ok_and(|now| now >= before + CONNECTIONS)) {
        return Err(Failure::new("not all connections were accepted"));
    }
    let (cpu, begun) = (process::cpu_ns(server.process())?, Instant::now());
    for stream in &mut streams {
        stream.write_all(&bytes).map_err(failed)?;
    }
    let send = begun.elapsed();
    for stream in &mut streams {
        stream.shutdown(Shutdown::Write).map_err(failed)?;
    }
    for stream in &mut streams {
        let left = stream.read(&mut [0; 1]).map_err(failed)?;
        if left != 0 {
            return Err(Failure::new("the server answered what it should discard"));
        }
    }
    let received = begun.elapsed();
    let cpu = process::cpu_ns(server.process())? - cpu;
    drop(streams);
    if !wait_until(|| open().is_ok_and(|now| now <= before)) {
        return Err(Failure::new("the server keeps connections that are closed"));
    }
    let each = |all: Duration| all.as_secs_f64() * 1e6 / CONNECTIONS as f64;
    Ok([send, received, Duration::from_nanos(cpu)].map(each))
}
