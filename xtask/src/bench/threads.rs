//! Threads behind connections: a hundred clients connect, receive N bytes and see the end, against
//! servers that give each a thread, that have a pool of them, and that have none. The twelve sizes,
//! and the numbers of threads, are those of the mix-in of 2008 that this row comes from.
//!
//! Each part stores what it measured, and the page is made from all that is stored; so the parts
//! can be measured one by one.

mod clients;
mod page;

use super::order::{self, Order};
use super::server::Server;
use super::statistics::Quartiles;
use super::system_calls::Counting;
use super::{page as pages, process};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use clients::Clients;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Args, Debug)]
pub(super) struct ThreadsArguments {
    /// Rounds of each size
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Milliseconds that are measured in each round
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(50..))]
    milliseconds: u64,
    /// Seed of the order of the servers within the rounds; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Only this part; the page is made from what is stored of the others
    #[arg(long, value_parser = PARTS)]
    only: Option<String>,
    /// Neither store nor write anything
    #[arg(long)]
    dry: bool,
}

/// What can be measured by itself.
const PARTS: [&str; 5] = ["small", "large", "submit", "idle", "ticks"];

/// Clients at once.
const CLIENTS: usize = 100;
/// How long a pool at rest is watched.
const IDLE: Duration = Duration::from_secs(2);

/// A server, by what the page calls it.
struct Peer {
    name: &'static str,
    command: Vec<String>,
}

struct Ground {
    peers: Vec<Peer>,
    /// `elastic`'s example that measures itself.
    submit: PathBuf,
    script: String,
    folder: PathBuf,
    rounds: u32,
    window: Duration,
    seed: u64,
}

pub(super) fn run(workspace: &Workspace, arguments: &ThreadsArguments) -> Result<(), Failure> {
    requirements::provide(requirements::BENCH_THREADS)?;
    process::raise_descriptors();
    let ground = prepare(workspace, arguments)?;
    clients::pin()?;
    for part in PARTS {
        if arguments.only.as_deref().is_none_or(|only| only == part) {
            let measured = measure(&ground, part)?;
            if arguments.dry {
                println!("{measured:#}");
            } else {
                let path = stored(&ground.folder, part);
                fs::write(&path, measured.to_string()).map_err(|error| failed(&path, &error))?;
            }
        }
    }
    if arguments.dry {
        return Ok(());
    }
    write_page(workspace, &ground, arguments)
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

fn stored(folder: &Path, part: &str) -> PathBuf {
    folder.join(format!("threads-{part}.json"))
}

fn prepare(workspace: &Workspace, arguments: &ThreadsArguments) -> Result<Ground, Failure> {
    eprintln!("building as released");
    for (package, example) in [
        ("roadstead", "handler"),
        ("roadstead-elastic", "serve_pool"),
        ("roadstead-elastic", "submit"),
        ("roadstead-event", "serve_loop"),
        ("xtask", "serve_threads"),
    ] {
        let build = ["build", "--release", "-p", package, "--example", example];
        shell::run(workspace.cargo(build))?;
    }
    let built = |name: &str| workspace.built("release", &format!("examples/{name}"));
    let program = |name: &str| built(name).display().to_string();
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    let script = workspace.root.join("xtask/peers/threads.py").display().to_string();
    let peer = |name, words: &[&str]| Peer {
        name,
        command: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let (threads, python) = (program("serve_threads"), script.as_str());
    Ok(Ground {
        peers: vec![
            peer(page::BARE, &[&threads, "bare"]),
            peer(page::LOOP, &[&program("serve_loop")]),
            peer(page::HANDLER, &[&program("handler"), "--server", "--size"]),
            peer(page::POOL, &[&program("serve_pool")]),
            peer(page::CONNECTION, &[&threads, "connection"]),
            peer("threadpool", &[&threads, "threadpool"]),
            peer("rayon", &[&threads, "rayon"]),
            peer(page::MIXIN, &["python3", python, "mixin"]),
            peer(page::PYTHON_POOL, &["python3", python, "pool"]),
        ],
        submit: built("submit"),
        script,
        folder,
        rounds: arguments.rounds,
        window: Duration::from_millis(arguments.milliseconds),
        seed: arguments.seed.unwrap_or_else(order::seed),
    })
}

fn measure(ground: &Ground, part: &str) -> Result<Value, Failure> {
    match part {
        "small" => sizes(ground, page::SMALL),
        "large" => sizes(ground, page::LARGE),
        "submit" => submit(ground),
        "idle" => idle(ground),
        _ => delayed(ground),
    }
}

impl Ground {
    /// Starts a server on the first processor; the clients have the others.
    fn start(&self, words: &[String], more: &[String]) -> Result<Server, Failure> {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).args(words).args(more);
        Server::start(command, &self.folder.join("threads.log"))
    }

    /// Replies a second, and microseconds of CPU time for each.
    fn window(&self, server: &Server, size: usize) -> Result<(f64, f64), Failure> {
        let failed = |error| Failure::new(format!("clients: {error}"));
        let mut clients = Clients::new(&server.address, CLIENTS, size)?;
        clients.serve_for(self.window / 4).map_err(failed)?;
        let own = server.own(&[]);
        let ticks = ticks(&own).map_err(failed)?;
        let begun = Instant::now();
        let replies = clients.serve_for(self.window).map_err(failed)?;
        let seconds = begun.elapsed().as_secs_f64();
        // Threads that have ended count in `stat`, and nowhere else.
        let cpu_us = (self::ticks(&own).map_err(failed)? - ticks) as f64 * 10_000.0;
        if replies == 0 {
            return Err(Failure::new("there was no reply in a whole window"));
        }
        Ok((replies as f64 / seconds, cpu_us / replies as f64))
    }
}

/// CPU time of these processes so far, in ticks of 10 ms.
fn ticks(processes: &[u32]) -> std::io::Result<u64> {
    let each = processes.iter().map(|one| process::user_and_system(*one));
    each.map(|both| both.map(|(user, system)| user + system)).sum()
}

/// All servers at each size: in every round each of them once, in random order.
fn sizes(ground: &Ground, sizes: &[usize]) -> Result<Value, Failure> {
    let mut order = Order::new(ground.seed);
    let mut all = Map::new();
    for size in sizes {
        let more = [size.to_string()];
        let servers: Vec<Server> = ground
            .peers
            .iter()
            .map(|peer| ground.start(&peer.command, &more))
            .collect::<Result<_, _>>()?;
        let mut samples: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); servers.len()];
        for round in 0..ground.rounds as usize {
            eprintln!("{size} bytes: round {} of {}", round + 1, ground.rounds);
            for place in order.round(servers.len()) {
                let (rate, cpu) = ground.window(&servers[place], *size)?;
                samples[place].0.push(rate);
                samples[place].1.push(cpu);
            }
        }
        let of = |(peer, (rate, cpu)): (&Peer, &(Vec<f64>, Vec<f64>))| {
            (peer.name.to_owned(), json!({ "rate": rate, "cpu": cpu }))
        };
        let cells: Map<String, Value> = ground.peers.iter().zip(&samples).map(of).collect();
        all.insert(size.to_string(), Value::Object(cells));
        for server in servers {
            server.stop()?;
        }
    }
    Ok(Value::Object(all))
}

