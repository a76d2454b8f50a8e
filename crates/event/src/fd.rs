//! Descriptors that are passed to a loop.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::io::FdFlags;

/// An owned descriptor, to be passed to a loop. Closed on drop.
///
/// The sockets and pipes of the standard library convert to it, and so does every [`OwnedFd`]. The loop makes a
/// descriptor that it takes over non-blocking and close-on-exec; nothing need be set before. `OwnedFd::try_from` returns
/// the descriptor of the system.
///
/// ```
/// use std::os::fd::OwnedFd;
/// use std::os::unix::net::UnixStream;
///
/// let (ours, theirs) = UnixStream::pair()?;
/// let fd = event::Fd::from(ours);
/// let back = OwnedFd::try_from(fd).expect("it is not simulated");
/// let ours = UnixStream::from(back);
/// # drop((ours, theirs));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A simulated kernel returns numbers instead, which are meaningful only to that kernel.
#[derive(Debug)]
pub struct Fd(Kind);

#[derive(Debug)]
enum Kind {
    Real(OwnedFd),
    Simulated(u32),
}

impl Fd {
    /// Creates a descriptor of a simulated kernel.
    #[must_use]
    pub const fn simulated(number: u32) -> Self {
        Self(Kind::Simulated(number))
    }

    /// Returns a descriptor of a child process, for [`Context::watch_process`](crate::Context::watch_process).
    ///
    /// # Errors
    /// The status of the child was collected already, or no descriptor is left.
    pub fn of_child(child: &std::process::Child) -> io::Result<Self> {
        // Until its status is collected, the id of the child cannot belong to another process.
        let pid = rustix::process::Pid::from_child(child);
        Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?.into())
    }

    /// Returns another descriptor of the same open file, for another loop. For a simulated kernel it is the same
    /// number.
    ///
    /// # Errors
    /// Those of the system: no descriptor is left.
    pub fn duplicate(&self) -> io::Result<Self> {
        match &self.0 {
            Kind::Real(fd) => Ok(Self(Kind::Real(fd.try_clone()?))),
            Kind::Simulated(number) => Ok(Self::simulated(*number)),
        }
    }

    /// Prepares a descriptor that somebody else has created for a loop: it becomes non-blocking, programs that this
    /// process starts do not inherit it, and a Unix socket accepts no descriptors. Simulated descriptors need no
    /// preparation.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let Kind::Real(fd) = &self.0 else { return Ok(()) };
        let flags = rustix::fs::fcntl_getfl(fd)?;
        if !flags.contains(OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
        }
        crate::refuse_descriptors(fd);
        // A descriptor has no other flag, so there is none to keep.
        Ok(rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC)?)
    }

    /// The number of the descriptor. The system assigns the lowest free number, so at least as many descriptors are
    /// open.
    #[must_use]
    pub fn number(&self) -> u32 {
        match &self.0 {
            // An open descriptor has a non-negative number.
            Kind::Real(fd) => u32::try_from(fd.as_raw_fd()).unwrap_or(u32::MAX),
            Kind::Simulated(number) => *number,
        }
    }

    /// The local address of an IP socket.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        let Kind::Real(fd) = &self.0 else { return None };
        SocketAddr::try_from(rustix::net::getsockname(fd).ok()?).ok()
    }

    /// The number of a simulated descriptor; `None` for a real one.
    #[must_use]
    pub const fn simulated_number(&self) -> Option<u32> {
        match self.0 {
            Kind::Simulated(number) => Some(number),
            Kind::Real(_) => None,
        }
    }
}

impl From<OwnedFd> for Fd {
    fn from(fd: OwnedFd) -> Self {
        Self(Kind::Real(fd))
    }
}

macro_rules! from_owner {
    ($($owner:ty),+ $(,)?) => {
        $(impl From<$owner> for Fd {
            fn from(owner: $owner) -> Self {
                OwnedFd::from(owner).into()
            }
        })+
    };
}

from_owner!(
    io::PipeReader,
    io::PipeWriter,
    std::net::TcpListener,
    std::net::TcpStream,
    std::net::UdpSocket,
    std::os::unix::net::UnixDatagram,
    std::os::unix::net::UnixListener,
    std::os::unix::net::UnixStream,
    std::process::ChildStderr,
    std::process::ChildStdin,
    std::process::ChildStdout,
);

impl TryFrom<Fd> for OwnedFd {
    /// The simulated descriptor, returned unchanged.
    type Error = Fd;

    fn try_from(fd: Fd) -> Result<Self, Fd> {
        match fd.0 {
            Kind::Real(fd) => Ok(fd),
            Kind::Simulated(_) => Err(fd),
        }
    }
}

impl AsFd for Fd {
    /// # Panics
    /// If the descriptor is simulated: only its own kernel may use it.
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Real(fd) => fd.as_fd(),
            Kind::Simulated(number) => {
                panic!("simulated descriptor {number} was given to the real kernel")
            }
        }
    }
}
