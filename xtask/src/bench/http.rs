//! HTTP/1 through proxies: CPU time, system calls, instructions, allocations, latency and memory,
//! against HAProxy and nginx as an expert would configure them, and against a bare relay.
//!
//! Each part stores its results, and the page is made from all stored parts, so that parts can be
//! measured one by one.

mod figures;
mod goals;
mod ground;
mod instructions;
mod lines;
mod page;
mod running;
mod subject;
mod windows;

use super::{order, page as pages, process};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use ground::{Ground, Shape};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use subject::Subject;

pub(super) use lines::{CONNECTIONS, Cost, cost};

#[derive(Args, Debug)]
pub(super) struct HttpArguments {
    /// Rounds of each shape
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Milliseconds that are measured in each round
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(50..))]
    milliseconds: u64,
    /// Seed of the order of the subjects within the rounds; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Only this part; the page is made from what is stored of the others
    #[arg(long, value_parser = PARTS)]
    only: Option<String>,
    /// Only these of the subjects, by name
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<String>,
    /// A further subject, NAME=COMMAND, in which @PORT@ is its port and @SERVER@ its server's; repeatable
    #[arg(long)]
    subject: Vec<String>,
    /// Measure nothing: write the page from what is stored
    #[arg(long)]
    page: bool,
    /// Neither store nor write anything
    #[arg(long)]
    dry: bool,
}

/// What can be measured by itself.
const PARTS: [&str; 10] =
    ["128", "few", "9000", "16k", "1m", "paced", "memory", "calls", "instructions", "shards"];

const SMALL: &[Shape] = &[(1, 1, 128), (64, 64, 128), (1000, 1000, 128)];
/// Few of many are active.
const FEW: &[Shape] = &[(1000, 16, 128), (9000, 64, 128)];
const MANY: &[Shape] = &[(9000, 9000, 128)];
const MIDDLE: &[Shape] = &[(1, 1, 16 << 10), (64, 64, 16 << 10), (1000, 1000, 16 << 10)];
/// Of one shard beside two.
const SHARDS: &[Shape] = &[(64, 64, 128), (1000, 1000, 128)];
const LARGE: &[Shape] = &[(1, 1, 1 << 20), (64, 64, 1 << 20)];

pub(super) fn run(workspace: &Workspace, arguments: &HttpArguments) -> Result<(), Failure> {
    requirements::provide(requirements::BENCH_HTTP)?;
    if arguments.page {
        return write_page(workspace);
    }
    process::raise_descriptors();
    let ground = prepare(workspace, arguments)?;
    for part in PARTS {
        if arguments.only.as_deref().is_none_or(|only| only == part) {
            let measured = measure(&ground, part)?;
            if arguments.dry {
                println!("{}", page::part(part, &measured));
            } else {
                store(&ground.folder, part, &measured)?;
            }
        }
    }
    if arguments.dry { Ok(()) } else { write_page(workspace) }
}

/// Where parts are stored.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("bench/http")
}

fn write_page(workspace: &Workspace) -> Result<(), Failure> {
    let folder = folder(workspace);
    let stored: Vec<(&str, Value)> =
        PARTS.into_iter().filter_map(|part| Some((part, stored(&folder, part)?))).collect();
    let text = page::page(&pages::machine(), &versions(), &stored);
    let file = "docs/bench-http.md";
    fs::write(workspace.root.join(file), text)
        .map_err(|error| Failure::new(format!("{file}: {error}")))?;
    println!("wrote {file}");
    let missed = goals::all(&stored).into_iter().filter(|goal| !goal.met);
    let missed = missed.map(|goal| format!("missed: {}: {}", goal.text, goal.measured));
    let missed: Vec<String> = missed.chain(page::reconnecting(&stored)).collect();
    if missed.is_empty() { Ok(()) } else { Err(Failure::new(missed.join("\n"))) }
}

/// What the peers say of themselves.
fn versions() -> page::Versions {
    let said = |program: &str| {
        let output = Command::new(program).arg("-v").output();
        // nginx writes its version to standard error.
        let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
    };
    let haproxy: String = said("haproxy").split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let nginx = said("nginx").replace("nginx version: ", "").replace('/', " ");
    page::Versions { haproxy: haproxy.replace(" version", ""), nginx }
}

fn prepare(workspace: &Workspace, arguments: &HttpArguments) -> Result<Ground, Failure> {
    eprintln!("building as released");
    shell::run(workspace.cargo(["build", "--release", "-p", "xtask", "--examples"]))?;
    shell::run(workspace.cargo(["build", "--release", "-p", "roadstead"]))?;
    let plain = ["build", "--release", "-p", "roadstead", "--example", "serve_file"];
    shell::run(workspace.cargo(plain))?;
    let folder = folder(workspace);
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    let mut subjects = subject::all(workspace, &folder)?;
    for one in &arguments.subject {
        subjects.push(Subject::given(one)?);
    }
    let shards = subject::on_shards(workspace, &folder)?;
    let wanted = &arguments.subjects;
    let is_wanted = |subject: &Subject| wanted.is_empty() || wanted.contains(&subject.name);
    subjects.retain(is_wanted);
    let copying = Some(subject::copying(workspace, &folder)?).filter(is_wanted);
    Ok(Ground {
        root: workspace.root.clone(),
        programs: workspace.built("release", "examples"),
        folder,
        subjects,
        copying,
        shards,
        rounds: arguments.rounds,
        window: Duration::from_millis(arguments.milliseconds),
        seed: arguments.seed.unwrap_or_else(order::seed),
    })
}

fn measure(ground: &Ground, part: &str) -> Result<Value, Failure> {
    match part {
        "128" => windows::shapes(ground, &ground.subjects, SMALL),
        "few" => windows::shapes(ground, &ground.subjects, FEW),
        "9000" => windows::shapes(ground, &ground.subjects, MANY),
        "16k" => windows::shapes(ground, &ground.subjects, MIDDLE),
        "1m" => {
            let subjects: Vec<Subject> =
                ground.subjects.iter().chain(&ground.copying).cloned().collect();
            windows::shapes(ground, &subjects, LARGE)
        }
        "shards" => windows::shapes(ground, &ground.shards, SHARDS),
        "paced" => windows::paced(ground),
        "memory" => windows::memory(ground),
        "calls" => windows::calls(ground),
        _ => instructions::measure(ground),
    }
}

fn file(folder: &Path, part: &str) -> PathBuf {
    folder.join(format!("{part}.json"))
}

fn store(folder: &Path, part: &str, measured: &Value) -> Result<(), Failure> {
    let path = file(folder, part);
    fs::write(&path, measured.to_string())
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

fn stored(folder: &Path, part: &str) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(file(folder, part)).ok()?).ok()
}
