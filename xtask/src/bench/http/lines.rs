//! The cost per request of configuration lines in a pool: the same data plane with and without them, for `bench
//! balance`.

use super::subject::Subject;
use super::{instructions, windows};
use crate::bench::ground::Ground;
use crate::bench::system_calls;
use crate::shell::{Failure, Workspace};
use std::time::Duration;

/// The number of requests whose system calls are counted.
const COUNTED: u64 = 8000;
/// The number of connections for these requests.
pub(in crate::bench) const CONNECTIONS: usize = 16;

/// The cost of one request.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Cost {
    /// User-space instructions, counted by callgrind.
    pub(in crate::bench) instructions: f64,
    /// System calls, counted by strace, except those that wait for events.
    pub(in crate::bench) calls: f64,
}

/// Returns the cost of a request with a reply of 128 bytes for each of these lines in the pool. All clients send this
/// cookie, even if the pool does not use it.
pub(in crate::bench) fn cost(
    workspace: &Workspace,
    variants: &[(&str, &str)],
    cookie: &'static str,
) -> Result<Vec<Cost>, Failure> {
    workspace.release(&["-p", "xtask", "--examples"])?;
    workspace.example("roadstead", "serve_file")?;
    let ground = Ground::new(workspace, "balance", 1, Duration::ZERO, Some(0))?;
    let each = |variant: &(&str, &str)| {
        let subject = Subject::ours(&ground, *variant, cookie)?;
        let instructions = instructions::of_a_request(&ground, &subject)?.instructions();
        let mut calls = windows::counted(&ground, &subject, 128, (CONNECTIONS, COUNTED))?;
        calls.retain(|(name, _)| !name.starts_with("epoll_"));
        let calls = system_calls::all(&calls) as f64 / COUNTED as f64;
        let cost = Cost { instructions, calls };
        eprintln!("{}: {cost:?}", subject.name);
        Ok(cost)
    };
    variants.iter().map(each).collect()
}
