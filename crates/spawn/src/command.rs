//! What is asked of the spawner, and what it reports.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Bounds, Home, Pipes, PortOwner, PortProgram, Serves, Socket, StartError, Wiring};

/// Starts and stops programs. Neither blocks or fails: what comes of it is a [`Report`].
///
/// A token names one start and is chosen by the caller; it may be used again after that program's
/// `Exited` or `StartFailed`.
pub trait Spawn: Send {
    /// Starts a program; ends in `Started` or `StartFailed`.
    fn start(&mut self, token: u64, command: Command);

    /// Signals a program with all its process group and session. Nothing happens when it has
    /// ended.
    fn stop(&mut self, token: u64, how: Stop);

    /// A place of its own for a program that serves on a socket, made before it starts.
    ///
    /// # Errors
    /// What the system says: no folder, no descriptor, no port.
    fn home(&mut self, how: Serves) -> io::Result<Home>;

    /// Who accepts a connection that was made to the port of a running program from the address `own`:
    /// somebody else of this machine can take the port while the program does not listen. Asked for each
    /// connection, before anything is sent on it.
    fn port_owner(&self, program: &mut PortProgram, own: SocketAddr) -> PortOwner {
        let _ = (program, own);
        PortOwner::Program
    }

    /// The bytes of memory that a running program occupies now, where that can be known.
    fn resident(&self, pid: u32) -> Option<u64>;
}

/// A program to start, without a shell.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Command {
    /// A path, when it holds a slash (a relative one counts from `cwd`); else a name searched in
    /// the program's own `PATH`.
    pub program: String,
    /// The arguments after the program's name.
    pub arguments: Vec<String>,
    /// The working directory; `None` is the daemon's at its start.
    pub cwd: Option<PathBuf>,
    /// Variables added to, or replacing those of, the environment the daemon was started with, less
    /// those that are [withheld](crate::withhold).
    pub env: Vec<(String, String)>,
    /// Starts from no variables instead of the daemon's; its `PATH` is then that of `env`, or
    /// `/usr/local/bin:/usr/bin:/bin`.
    pub env_clear: bool,
    /// The worker's name; the program finds it as `ROADSTEAD_WORKER`.
    pub name: String,
    /// How it is connected to us.
    pub wiring: Wiring,
    /// A socket that it inherits as descriptor 3 and finds as systemd's socket activation has it:
    /// `LISTEN_FDS`, `LISTEN_PID`, and `LISTEN_FDNAMES` of `http`. Not with
    /// [`Numbers::ThreeFour`](crate::Numbers), which has that number itself.
    pub socket: Option<Socket>,
    /// What it is held to.
    pub bounds: Bounds,
}

/// How to stop a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stop {
    /// Ask: SIGTERM, to the program's process group and whatever else is of its session; and
    /// SIGCONT, without which a stopped program would not hear of it.
    Term,
    /// Insist: SIGKILL to the same. What escaped into another session goes once the program ended.
    Kill,
}

/// What became of a start, a program or the keeper.
///
/// Of one token: `Started` then `Exited`, or `StartFailed`. `Exited` says nothing of the output,
/// which may still stand in the pipe: read it to its end.
#[derive(Debug)]
pub enum Report {
    /// The program runs.
    Started {
        /// Whose start.
        token: u64,
        /// Its process, group and session.
        pid: u32,
        /// Our ends.
        pipes: Pipes,
    },
    /// The program does not run.
    StartFailed {
        /// Whose start.
        token: u64,
        /// Why.
        error: StartError,
    },
    /// The program ended; what it left in its process group was killed.
    Exited {
        /// Which program.
        token: u64,
        /// How.
        exit: Exit,
    },
    /// The keeper ended. `Exited` follows for every program that ran, with [`Status::Lost`].
    KeeperLost,
    /// Another keeper stands in.
    KeeperBack,
}

/// How a program ended and what it cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Exit {
    /// How.
    pub status: Status,
    /// Whether the kernel dumped core.
    pub core: bool,
    /// Processor time in the program, its own waited-for children included.
    pub user: Duration,
    /// Processor time in the kernel on its behalf.
    pub system: Duration,
    /// Its largest resident set, in bytes.
    pub rss_max: u64,
}

impl Exit {
    pub(crate) const LOST: Self = Self {
        status: Status::Lost,
        core: false,
        user: Duration::ZERO,
        system: Duration::ZERO,
        rss_max: 0,
    };
}

/// How a program ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// It exited by itself, with a code of 0..=255.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// Killed because the keeper was lost; nobody saw its status.
    Lost,
}

impl fmt::Display for Exit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Status::Code(code) => write!(to, "exit code {code}")?,
            Status::Signal(signal) => match signal_name(signal) {
                Some(name) => write!(to, "signal {signal} ({name})")?,
                None => write!(to, "signal {signal}")?,
            },
            Status::Lost => to.write_str("killed after the keeper was lost")?,
        }
        if self.core { to.write_str(", core dumped") } else { Ok(()) }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}
