//! Requests to the spawner, and its reports.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::exit::Exit;
use crate::{
    Bounds, Pipes, PortOwner, PortProgram, ProgramSocket, Socket, SocketKind, StartError, Wiring,
};

/// Starts and stops programs.
///
/// `start` and `stop` neither block nor fail: their result is a [`Report`]. A token identifies one start and is chosen
/// by the caller. A token may be reused after `Exited` or `StartFailed` of its program.
pub trait Spawn: Send {
    /// Starts a program. The result is `Started` or `StartFailed`.
    fn start(&mut self, token: u64, command: Command);

    /// Sends a signal to a program: to its process group and to the other processes of its session. Does nothing if the
    /// program has ended.
    fn stop(&mut self, token: u64, how: Stop);

    /// Creates the socket of a program that serves on a socket, before the program starts.
    ///
    /// # Errors
    /// The error of the system: no folder, no descriptor, no port.
    fn program_socket(&mut self, how: SocketKind) -> io::Result<ProgramSocket>;

    /// Returns the owner of the process that accepts a connection from the address `own` to the port of a running
    /// program. Another user of this machine can take the port while the program does not listen, so call this for each
    /// connection before anything is sent on it.
    fn port_owner(&self, program: &mut PortProgram, own: SocketAddr) -> PortOwner {
        let _ = (program, own);
        PortOwner::Program
    }

    /// Returns the memory that a running program used when it was measured last, in bytes, and asks for another
    /// measurement. `None` before the first measurement, or if the memory is not available.
    fn resident(&self, pid: u32) -> Option<u64>;
}

/// A program to start, without a shell.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Command {
    /// A path if it contains a slash (a relative path is resolved from `cwd`); otherwise a name that is searched in the
    /// `PATH` of the program.
    pub program: String,
    /// The arguments after the name of the program.
    pub arguments: Vec<String>,
    /// The working directory; `None`: the directory in which the daemon was started.
    pub cwd: Option<PathBuf>,
    /// Variables that are added to the environment, or replace its variables. The environment is the one that the
    /// daemon was started with, without the variables that are [withheld](crate::withhold).
    pub env: Vec<(String, String)>,
    /// Whether the environment starts empty instead of with the variables of the daemon. `PATH` is then that of `env`,
    /// or `/usr/local/bin:/usr/bin:/bin`.
    pub env_clear: bool,
    /// The name of the worker, which the program receives as `ROADSTEAD_WORKER`.
    pub name: String,
    /// How the program is connected to the daemon.
    pub wiring: Wiring,
    /// A socket that the program inherits as descriptor 3, in the convention of systemd socket activation:
    /// `LISTEN_FDS`, `LISTEN_PID`, and `LISTEN_FDNAMES` with the value `http`. Cannot be combined with
    /// [`DescriptorNumbers::ThreeFour`](crate::DescriptorNumbers), which uses descriptor 3.
    pub socket: Option<Socket>,
    /// The user, limits, processors and control group of the program.
    pub bounds: Bounds,
}

/// How to stop a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stop {
    /// SIGTERM to the process group of the program and to the other processes of its session, then SIGCONT: without
    /// SIGCONT, a stopped process would not act on SIGTERM.
    Term,
    /// SIGKILL to the same processes. Processes that moved to another session are killed after the program has ended.
    Kill,
}

/// The result of a start, the end of a program, or a change of the supervisor.
///
/// The reports of one token are `Started` and then `Exited`, or `StartFailed`. After `Exited` the pipe may still
/// contain output: read it to its end.
#[derive(Debug)]
pub enum Report {
    /// The program runs.
    Started {
        /// The token of the start.
        token: u64,
        /// The id of its process, which is also the id of its process group and its session.
        pid: u32,
        /// The daemon's ends of the pipes.
        pipes: Pipes,
    },
    /// The program does not run.
    StartFailed {
        /// The token of the start.
        token: u64,
        /// The reason.
        error: StartError,
    },
    /// The program ended. The other processes in its process group were killed.
    Exited {
        /// The token of the program.
        token: u64,
        /// How the program ended.
        exit: Exit,
    },
    /// The supervisor ended. `Exited` with [`Status::Lost`](crate::Status::Lost) follows for every program that was running.
    SupervisorLost,
    /// A new supervisor is running.
    SupervisorReplaced,
}
