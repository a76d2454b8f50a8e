//! What lines in a pool cost a request: the same data plane with and without them, for `bench
//! balance`.

use super::ground::Ground;
use super::subject::Subject;
use super::{instructions, windows};
use crate::shell::{self, Failure, Workspace};
use std::fs;
use std::time::Duration;

/// Requests whose system calls are counted.
const COUNTED: u64 = 8000;
/// Connections on which they come.
pub(in crate::bench) const CONNECTIONS: usize = 16;

/// Of one request.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Cost {
    /// Outside the kernel, by callgrind.
    pub(in crate::bench) instructions: f64,
    /// System calls by strace, but those that wait for events.
    pub(in crate::bench) calls: f64,
}

/// What a request of 128 bytes costs with each of these lines in the pool. All clients bear this
/// cookie, also where nothing is done with it.
pub(in crate::bench) fn cost(
    workspace: &Workspace,
    variants: &[(&str, &str)],
    cookie: &'static str,
) -> Result<Vec<Cost>, Failure> {
    shell::run(workspace.cargo(["build", "--release", "-p", "xtask", "--examples"]))?;
    let plain = ["build", "--release", "-p", "roadstead", "--example", "serve_file"];
    shell::run(workspace.cargo(plain))?;
    let folder = workspace.target.join("bench/balance");
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    let subject = |variant: &(&str, &str)| Subject::ours(workspace, &folder, *variant, cookie);
    let ground = Ground {
        root: workspace.root.clone(),
        programs: workspace.built("release", "examples"),
        folder: folder.clone(),
        subjects: variants.iter().map(subject).collect::<Result<_, _>>()?,
        copying: None,
        shards: Vec::new(),
        rounds: 1,
        window: Duration::ZERO,
        seed: 0,
    };
    let each = |subject| {
        let (instructions, _) = instructions::of_a_request(&ground, subject)?;
        let calls = windows::counted(&ground, subject, 128, (CONNECTIONS, COUNTED))?;
        let made = calls.iter().filter(|(name, _)| !name.starts_with("epoll_"));
        let all: u64 = made.map(|(_, count)| count).sum();
        let cost = Cost { instructions, calls: all as f64 / COUNTED as f64 };
        eprintln!("{}: {cost:?}", subject.name);
        Ok(cost)
    };
    ground.subjects.iter().map(each).collect()
}
