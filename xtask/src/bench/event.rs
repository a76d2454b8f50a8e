//! The event loop against common event libraries: an echo on 1 to 9500 connections, the cost of single calls, and the
//! open questions about triggers.

mod accepting;
mod costs;
mod counting;
mod echo;
mod page;
mod release;

use super::driver::{Options, Spec, Whole};
use super::ground::Ground;
use crate::requirements;
use crate::shell::{self, Failure, Workspace, command};

static SPEC: Spec = Spec {
    name: "loop",
    // `echo-CONNECTIONS-ACTIVE`, `triggers-CONNECTIONS`
    parts: &[
        "echo-1-1",
        "echo-100-100",
        "echo-1000-1000",
        "echo-9500-9500",
        "echo-1010-10",
        "echo-1100-100",
        "echo-9010-10",
        "echo-9100-100",
        "instructions",
        "timers",
        "epoll_ctl",
        "triggers-100",
        "triggers-1000",
        "release",
        "accepting",
    ],
    text: page::TEXT,
    tools: requirements::BENCH_LOOP,
    rounds: 15,
    milliseconds: 1000,
};

pub(super) fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let bench = SPEC.open(workspace, options, "")?;
    let ground = &bench.ground;
    if !options.page {
        let with_peers = SPEC.parts.iter().any(|part| bench.wants(part) && needs_peers(part));
        build(workspace, ground, with_peers)?;
    }
    let peers = echo::peers(ground);
    let measure = |name: &str| match name {
        "instructions" => counting::measure(ground, &echo::counted(&peers)),
        "timers" => costs::timers(ground),
        "epoll_ctl" => costs::epoll_control(ground),
        "accepting" => accepting::measure(ground),
        "release" => release::measure(ground),
        name => {
            let numbers = name.split('-').filter_map(|word| word.parse().ok());
            match numbers.collect::<Vec<usize>>()[..] {
                [connections, active] => {
                    echo::measure(ground, &peers, (connections, active)).map(|it| page::echo(&it))
                }
                [connections] => Ok(page::triggers(&echo::triggers(ground, connections)?)),
                _ => Err(Failure::new(format!("there is no part `{name}`"))),
            }
        }
    };
    bench.run(measure, |parts| Whole { goals: page::goals(parts), ..Whole::default() })
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
    let mut compiler = command("cc", ["-O2", "-o"]);
    compiler.arg(ground.folder.join("echo_libevent"));
    compiler.arg(workspace.root.join("xtask/peers/echo_libevent.c")).arg("-levent_core");
    shell::run(compiler).map(drop)
}
