//! Two HAProxy that share the stick table of a backend as peers.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::clients::{Clients, origin};
use crate::bench::child::{Child, wait_until};
use crate::bench::ground::Ground;
use crate::bench::process;
use crate::bench::server::free_port;
use crate::shell::{self, Failure};
use serde_json::{Value, json};

/// Commands in one line of the command interface.
const BATCH: usize = 100;
/// The maximum time to learn all clients.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two looks for a client. It bounds how exact a latency is.
const LOOK_EVERY: Duration = Duration::from_micros(200);
const NAMES: [&str; 2] = ["one", "two"];

/// One process.
struct HaProxy {
    child: Child,
    port: u16,
    socket: PathBuf,
}

/// The place of the processes, and the port of each for its peer.
struct Pair<'a> {
    ground: &'a Ground,
    server: u16,
    peers: [u16; 2],
    entries: u32,
}

impl Pair<'_> {
    /// Starts one of the processes, which has only one thread: it needs no more for this load, and the shared table
    /// would need locks.
    fn start(&self, at: usize, is_shared: bool) -> Result<HaProxy, Failure> {
        let Self { ground, server, peers, entries } = self;
        let (name, port) = (NAMES[at], free_port()?);
        let socket = ground.folder.join(format!("haproxy-{name}.sock"));
        let _ = std::fs::remove_file(&socket);
        let shared = if is_shared { " peers site" } else { "" };
        // A tenth more than are needed, because the table must evict none.
        let size = entries / 10 * 11;
        let text = format!(
            "global\n nbthread 1\n maxconn 2000\n localpeer {name}\n stats timeout 1h\n \
             stats socket {socket} mode 600 level admin\n\
             defaults\n mode http\n http-reuse always\n timeout connect 5s\n timeout client 300s\n \
             timeout server 300s\n timeout http-keep-alive 300s\n\
             peers site\n peer one 127.0.0.1:{one}\n peer two 127.0.0.1:{two}\n\
             frontend clients\n bind 127.0.0.1:{port}\n default_backend servers\n\
             backend servers\n stick-table type string len 32 size {size} expire 1h{shared}\n \
             stick on req.hdr(x-client)\n server a 127.0.0.1:{server}\n server b 127.0.0.1:{server}\n",
            socket = socket.display(),
            one = peers[0],
            two = peers[1],
        );
        let file = ground.folder.join(format!("haproxy-{name}.cfg"));
        shell::write(&file, &text)?;
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(file);
        let log = ground.folder.join(format!("haproxy-{name}.log"));
        let child = Child::start(command, Some(&log))?;
        if !wait_until(|| said(&socket, "show table").is_ok()) {
            return Err(child.failed("does not answer"));
        }
        Ok(HaProxy { child, port, socket })
    }
}

fn pair(ground: &Ground, server: u16, entries: u32) -> Result<Pair<'_>, Failure> {
    Ok(Pair { ground, server, peers: [free_port()?, free_port()?], entries })
}

