//! The loop against what people use: an echo on 1 to 9500 connections, what single calls cost, and
//! the questions that were left open about triggers.
//!
//! Each part is measured by itself and kept in the build folder; the page is made of the parts that
//! were kept, so that one can be measured anew without the others. Where others are not kept, a part that
//! is a section of its own takes its place on the page that stands.

mod accepting;
mod bench;
mod costs;
mod counting;
mod echo;
mod page;
mod part;
mod release;

use super::page::machine;
use super::{order, process, section};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use bench::Bench;
use clap::Args;
use part::Part;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Where the results stand.
const PAGE: &str = "docs/bench-loop.md";

#[derive(Args, Debug)]
pub(super) struct LoopArguments {
    /// Rounds of each part
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Milliseconds that are measured in each round
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(20..))]
    milliseconds: u64,
    /// Seed of the order of the servers within the rounds; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Only this part, or those whose name begins so; the page keeps the others as they were
    #[arg(long)]
    only: Option<String>,
    /// Show the parts without keeping them or writing the page
    #[arg(long)]
    dry: bool,
}

pub(super) fn run(workspace: &Workspace, arguments: &LoopArguments) -> Result<(), Failure> {
    process::raise_descriptors();
    requirements::provide(requirements::BENCH_LOOP)?;
    requirements::provide(requirements::COUNTING)?;
    let LoopArguments { rounds, milliseconds, seed, only, dry } = arguments;
    let bench = Bench {
        examples: workspace.built("release", "examples"),
        folder: workspace.target.join("bench"),
        rounds: *rounds,
        window: Duration::from_millis(*milliseconds),
        seed: seed.unwrap_or_else(order::seed),
    };
    let script = workspace.root.join("xtask/peers/echo_multiplex.pl");
    let peers = echo::peers(&bench, &script);
    let command = format!(
        "cargo xtask bench loop --rounds {rounds} --milliseconds {milliseconds} --seed {}",
        bench.seed
    );
    let kept = bench.folder.join("loop");
    let wanted = |name: &str| only.as_deref().is_none_or(|only| name.starts_with(only));
    build(workspace, &bench, names().iter().any(|name| wanted(name) && needs_peers(name)))?;
    let mut parts = Vec::new();
    for name in names() {
        let mut part = Part::kept(&kept, &name);
        if wanted(&name) {
            let mut new = measure(&bench, &peers, &name)?;
            new.made = format!("`{command}` on {}", machine().date);
            println!("{}", new.text);
            if !dry {
                new.keep(&kept, &name)?;
            }
            part = Some(new);
        }
        parts.push((name, part));
    }
    let missing: Vec<&str> =
        parts.iter().filter(|(_, part)| part.is_none()).map(|(name, _)| name.as_str()).collect();
    if !missing.is_empty() {
        println!("not kept, so the page is not made anew: {}", missing.join(", "));
        let new = parts.iter().filter(|(name, _)| wanted(name) && !dry);
        return new.filter_map(|(_, part)| part.as_ref()).try_for_each(|part| put(workspace, part));
    }
    let parts: Vec<Part> = parts.into_iter().filter_map(|(_, part)| part).collect();
    if !dry {
        fs::write(workspace.root.join(PAGE), page::page(&machine(), &parts))
            .map_err(|error| Failure::new(format!("{PAGE}: {error}")))?;
        println!("wrote {PAGE}");
    }
    let missed: Vec<String> = page::goals(&parts)
        .into_iter()
        .filter_map(|(goal, met)| (!met).then(|| format!("missed: {goal}")))
        .collect();
    if missed.is_empty() { Ok(()) } else { Err(Failure::new(missed.join("\n"))) }
}

/// Puts a part on the page that stands, if it is a section of its own on which no goal depends.
fn put(workspace: &Workspace, part: &Part) -> Result<(), Failure> {
    if !part.text.starts_with("## ") || !part.goals.is_empty() {
        return Ok(());
    }
    section::put_into(workspace, PAGE, &section::made(&part.text, &part.made), page::GOALS)
}

/// All parts, in the order of the page.
fn names() -> Vec<String> {
    let echoes = echo::SHAPES.iter().map(|(all, active)| format!("echo-{all}-{active}"));
    let others = [
        "instructions",
        "timers",
        "epoll_ctl",
        "triggers-100",
        "triggers-1000",
        "release",
        "accepting",
    ];
    echoes.chain(others.map(str::to_owned)).collect()
}

fn measure(bench: &Bench, peers: &[echo::Peer], name: &str) -> Result<Part, Failure> {
    match name {
        "instructions" => counting::measure(bench, &echo::counted(peers)),
        "timers" => costs::timers(bench),
        "epoll_ctl" => costs::epoll_control(bench),
        "accepting" => accepting::measure(bench),
        "release" => release::measure(bench),
        "triggers-100" => Ok(page::triggers(&echo::triggers(bench, 100)?)),
        "triggers-1000" => Ok(page::triggers(&echo::triggers(bench, 1000)?)),
        name => {
            let shape =
                echo::SHAPES.iter().find(|(all, active)| name == format!("echo-{all}-{active}"));
            let shape = shape.ok_or_else(|| Failure::new(format!("there is no part `{name}`")))?;
            Ok(page::echo(&echo::measure(bench, peers, *shape)?))
        }
    }
}

/// Whether a part holds the loop against others than those in its own crate.
fn needs_peers(name: &str) -> bool {
    name.starts_with("echo") || name == "instructions"
}

/// Builds what is measured, as it is released.
fn build(workspace: &Workspace, bench: &Bench, with_peers: bool) -> Result<(), Failure> {
    eprintln!("building as released");
    let packages = ["roadstead-event", "roadstead-control", "xtask"];
    for package in &packages[..if with_peers { packages.len() } else { 1 }] {
        shell::run(workspace.cargo(["build", "--release", "-p", package, "--examples"]))?;
    }
    fs::create_dir_all(&bench.folder)
        .map_err(|error| Failure::new(format!("{}: {error}", bench.folder.display())))?;
    if !with_peers {
        return Ok(());
    }
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(bench.folder.join("echo_libevent"));
    compiler.arg(workspace.root.join("xtask/peers/echo_libevent.c")).arg("-levent_core");
    shell::run(compiler).map(drop)
}
