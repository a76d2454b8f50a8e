//! The case of row E: a thousand connections, and each is given 64 KiB at once. Its balancer was said to
//! be 1.3 times as quick by epoll as by select, in the time that clients spent in `send`.
//!
//! Here the kernel takes the bytes on its own: loopback's buffers hold 64 KiB, so `send` need not wait
//! for the server. Therefore it is also measured when the server has received all, and its CPU time.

use super::bench::Bench;
use super::part::Part;
use crate::bench::process;
use crate::bench::server::{Server, wait_until};
use crate::bench::statistics::{Pairs, Quartiles};
use crate::shell::Failure;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 1000;
/// Bytes that each connection is given.
const SIZE: usize = 64 << 10;
/// Times that a server is given them in a round, on new connections each time.
const RELEASES: usize = 5;

/// What one round of one backend showed, for one connection.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    send_us: f64,
    received_us: f64,
    cpu_us: f64,
}

type Measure = fn(&Sample) -> f64;

pub(super) fn measure(bench: &Bench) -> Result<Part, Failure> {
    let mut samples: [Vec<Sample>; 2] = Default::default();
    for round in 0..bench.rounds as usize {
        eprintln!("release: round {} of {}", round + 1, bench.rounds);
        let mut pair = [Sample::default(); 2];
        for turn in 0..2 {
            // Who is first alternates.
            let at = (turn + round) % 2;
            pair[at] = sample(bench, ["epoll", "select"][at])?;
        }
        samples.iter_mut().zip(pair).for_each(|(all, one)| all.push(one));
    }
    Ok(Part::of(text(&samples)))
}

fn sample(bench: &Bench, backend: &str) -> Result<Sample, Failure> {
    let failed = |error: io::Error| Failure::new(format!("release by {backend}: {error}"));
    super::echo::share_a_core().map_err(failed)?;
    let mut command = Command::new(bench.built("echo"));
    command.args([backend, "discard"]);
    let server = Server::start(command, &bench.folder.join("release.log"))?;
    // Buffers and tables that grow once have grown after the first.
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

/// A thousand connections that are all accepted are given their bytes, one after the other; then each
/// waits until the server, which answers nothing, has received all and closes.
fn release(server: &Server) -> Result<Sample, Failure> {
    let failed = |error: io::Error| Failure::new(format!("a release: {error}"));
    let open = || process::descriptors(server.process()).map_err(failed);
    let (before, bytes) = (open()?, vec![b'r'; SIZE]);
    let streams: io::Result<Vec<TcpStream>> = (0..CONNECTIONS)
        .map(|_| {
            let stream = TcpStream::connect(&server.address)?;
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            Ok(stream)
        })
        .collect();
    let mut streams = streams.map_err(failed)?;
    if !wait_until(|| open().is_ok_and(|now| now >= before + CONNECTIONS)) {
        return Err(Failure::new("not all connections were accepted"));
    }
    let (cpu, begun) = (process::cpu_ns(server.process()).map_err(failed)?, Instant::now());
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
    let cpu = process::cpu_ns(server.process()).map_err(failed)? - cpu;
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

fn text([epoll, select]: &[Vec<Sample>; 2]) -> String {
    let mut text = format!(
        "## Select beside epoll, {CONNECTIONS} connections that are given {} KiB at once\n\n\
         The original's case (UltraMonkey-L7: epoll 1.3 times as quick as select). All connections are accepted \
         before; then one client sends on each in turn, on the core that it shares with the server, ends its half of each, \
         and waits until the server, `event` over that backend, has received all and closes. µs are for each connection. \
         The original took the time in the client's `send`; today loopback's buffers take {} KiB without the server, \
         so there is also the time until it has received all, and its CPU time.\n\n\
         | Measure | epoll | select | select × epoll |\n|---|---|---|---|\n",
        SIZE >> 10,
        SIZE >> 10,
    );
    let shown = |of: Quartiles| format!("{:.2} [{:.2}–{:.2}]", of.median, of.low, of.high);
    let measures: [(&str, Measure); 3] = [
        ("µs in the client's `send`", |sample| sample.send_us),
        ("µs until the server has received all", |sample| sample.received_us),
        ("CPU µs of the server", |sample| sample.cpu_us),
    ];
    for (name, of) in measures {
        let mut pairs = Pairs::default();
        epoll.iter().zip(select).for_each(|(epoll, select)| pairs.push(of(epoll), of(select)));
        let [epoll, select, ratio] =
            [pairs.ours(), pairs.theirs(), pairs.theirs_by_ours()].map(shown);
        text.push_str(&format!("| {name} | {epoll} | {select} | {ratio} |\n"));
    }
    text + "\n"
}