/// The answer to a line of commands.
fn said(socket: &Path, line: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The number of clients in the table.
fn used(socket: &Path) -> io::Result<u32> {
    let answer = said(socket, "show table")?;
    let number = answer.split("used:").nth(1).and_then(|rest| rest.split_whitespace().next());
    number.and_then(|text| text.parse().ok()).ok_or_else(|| io::Error::other(answer))
}

fn failed(error: io::Error) -> Failure {
    Failure::at("haproxy")(error)
}

/// Measures the start of a process while its peer has all clients.
pub(super) fn catch_up(ground: &Ground, clients: u32) -> Result<Value, Failure> {
    // No request is sent, so there is no server.
    let pair = pair(ground, free_port()?, clients)?;
    let one = pair.start(0, true)?;
    let all: Vec<u32> = (0..clients).collect();
    for part in all.chunks(BATCH) {
        let set = |client| format!("set table servers key {client:032} data.server_id 1");
        let line: Vec<String> = part.iter().map(set).collect();
        said(&one.socket, &line.join(";")).map_err(failed)?;
    }
    let have = used(&one.socket).map_err(failed)?;
    if have != clients {
        return Err(Failure::new(format!("haproxy has {have} of {clients} clients")));
    }
    let begun = Instant::now();
    let two = pair.start(1, true)?;
    let before = process::memory(two.child.id())?;
    let cpu = process::cpu_ns(one.child.id())?;
    while used(&two.socket).map_err(failed)? < clients {
        if begun.elapsed() > PATIENCE {
            return Err(two.child.failed("does not learn all clients"));
        }
        thread::sleep(Duration::from_millis(5));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let count = f64::from(clients);
    let bytes = process::memory(two.child.id())?.saturating_sub(before) as f64 / count;
    let cpu_us = process::cpu_ns(two.child.id())? as f64 / 1e3 / count;
    let server_us = (process::cpu_ns(one.child.id())? - cpu) as f64 / 1e3 / count;
    two.child.stop()?;
    one.child.stop()?;
    Ok(json!({ "seconds": seconds, "bytes": bytes, "cpu_us": cpu_us, "server_us": server_us }))
}

/// Measures the time until the peer has a client, and the CPU time of a binding: the difference of windows with and
/// without a peer.
pub(super) fn binds(ground: &Ground, rate: u32) -> Result<Value, Failure> {
    let server = origin(ground)?;
    let port = server.address.rsplit(':').next().and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| Failure::new("the server has no port"))?;
    let pair = pair(ground, port, rate * (3 * ground.seconds() + 10))?;
    let count = f64::from(rate * ground.seconds());
    let alone = pair.start(0, false)?;
    let mut clients = Clients::new(format!("127.0.0.1:{}", alone.port), rate, ground.window);
    let (cpu_alone, ()) = process::cpu_us(&[alone.child.id()], || clients.run(|_| {}))?;
    alone.child.stop()?;
    let [one, two] = [pair.start(0, true)?, pair.start(1, true)?];
    // The peers connect.
    clients.address = format!("127.0.0.1:{}", one.port);
    clients.run(|_| {})?;
    if !wait_until(|| used(&two.socket).is_ok_and(|used| f64::from(used) >= count)) {
        return Err(two.child.failed("has no peer"));
    }
    let before = process::cpu_ns(two.child.id())?;
    let (cpu_one, ()) = process::cpu_us(&[one.child.id()], || clients.run(|_| {}))?;
    let reader_us = (process::cpu_ns(two.child.id())? - before) as f64 / 1e3 / count;
    let mut took = latencies(&mut clients, &two.socket)?;
    took.sort_unstable();
    let at = |part: usize| took[(took.len() - 1) * part / 100].as_secs_f64() * 1e3;
    let measured = json!({
        "p50_ms": at(50), "p99_ms": at(99), "writer_us": (cpu_one - cpu_alone) / count, "reader_us": reader_us,
    });
    for child in [one.child, two.child, server.child] {
        child.stop()?;
    }
    Ok(measured)
}

/// Looks for one client after the other at the peer: for the next one that is bound, until it is there.
fn latencies(clients: &mut Clients, socket: &Path) -> Result<Vec<Duration>, Failure> {
    let (last, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let bound_at = Mutex::new((0, Instant::now()));
    thread::scope(|scope| {
        let looking = scope.spawn(|| -> io::Result<Vec<Duration>> {
            let mut stream = UnixStream::connect(socket)?;
            ask(&mut stream, "prompt")?;
            let (mut took, mut seen) = (Vec::new(), 0);
            while !is_over.load(Ordering::Relaxed) {
                let newest = last.load(Ordering::Acquire);
                if newest == seen {
                    thread::sleep(LOOK_EVERY / 4);
                    continue;
                }
                seen = newest;
                let (client, begun) = *bound_at.lock().expect("no client panics");
                let key = format!("show table servers key {client:032}");
                while !ask(&mut stream, &key)?.contains("server_id") {
                    if begun.elapsed() > PATIENCE {
                        return Err(io::Error::other("the peer does not learn a client"));
                    }
                    thread::sleep(LOOK_EVERY);
                }
                took.push(begun.elapsed());
            }
            Ok(took)
        });
        let ran = clients.run(|client| {
            *bound_at.lock().expect("no client panics") = (client, Instant::now());
            last.fetch_add(1, Ordering::Release);
        });
        is_over.store(true, Ordering::Relaxed);
        let took = looking.join().expect("it does not panic").map_err(failed)?;
        ran?;
        if took.is_empty() {
            return Err(Failure::new("no latency was measured"));
        }
        Ok(took)
    })
}

/// Asks on a connection that stays open: an answer ends with the prompt.
fn ask(stream: &mut UnixStream, line: &str) -> io::Result<String> {
    stream.write_all(format!("{line}\n").as_bytes())?;
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    while !answer.ends_with(b"\n> ") {
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => answer.extend_from_slice(&part[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
