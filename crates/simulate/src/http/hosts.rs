//! Programs of the gateway's own that serve HTTP: how they come to their sockets, and what goes with
//! them when they end.
//!
//! ```text
//!   Unborn ──its process starts──▶ Starting ──it listens──▶ Serving ──▶ Ended
//!      └─ a socket that it inherits lets one connection wait from here ─┘
//! ```
//!
//! Each is a server of its own number, which no other has after it; its connections are links like
//! those to any server, but wait until the program accepts them.

use std::io;
use std::path::Path;
use std::sync::Weak;
use std::time::Duration;

use spawn::{Serves, Socket};

/// How long the gateway's settings give a program to start.
pub(crate) const START_MAX: Duration = Duration::from_secs(2);

/// The program that is behind a server.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) how: Serves,
    /// What it inherits.
    pub(crate) socket: Option<Socket>,
    /// Gone when the gateway has left it.
    pub(crate) kept: Weak<()>,
    pub(crate) program: Option<usize>,
    pub(crate) has_ended: bool,
    /// Connections that may wait to be accepted.
    pub(crate) backlog: usize,
    /// Those that do, by their speakers.
    pub(crate) waiting: Vec<usize>,
}

/// What became of all such programs.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    /// Programs that ended, or were ended, otherwise than on the gateway's order when they served.
    pub(crate) cut_short: u32,
    /// Connections that they let wait at most.
    pub(crate) backlog: usize,
}

/// The server behind the path of a socket.
pub(crate) fn server_at(path: &Path) -> io::Result<usize> {
    let name = path.file_name().and_then(|name| name.to_str()?.parse().ok());
    name.ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Host {
    /// Whether the gateway knows that it has ended.
    pub(crate) fn is_left(&self) -> bool {
        self.has_ended && self.kept.strong_count() == 0
    }
}

impl Lives {
    pub(crate) fn of_hosts(backlog: usize) -> Self {
        Self { backlog, ..Self::default() }
    }
}
