//! `bench cluster`: bindings of clients that two daemons share over NATS, and stick tables that two HAProxy share as
//! peers: the catch-up of a fresh process, the time until the other one knows a binding, and the cost of sharing.

mod clients;
mod haproxy;
mod nats;
mod requests;

use std::path::{Path, PathBuf};

use super::driver::{Options, Part, Spec, Whole};
use super::goals::{Goal, at_most};
use super::ground::Ground;
use super::numbers;
use super::page::{Template, row};
use super::process;
use super::statistics::thousands;
use super::trial::Trial;
use crate::requirements;
use crate::shell::{Failure, Workspace, command};
use clap::Args;
use nats::Nats;
use serde_json::Value;

#[derive(Args, Debug)]
pub(super) struct ClusterArguments {
    #[command(flatten)]
    options: Options,
    /// Clients that a fresh process learns
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..))]
    clients: u32,
    /// Bindings per second
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=5000))]
    rate: u32,
    /// Use the builds in this folder instead of release builds; the page is not written
    #[arg(long)]
    builds: Option<PathBuf>,
}

static SPEC: Spec = Spec {
    name: "cluster",
    parts: &["catch-up", "binds", "requests"],
    text: TEXT,
    tools: requirements::BENCH_CLUSTER,
    rounds: 5,
    milliseconds: 10_000,
};
const TEXT: Template = Template(include_str!("../../pages/cluster.md"));

const ROADSTEAD: &str = "Roadstead";
const HAPROXY: &str = "HAProxy";

pub(super) fn run(workspace: &Workspace, arguments: &ClusterArguments) -> Result<(), Failure> {
    let ClusterArguments { options, clients, rate, builds } = arguments;
    let mut options = options.clone();
    options.dry |= builds.is_some();
    let more = format!(" --clients {clients} --rate {rate}");
    let mut bench = SPEC.open(workspace, &options, &more)?;
    if !options.page {
        requirements::provide_go(&workspace.root)?;
    }
    match builds {
        Some(builds) => bench.ground.release = workspace.root.join(builds),
        None => build(workspace, &options)?,
    }
    let ground = &bench.ground;
    let measure = |part: &str| match part {
        "catch-up" => catch_up(ground, *clients),
        "binds" => binds(ground, *rate),
        _ => requests::measure(ground, TEXT),
    };
    bench.run(measure, |parts| Whole {
        goals: goals(parts, *clients),
        values: vec![("versions", versions(ground))],
    })
}

fn goals(parts: &[Part], clients: u32) -> Vec<Goal> {
    let trials: Vec<Trial> = parts.iter().map(|part| Trial::read(&part.values)).collect();
    let [catch_up, binds, requests] = &trials[..] else { return Vec::new() };
    let seconds = clients.div_ceil(100_000) * 3;
    let clients = thousands(f64::from(clients));
    let calls = requests.ratio("calls", requests::NAMES[1], requests::NAMES[0]).median;
    vec![
        at_most(
            format!("a fresh process learns {clients} clients in at most {seconds} s"),
            catch_up.median(ROADSTEAD, "seconds"),
            seconds.into(),
        ),
        at_most("at most 200 bytes per client", catch_up.median(ROADSTEAD, "bytes"), 200.0),
        at_most("p99 of a binding at most 50 ms", binds.median(ROADSTEAD, "p99_ms"), 50.0),
        at_most(
            "CPU of a binding at the first process at most 20 µs",
            binds.median(ROADSTEAD, "writer_us"),
            20.0,
        ),
        at_most("system calls of a request at most 1.01 × without `[cluster]`", calls, 1.01),
    ]
}

fn build(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    if options.page {
        return Ok(());
    }
    workspace.example("roadstead-cluster", "measure_bindings")?;
    workspace.release(&["-p", "xtask", "--examples"])?;
    workspace.release(&["-p", "roadstead"])
}

