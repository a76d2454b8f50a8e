//! The event loop against common event libraries: an echo on 1 to 9500 connections, the cost of single calls, and the
//! open questions about triggers.
//!
//! Each part is measured separately and stored in the build folder. The page is generated from the stored parts, so
//! that one can be measured again without the others. If the other parts are not stored, a part with a section of its
//! own replaces this section on the existing page.

mod accepting;
mod costs;
mod counting;
mod echo;
mod page;
mod part;
mod release;

use super::arguments::{Rounds, Windows};
use super::ground::Ground;
use super::parts::Parts;
use super::template::date;
use super::{goals, process, section};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use part::Part;
use std::process::Command;
use std::time::Duration;

/// The page with the results.
const PAGE: &str = "docs/bench-loop.md";

#[derive(Args, Debug)]
pub(super) struct LoopArguments {
    #[command(flatten)]
    windows: Windows,
    /// Measure only this part, or the parts whose names begin with this; the page keeps the others
    #[arg(long)]
    only: Option<String>,
}

pub(super) fn run(workspace: &Workspace, arguments: &LoopArguments) -> Result<(), Failure> {
    process::raise_descriptors();
    requirements::provide(requirements::BENCH_LOOP)?;
    requirements::provide(requirements::COUNTING)?;
    let LoopArguments { windows, only } = arguments;
    let Windows { rounds: Rounds { rounds, dry }, milliseconds, seed } = *windows;
    let window = Duration::from_millis(milliseconds);
    let ground = Ground::new(workspace, "loop", rounds, window, seed)?;
    let peers = echo::peers(&ground);
    let command = format!(
        "cargo xtask bench loop --rounds {rounds} --milliseconds {milliseconds} --seed {}",
        ground.seed
    );
    let names = names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| name.starts_with(only));
    if !names.iter().any(|name| wanted(name)) {
        return Err(Failure::new(format!("the parts are {}", names.join(", "))));
    }
    build(workspace, &ground, names.iter().any(|name| wanted(name) && needs_peers(name)))?;
    let parts = Parts { folder: &ground.folder, names: &names, dry };
    let kept = parts.run(wanted, |name| {
        let mut part = measure(&ground, &peers, name)?;
        part.made = format!("`{command}` on {}", date());
        println!("{}", part.text);
        Ok(part.to_text())
    })?;
    let are_all = parts.are_all(&kept);
    let read = |(name, text): (_, String)| Some((name, Part::read(&text)?));
    let kept: Vec<(&str, Part)> = kept.into_iter().filter_map(read).collect();
    if !are_all {
        let new = kept.iter().filter(|(name, _)| wanted(name) && !dry);
        return new.map(|(_, part)| part).try_for_each(|part| put(workspace, part));
    }
    let parts: Vec<Part> = kept.into_iter().map(|(_, part)| part).collect();
    if !dry {
        workspace.write(PAGE, &page::page(&parts))?;
    }
    goals::verdict(page::goals(&parts))
}

/// Writes a part to the existing page, if it is a section of its own and no goal depends on it.
fn put(workspace: &Workspace, part: &Part) -> Result<(), Failure> {
    if !part.text.starts_with("## ") || !part.goals.is_empty() {
        return Ok(());
    }
    section::put_into(workspace, PAGE, &section::made(&part.text, &part.made), page::GOALS)
}

/// Returns all parts, in the order of the page.
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

fn measure(ground: &Ground, peers: &[echo::Peer], name: &str) -> Result<Part, Failure> {
    match name {
        "instructions" => counting::measure(ground, &echo::counted(peers)),
        "timers" => costs::timers(ground),
        "epoll_ctl" => costs::epoll_control(ground),
        "accepting" => accepting::measure(ground),
        "release" => release::measure(ground),
        "triggers-100" => Ok(page::triggers(&echo::triggers(ground, 100)?)),
        "triggers-1000" => Ok(page::triggers(&echo::triggers(ground, 1000)?)),
        name => {
            let shape =
                echo::SHAPES.iter().find(|(all, active)| name == format!("echo-{all}-{active}"));
            let shape = shape.ok_or_else(|| Failure::new(format!("there is no part `{name}`")))?;
            Ok(page::echo(&echo::measure(ground, peers, *shape)?))
        }
    }
}

/// Returns whether a part compares the loop with software outside its own crate.
fn needs_peers(name: &str) -> bool {
    name.starts_with("echo") || name == "instructions"
}

/// Builds the measured programs with the release profile.
fn build(workspace: &Workspace, ground: &Ground, with_peers: bool) -> Result<(), Failure> {
    let packages = ["roadstead-event", "roadstead-control", "xtask"];
    for package in &packages[..if with_peers { packages.len() } else { 1 }] {
        workspace.release(&["-p", package, "--examples"])?;
    }
    if !with_peers {
        return Ok(());
    }
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(ground.folder.join("echo_libevent"));
    compiler.arg(workspace.root.join("xtask/peers/echo_libevent.c")).arg("-levent_core");
    shell::run(compiler).map(drop)
}
