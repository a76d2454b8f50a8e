//! The case of row E: a thousand connections receive 64 KiB each at the same time. The balancer of that case was
//! reported to be 1.3 times as fast with epoll as with select, by the time that clients spent in `send`.
//!
//! Here the kernel accepts the bytes immediately, because the loopback buffers hold 64 KiB, and `send` does not wait
//! for the server. So the time until the server has received everything and its CPU time are measured too.

use super::page::TEXT;
use super::part::Part;
use crate::bench::child::wait_until;
use crate::bench::clients::connect;
use crate::bench::ground::Ground;
use crate::bench::process;
use crate::bench::server::Server;
use crate::bench::statistics::Quartiles;
use crate::bench::template::row;
use crate::shell::Failure;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 1000;
/// Bytes per connection.
const SIZE: usize = 64 << 10;
/// The number of repetitions per round, each with new connections.
const RELEASES: usize = 5;

/// The results of one round of one backend, per connection.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    send_us: f64,
    received_us: f64,
    cpu_us: f64,
}

type Measure = fn(&Sample) -> f64;

const MEASURES: [(&str, Measure); 3] = [
    ("µs in the client's `send`", |sample| sample.send_us),
    ("µs until the server has received all", |sample| sample.received_us),
    ("CPU µs of the server", |sample| sample.cpu_us),
];

pub(super) fn measure(ground: &Ground) -> Result<Part, Failure> {
    let by = |backend| move || sample(ground, backend);
    let [epoll, select] = ground.pairs("release", by("epoll"), by("select"))?;
    let rows = MEASURES.map(|(name, of)| {
        let ratio = Quartiles::of_ratios(&select, &epoll, of);
        let [epoll, select] = [&epoll, &select].map(|samples| Quartiles::of_each(samples, of));
        row(&[&name, &epoll.digits(2), &select.digits(2), &ratio.digits(2)])
    });
    let (kib, rows) = (SIZE >> 10, rows.concat());
    let values: [(&str, &dyn Display); 3] =
        [("connections", &CONNECTIONS), ("kib", &kib), ("rows", &rows)];
    Ok(Part::of(TEXT.fill("release", &values)))
}

fn sample(ground: &Ground, backend: &str) -> Result<Sample, Failure> {
    super::echo::share_a_core().map_err(Failure::at("affinity"))?;
    let mut command = Command::new(ground.example("echo"));
    command.args([backend, "discard"]);
    let server = ground.start(command, "release")?;
    // After the first repetition, buffers and tables have their final sizes.
    release(&server)?;
    let mut sum = Sample::default();
    for _ in 0..RELEASES {
        let one = release(&server)?;
        sum.send_us += one.send_us / RELEASES as f64;
        sum.received_us += one.received_us / RELEASES as f64;
        sum.cpu_us += one.cpu_us / RELEASES as f64;
    }
    server.stop()?;
    Ok(sum)
}

/// Sends the bytes to a thousand accepted connections, one after the other. Then each waits until the server, which
/// sends no reply, has received everything and closes.
fn release(server: &Server) -> Result<Sample, Failure> {
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
    Ok(Sample {
        send_us: each(send),
        received_us: each(received),
        cpu_us: each(Duration::from_nanos(cpu)),
    })
}
