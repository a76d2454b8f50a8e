//! Threads behind connections: a hundred clients connect, receive N bytes and see the end, against servers with a
//! thread per connection, with a thread pool, and without threads. The twelve sizes and the numbers of threads are
//! those of the mix-in of 2008 that this row comes from.

mod clients;
mod page;

use super::driver::{Options, Part, Spec, Whole};
use super::ground::Ground;
use super::server::Server;
use super::{numbers, process, system_calls};
use crate::requirements;
use crate::shell::{Failure, Workspace, command};
use clients::Clients;
use serde_json::{Map, Value, json};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

static SPEC: Spec = Spec {
    name: "threads",
    parts: &["small", "large", "submit", "idle", "ticks"],
    text: page::TEXT,
    tools: requirements::BENCH_THREADS,
    rounds: 15,
    milliseconds: 1000,
};

const SCRIPT: &str = "xtask/peers/threads.py";
/// The number of concurrent clients.
const CLIENTS: usize = 100;
/// How long an idle pool is observed.
const IDLE: Duration = Duration::from_secs(2);

/// A server, with its name on the page.
struct Peer {
    name: &'static str,
    command: Vec<String>,
}

pub(super) fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let bench = SPEC.open(workspace, options, "")?;
    let ground = &bench.ground;
    let peers = if options.page { Vec::new() } else { prepare(workspace, ground)? };
    let measure = |part: &str| measure(ground, &peers, part).map(Part::values);
    bench.run(measure, |parts| {
        let values = parts.iter().map(|part| part.values.clone());
        let stored: Map<String, Value> =
            SPEC.parts.iter().map(|&part| part.to_owned()).zip(values).collect();
        let measured = page::Measured::read(stored.into());
        Whole { goals: page::goals(&measured), values: page::values(&measured) }
    })
}

fn prepare(workspace: &Workspace, ground: &Ground) -> Result<Vec<Peer>, Failure> {
    let handler = workspace.example("roadstead", "handler")?;
    let pool = workspace.example("roadstead-elastic", "serve_pool")?;
    workspace.example("roadstead-elastic", "submit")?;
    let event_loop = workspace.example("roadstead-event", "serve_loop")?;
    let threads = workspace.example("xtask", "serve_threads")?;
    clients::pin()?;
    let python = ground.root.join(SCRIPT);
    let [handler, pool, event_loop, threads, python] =
        [handler, pool, event_loop, threads, python].map(|path| path.display().to_string());
    let commands: [&[&str]; page::NAMES.len()] = [
        &[&threads, "bare"],
        &[&event_loop],
        &[&handler, "--server", "--size"],
        &[&pool],
        &[&threads, "connection"],
        &[&threads, "threadpool"],
        &[&threads, "rayon"],
        &["python3", &python, "mixin"],
        &["python3", &python, "pool"],
    ];
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let peers = page::NAMES.into_iter().zip(commands);
    Ok(peers.map(|(name, words)| Peer { name, command: owned(words) }).collect())
}

fn measure(ground: &Ground, peers: &[Peer], part: &str) -> Result<Value, Failure> {
    match part {
        "small" => sizes(ground, peers, page::SMALL),
        "large" => sizes(ground, peers, page::LARGE),
        "submit" => numbers::object(Command::new(ground.example("submit"))),
        "idle" => idle(ground, peers),
        _ => delayed(ground),
    }
}

/// Starts a server on the first processor. The clients use the others.
fn start(ground: &Ground, words: &[String], last: &str) -> Result<Server, Failure> {
    let mut command = command("taskset", ["-c", "0"]);
    command.args(words).arg(last);
    ground.start(command, "threads")
}

/// Returns replies per second, and CPU time in µs per reply.
fn window(ground: &Ground, server: &Server, size: usize) -> Result<Value, Failure> {
    let mut clients = Clients::new(&server.address, CLIENTS, size)?;
    clients.serve_for(ground.window / 4).map_err(Failure::at("clients"))?;
    let own = server.own(&[]);
    // Threads that have ended are counted only in `stat`.
    let ticks = || process::sum(&own, |one| Ok(process::user_and_system(one)?.iter().sum()));
    let (before, begun) = (ticks()?, Instant::now());
    let replies = clients.serve_for(ground.window).map_err(Failure::at("clients"))?;
    let seconds = begun.elapsed().as_secs_f64();
    let cpu_us = (ticks()? - before) as f64 * 10_000.0;
    if replies == 0 {
        return Err(Failure::new("there was no reply in a whole window"));
    }
    Ok(json!({ "rate": replies as f64 / seconds, "cpu": cpu_us / replies as f64 }))
}

/// Measures all servers at each size: in every round each of them once, in random order.
fn sizes(ground: &Ground, peers: &[Peer], sizes: &[usize]) -> Result<Value, Failure> {
    let mut all = Map::new();
    for size in sizes {
        let started = peers.iter().map(|peer| start(ground, &peer.command, &size.to_string()));
        let servers: Vec<Server> = started.collect::<Result<_, _>>()?;
        let trial = ground.rounds(&format!("{size} bytes"), &page::NAMES, |_, at| {
            window(ground, &servers[at], *size)
        })?;
        all.insert(size.to_string(), trial.to_json());
        servers.into_iter().try_for_each(Server::stop)?;
    }
    Ok(Value::Object(all))
}

/// Measures the context switches and system calls of idle servers.
fn idle(ground: &Ground, peers: &[Peer]) -> Result<Value, Failure> {
    let mut all = Map::new();
    for peer in peers.iter().filter(|it| [page::HANDLER, page::POOL].contains(&it.name)) {
        let server = start(ground, &peer.command, "1024")?;
        // The server has served once, and is idle again.
        window(ground, &server, 1024)?;
        let process = server.process();
        thread::sleep(IDLE / 4);
        let before = process::switches(process)?;
        thread::sleep(IDLE);
        let switches = process::switches(process)? - before;
        let rest = || {
            thread::sleep(IDLE);
            Ok(())
        };
        let (mut calls, ()) = system_calls::counted(&[process], &ground.folder, rest)?;
        // A call in which a thread was already sleeping is counted again when strace detaches from it.
        let slept = ["futex", "epoll_pwait", "accept4", "restart_syscall"];
        calls.retain(|(name, _)| !slept.contains(&name.as_str()));
        let calls = system_calls::all(&calls);
        all.insert(peer.name.to_owned(), json!({ "switches": switches, "calls": calls }));
        server.stop()?;
    }
    Ok(Value::Object(all))
}

/// Measures the mix-in with a sleep to the next tick after each start of a thread.
fn delayed(ground: &Ground) -> Result<Value, Failure> {
    let script = ground.root.join(SCRIPT).display().to_string();
    let words = ["python3", &script, "mixin", "0"].map(str::to_owned);
    let trial = ground.rounds("ticks", &page::TICKS, |_, at| {
        let server = start(ground, &words, page::TICKS[at])?;
        let sample = window(ground, &server, 0)?;
        server.stop()?;
        Ok(sample)
    })?;
    Ok(trial.to_json())
}