/// Submit to run, beside a bare channel.
fn submit(ground: &Ground) -> Result<Value, Failure> {
    let said = shell::output(Command::new(&ground.submit))?;
    serde_json::from_str(&said).map_err(|error| Failure::new(format!("submit: {error}\n{said}")))
}

/// What servers do while nobody asks: switches of their threads, and system calls.
fn idle(ground: &Ground) -> Result<Value, Failure> {
    let mut all = Map::new();
    for peer in ground.peers.iter().filter(|it| [page::HANDLER, page::POOL].contains(&it.name)) {
        let server = ground.start(&peer.command, &["1024".to_owned()])?;
        // It has served, and rests again.
        ground.window(&server, 1024)?;
        let process = server.process();
        let failed = |error| Failure::new(format!("{}: {error}", peer.name));
        thread::sleep(IDLE / 4);
        let before = process::switches(process).map_err(failed)?;
        thread::sleep(IDLE);
        let switches = process::switches(process).map_err(failed)? - before;
        let file = ground.folder.join("threads.calls");
        let counting = Counting::start(&[process], &file)?;
        if !super::server::wait_until(|| process::is_traced(process)) {
            return Err(Failure::new("strace does not attach"));
        }
        thread::sleep(IDLE);
        let calls = counting.finish_any(&file)?;
        // A call in which a thread slept already is seen again when strace lets go of it.
        let calls: u64 = calls
            .iter()
            .filter(|(name, _)| {
                !["futex", "epoll_pwait", "accept4", "restart_syscall"].contains(&name.as_str())
            })
            .map(|(_, count)| count)
            .sum();
        all.insert(peer.name.to_owned(), json!({ "switches": switches, "calls": calls }));
        server.stop()?;
    }
    Ok(Value::Object(all))
}

/// The mix-in with a sleep to the next tick behind each start of a thread.
fn delayed(ground: &Ground) -> Result<Value, Failure> {
    let words = ["python3", &ground.script, "mixin", "0"].map(str::to_owned);
    let mut all = Map::new();
    for tick in ["0", "2", "4"] {
        let server = ground.start(&words, &[tick.to_owned()])?;
        let rates: Vec<f64> = (0..ground.rounds)
            .map(|_| ground.window(&server, 0).map(|(rate, _)| rate))
            .collect::<Result<_, _>>()?;
        let Quartiles { low, median, high } = Quartiles::of(&rates);
        all.insert(tick.to_owned(), json!([low, median, high]));
        server.stop()?;
    }
    Ok(Value::Object(all))
}

fn write_page(
    workspace: &Workspace,
    ground: &Ground,
    arguments: &ThreadsArguments,
) -> Result<(), Failure> {
    let mut measured = Map::new();
    for part in PARTS {
        let path = stored(&ground.folder, part);
        let Ok(text) = fs::read_to_string(&path) else {
            println!("part `{part}` is not measured yet: no page is written");
            return Ok(());
        };
        let value = serde_json::from_str(&text).map_err(|error| failed(&path, &error))?;
        measured.insert(part.to_owned(), value);
    }
    let ThreadsArguments { rounds, milliseconds, .. } = arguments;
    let command = format!(
        "cargo xtask bench threads --rounds {rounds} --milliseconds {milliseconds} --seed {}",
        ground.seed
    );
    let names: Vec<&str> = ground.peers.iter().map(|peer| peer.name).collect();
    let measured = page::Measured::read(&Value::Object(measured), &names);
    let text = page::page(&command, &pages::machine(), &measured);
    let path = workspace.root.join("docs/bench-threads.md");
    fs::write(&path, text).map_err(|error| failed(&path, &error))?;
    println!("wrote docs/bench-threads.md");
    let missed: Vec<String> = page::goals(&measured)
        .into_iter()
        .filter_map(|(goal, met)| (!met).then(|| format!("missed: {goal}")))
        .collect();
    if missed.is_empty() { Ok(()) } else { Err(Failure::new(missed.join("\n"))) }
}
