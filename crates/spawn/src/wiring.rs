//! How a program is connected: the kernel objects and their descriptor numbers in the program.
//!
//! What it is: [`Wiring`], and the creation of both ends. What it depends on: pipes, socket pairs, terminals. What it
//! must never depend on: the data that is sent through them.
//!
//! A program can keep the daemon waiting with a pipe: while its splice(2) waits for another descriptor, the kernel holds
//! the lock of the pipe, and each system call of the daemon on its own end waits, also in non-blocking mode. Therefore
//! programs that are not trusted get socket pairs.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// How a program is connected to the daemon.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wiring {
    /// The kind of connection for its requests and replies.
    pub io: Io,
    /// The kind of connection for its messages (its log).
    pub log: Io,
    /// The descriptor numbers of requests and replies.
    pub numbers: DescriptorNumbers,
    /// The workaround for a program that buffers its output.
    pub unbuffer: Unbuffer,
}

/// The kind of connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Io {
    /// A pipe for each direction, which every program supports; 64 KiB each. The program must be trusted not to keep the
    /// daemon waiting.
    #[default]
    Pipe,
    /// A Unix socket pair for each direction; about 200 KiB each. The program cannot open `/dev/stdin`, `/dev/stdout` or
    /// `/dev/stderr`.
    Socket,
}

/// The descriptor numbers of the requests and replies of a program.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DescriptorNumbers {
    /// 0 and 1. Descriptor 2 is for messages of the program (its log).
    #[default]
    Standard,
    /// 3 and 4, as in Erlang's `nouse_stdio`. Standard input is empty. Standard output and standard error are both for
    /// messages of the program, so accidental output does no harm.
    ThreeFour,
}

/// The workaround for a program that buffers its output if it is not a terminal.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unbuffer {
    /// None.
    #[default]
    No,
    /// coreutils' `libstdbuf` makes the C library flush every line. Works for dynamically linked programs that use
    /// `stdio` of C (not for Perl, Python, Node, Go).
    Stdbuf,
    /// The output is a terminal in raw mode, which changes no byte. Works for most programs that flush their output on
    /// a terminal. Some then print colours or prompts.
    Pty,
}

/// The daemon's ends of the connections of a program: non-blocking and close-on-exec. No other process holds them.
#[derive(Debug)]
pub struct Pipes {
    /// Requests, written by the daemon. Closing it ends the input of the program.
    pub stdin: OwnedFd,
    /// Replies, read by the daemon.
    pub stdout: OwnedFd,
    /// Messages of the program (its log), read by the daemon.
    pub stderr: OwnedFd,
}

/// Creates both ends of the connections. The ends of the program block, because most programs do not support
/// non-blocking descriptors.
pub(crate) fn make(wiring: Wiring) -> Result<(Pipes, Vec<OwnedFd>), Errno> {
    // The reading end is first.
    let (their_stdin, stdin) = match wiring.io {
        Io::Pipe => pipe_with(PipeFlags::CLOEXEC)?,
        Io::Socket => sockets()?,
    };
    let (stdout, their_stdout) = match (wiring.unbuffer, wiring.io) {
        (Unbuffer::Pty, _) => terminal()?,
        (_, Io::Pipe) => pipe_with(PipeFlags::CLOEXEC)?,
        (_, Io::Socket) => sockets()?,
    };
    let (stderr, their_stderr) = match wiring.log {
        Io::Pipe => pipe_with(PipeFlags::CLOEXEC)?,
        Io::Socket => sockets()?,
    };
    for ours in [&stdin, &stdout, &stderr] {
        // For a pipe, a socket and a terminal, the flag applies to one end only.
        let flags = rustix::fs::fcntl_getfl(ours)?;
        rustix::fs::fcntl_setfl(ours, flags | OFlags::NONBLOCK)?;
    }
    Ok((Pipes { stdin, stdout, stderr }, vec![their_stdin, their_stdout, their_stderr]))
}

/// Creates both ends of a connection. Neither passes descriptors to the other.
fn sockets() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (one, other) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    for socket in [&one, &other] {
        crate::system::refuse_descriptors(socket);
    }
    Ok((one, other))
}

/// Creates both ends of a terminal, the daemon's end first. The terminal is in raw mode: line ends are not changed, and
/// bytes written by the daemon are not echoed and cause no signals.
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

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::os::fd::AsFd;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;

    #[test]
    fn a_program_passes_no_descriptors() {
        let (ours, theirs) = sockets().unwrap();
        let supports = crate::system::refuse_descriptors(&ours);
        for socket in [&ours, &theirs] {
            let (fds, mut space) = ([socket.as_fd()], [std::mem::MaybeUninit::uninit(); 64]);
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
            let sent = sendmsg(socket, &[IoSlice::new(b"x")], &mut control, SendFlags::NOSIGNAL);
            // The kernel can refuse them from Linux 6.16 on.
            assert_eq!(sent, if supports { Err(Errno::PERM) } else { Ok(1) });
        }
    }
}
