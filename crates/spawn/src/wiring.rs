//! How a program is connected: which kernel objects, on which of its descriptors.
//!
//! What it is: [`Wiring`], and the making of both ends. What it knows: pipes, socket pairs,
//! terminals. What it must never know: what is said through them.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// How a program is connected to us.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wiring {
    /// What its requests and replies go through.
    pub io: Io,
    /// Which of its descriptors they are.
    pub numbers: Numbers,
    /// What is done for a program that keeps its output in a buffer.
    pub unbuffer: Unbuffer,
}

/// What requests and replies go through.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Io {
    /// Two pipes: every program can cope with them; 64 KiB each.
    #[default]
    Pipe,
    /// Two Unix socket pairs, one each way: about 200 KiB each, and `/dev/stdin` cannot be opened.
    Socket,
}

/// Which descriptors of a program its requests and replies are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Numbers {
    /// 0 and 1, with 2 for what it has to say of itself.
    #[default]
    Standard,
    /// 3 and 4, as Erlang's `nouse_stdio`. Standard input is empty, and both standard output and
    /// standard error are what it has to say of itself: a stray print breaks nothing.
    ThreeFour,
}

/// What is done for a program that keeps its output in a buffer when that is no terminal.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unbuffer {
    /// Nothing.
    #[default]
    No,
    /// The C library is told to flush every line, by coreutils' `libstdbuf`. Works for programs
    /// that use C's `stdio` and are linked dynamically (not Perl, Python, Node, Go).
    Stdbuf,
    /// Its output is a terminal that changes no byte. Works for most programs that flush when a
    /// person watches. Some then print colours or prompts.
    Pty,
}

/// The daemon's ends of a program's connections: non-blocking, close-on-exec, nobody else holds
/// them.
#[derive(Debug)]
pub struct Pipes {
    /// Requests; written by us. Closing it is the end of the program's input.
    pub stdin: OwnedFd,
    /// Replies; read by us.
    pub stdout: OwnedFd,
    /// What it says of itself; read by us.
    pub stderr: OwnedFd,
}

/// Both sides of the wires. The program's ends block: most programs cannot cope with others.
pub(crate) fn make(wiring: Wiring) -> Result<(Pipes, Vec<OwnedFd>), Errno> {
    // Reader first.
    let (their_stdin, stdin) = match wiring.io {
        Io::Pipe => pipe_with(PipeFlags::CLOEXEC)?,
        Io::Socket => sockets()?,
    };
    let (stdout, their_stdout) = match (wiring.unbuffer, wiring.io) {
        (Unbuffer::Pty, _) => terminal()?,
        (_, Io::Pipe) => pipe_with(PipeFlags::CLOEXEC)?,
        (_, Io::Socket) => sockets()?,
    };
    let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    for ours in [&stdin, &stdout, &stderr] {
        // On a pipe, a socket and a terminal alike the flag belongs to one end alone.
        let flags = rustix::fs::fcntl_getfl(ours)?;
        rustix::fs::fcntl_setfl(ours, flags | OFlags::NONBLOCK)?;
    }
    Ok((Pipes { stdin, stdout, stderr }, vec![their_stdin, their_stdout, their_stderr]))
}

fn sockets() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// A terminal's two sides, ours first. In raw mode: line ends stay what they are and nothing
/// typed by us is echoed or becomes a signal.
fn terminal() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    let mut settings = tcgetattr(&theirs)?;
    settings.make_raw();
    tcsetattr(&theirs, OptionalActions::Now, &settings)?;
    Ok((ours, theirs))
}