/// The versions of the other programs, as they print them.
fn versions(ground: &Ground) -> String {
    let said = |program: &Path| {
        let text = crate::shell::output(command(program, ["-v"])).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().take(3).collect();
        words.join(" ").replace(" version", "").replace("nats-server: ", "nats-server ")
    };
    format!("{}, {}", said(&nats::program(&ground.root)), said(Path::new("haproxy")))
}

/// Runs `crates/cluster/examples/measure_bindings.rs`.
fn measured(ground: &Ground, words: &[String], nats: &Nats) -> Result<Value, Failure> {
    let words: Vec<String> = words.iter().cloned().chain(nats.urls()).collect();
    numbers::object(command(ground.example("measure_bindings"), words))
}

/// Measures the start of a process while another one has all clients.
fn catch_up(ground: &Ground, clients: u32) -> Result<Part, Failure> {
    let count = clients.to_string();
    let nats = Nats::start(ground)?;
    let filled = measured(ground, &["fill".to_owned(), count.clone()], &nats)?;
    let servers = nats.processes();
    let stored = process::sum(&servers, process::memory)? as f64 / servers.len() as f64;
    let trial = ground.rounds("catch-up", &[ROADSTEAD, HAPROXY], |_, at| {
        if at == 1 {
            return haproxy::catch_up(ground, clients);
        }
        let words = ["catch-up".to_owned(), count.clone()];
        let (server_us, mut sample) =
            process::cpu_us(&servers, || measured(ground, &words, &nats))?;
        sample["server_us"] = (server_us / f64::from(clients)).into();
        Ok(sample)
    })?;
    nats.stop()?;
    let line = |name: &str| {
        let cell = |what: &str| trial.of(name, what).shown();
        row(&[&name, &cell("seconds"), &cell("cpu_us"), &cell("bytes"), &cell("server_us")])
    };
    let rows = [ROADSTEAD, HAPROXY].map(line).concat();
    let fill_s = numbers::number(&filled, "seconds")?;
    let fill_us = numbers::number(&filled, "cpu_us")?;
    let values: [(&str, &dyn std::fmt::Display); 5] = [
        ("clients", &thousands(f64::from(clients))),
        ("rows", &rows),
        ("stored", &thousands(stored / f64::from(clients))),
        ("fill_s", &format_args!("{fill_s:.1}")),
        ("fill_us", &format_args!("{fill_us:.1}")),
    ];
    Ok(Part { values: trial.to_json(), ..Part::text(TEXT.fill("catch-up", &values)) })
}

/// Measures the time from a binding until another process knows it, and the CPU time of a binding.
fn binds(ground: &Ground, rate: u32) -> Result<Part, Failure> {
    let seconds = ground.seconds();
    let nats = Nats::start(ground)?;
    let trial = ground.rounds("binds", &[ROADSTEAD, HAPROXY], |_, at| {
        if at == 1 {
            return haproxy::binds(ground, rate);
        }
        let words = ["binds".to_owned(), rate.to_string(), seconds.to_string()];
        let work = || measured(ground, &words, &nats);
        let (server_us, mut sample) = process::cpu_us(&nats.processes(), work)?;
        sample["server_us"] = (server_us / f64::from(rate * seconds)).into();
        Ok(sample)
    })?;
    nats.stop()?;
    let line = |name: &str| {
        let cell = |what: &str| trial.of(name, what).shown();
        let costs = ["writer_us", "reader_us", "server_us"].map(cell);
        row(&[&name, &cell("p50_ms"), &cell("p99_ms"), &costs[0], &costs[1], &costs[2]])
    };
    let rows = [ROADSTEAD, HAPROXY].map(line).concat();
    let values: [(&str, &dyn std::fmt::Display); 3] =
        [("rate", &thousands(f64::from(rate))), ("seconds", &seconds), ("rows", &rows)];
    Ok(Part { values: trial.to_json(), ..Part::text(TEXT.fill("binds", &values)) })
}
