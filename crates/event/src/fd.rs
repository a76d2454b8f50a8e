//! Descriptors on their way into a loop.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// An owned descriptor, to be given to a loop. Closed on drop.
///
/// A simulated kernel hands out numbers instead; they mean something to that kernel alone.
#[derive(Debug)]
pub struct Fd(Kind);

#[derive(Debug)]
enum Kind {
    Real(OwnedFd),
    Simulated(u32),
}

impl Fd {
    /// A descriptor of a simulated kernel.
    #[must_use]
    pub const fn simulated(number: u32) -> Self {
        Self(Kind::Simulated(number))
    }

    /// Another descriptor of the same thing, for another loop. Of a simulated kernel it is the same
    /// number.
    ///
    /// # Errors
    /// What the system says: no descriptor is left.
    pub fn duplicate(&self) -> io::Result<Self> {
        match &self.0 {
            Kind::Real(fd) => Ok(Self(Kind::Real(fd.try_clone()?))),
            Kind::Simulated(number) => Ok(Self::simulated(*number)),
        }
    }

    /// Has reads and accepts return at once where there is nothing. A simulated descriptor always does.
    pub(crate) fn make_nonblocking(&self) -> io::Result<()> {
        let Kind::Real(fd) = &self.0 else { return Ok(()) };
        let flags = rustix::fs::fcntl_getfl(fd)?;
        Ok(rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)?)
    }

    /// Its number. The system gives the lowest that is free, so as many are open below it.
    #[must_use]
    pub fn number(&self) -> u32 {
        match &self.0 {
            // What is open has a number from 0 on.
            Kind::Real(fd) => u32::try_from(fd.as_raw_fd()).unwrap_or(u32::MAX),
            Kind::Simulated(number) => *number,
        }
    }

    /// Where a socket of IP is bound.
    pub(crate) fn own_address(&self) -> Option<SocketAddr> {
        let Kind::Real(fd) = &self.0 else { return None };
        SocketAddr::try_from(rustix::net::getsockname(fd).ok()?).ok()
    }

    /// The number of a simulated descriptor, if it is one.
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
    std::os::unix::net::UnixListener,
    std::os::unix::net::UnixStream,
    std::process::ChildStderr,
    std::process::ChildStdin,
    std::process::ChildStdout,
);

impl TryFrom<Fd> for OwnedFd {
    /// The simulated descriptor, given back.
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
    /// When the descriptor is simulated: only its own kernel may use it.
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
