//! What lines in a pool cost a request: the same data plane with and without them, for `bench
//! balance`.

use super::subject::Subject;
use super::{instructions, windows};
use crate::bench::callgrind::Profile;
use crate::bench::ground::Ground;
use crate::bench::system_calls;
use crate::shell::{Failure, Workspace};
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
    workspace.release(&["-p", "xtask", "--examples"])?;
    workspace.example("roadstead", "serve_file")?;
    let ground = Ground::new(workspace, "balance", 1, Duration::ZERO, Some(0))?;
    let each = |variant: &(&str, &str)| {
        let subject = Subject::ours(&ground, *variant, cookie)?;
        let Profile { instructions, .. } = instructions::of_a_request(&ground, &subject)?;
        let mut calls = windows::counted(&ground, &subject, 128, (CONNECTIONS, COUNTED))?;
        calls.retain(|(name, _)| !name.starts_with("epoll_"));
        let calls = system_calls::all(&calls) as f64 / COUNTED as f64;
        let cost = Cost { instructions, calls };
        eprintln!("{}: {cost:?}", subject.name);
        Ok(cost)
    };
    variants.iter().map(each).collect()
}
