//! Programs of the gateway that serve HTTP: how they get their sockets, and what ends with them.
//!
//! ```text
//!   Unborn ──its process starts──▶ Starting ──it listens──▶ Serving ──▶ Ended
//!      └─ an inherited socket lets one connection wait from here on ─┘
//! ```
//!
//! Each program is a server with its own number, which is never reused. Its connections are like those to any server,
//! but wait until the program accepts them.

use std::io;
use std::path::Path;
use std::sync::Weak;
use std::time::Duration;

use spawn::{Socket, SocketKind};

/// The time that the settings of the gateway allow a program for its start.
pub(crate) const START_MAX: Duration = Duration::from_secs(2);

/// The program behind a server.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) how: SocketKind,
    /// The socket that it inherits.
    pub(crate) socket: Option<Socket>,
    /// Dropped when the gateway has removed the program.
    pub(crate) kept: Weak<()>,
    pub(crate) program: Option<usize>,
    pub(crate) has_ended: bool,
    /// The maximum number of connections that wait to be accepted.
    pub(crate) backlog: usize,
    /// The speakers of these connections.
    pub(crate) waiting: Vec<usize>,
}

/// The history of all such programs.
#[derive(Debug, Default)]
pub(crate) struct HostHistory {
    /// The number of programs that ended in another way than by order of the gateway while they were serving.
    pub(crate) cut_short: u32,
    /// The maximum number of connections that wait for a program.
    pub(crate) backlog: usize,
}

/// Returns the number of the server behind the path of a socket.
pub(crate) fn server_at(path: &Path) -> io::Result<usize> {
    let name = path.file_name().and_then(|name| name.to_str()?.parse().ok());
    name.ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl Host {
    /// Whether the gateway has handled the end of the program.
    pub(crate) fn is_left(&self) -> bool {
        self.has_ended && self.kept.strong_count() == 0
    }
}

impl HostHistory {
    pub(crate) fn of_hosts(backlog: usize) -> Self {
        Self { backlog, ..Self::default() }
    }
}
