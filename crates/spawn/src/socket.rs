//! Sockets on which a program serves: a socket that it inherits, and a port that is reserved for it.
//!
//! What it is: two handles of objects that are created before the program starts. What it must never depend on: the
//! data that is sent through them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with, sockopt,
};

/// The number of connections that may wait to be accepted. The system reduces it to its own maximum.
const BACKLOG: i32 = 4096;

/// A listening Unix socket that a program inherits. It closes when the last copy is dropped; its file remains.
#[derive(Clone, Debug)]
pub struct Socket(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    Real(OwnedFd),
    /// A socket of a simulated kernel, and whether `open` was called.
    Simulated(AtomicBool),
}

impl Socket {
    /// Binds a socket at an unused path. Until [`Self::open`], one connection may wait in the socket: a second
    /// successful connection shows that the first was accepted.
    ///
    /// # Errors
    /// The error of the system: the path is in use, is too long, or its folder does not exist.
    pub fn bind(path: &Path) -> io::Result<Self> {
        // The socket blocks, because programs expect this of an inherited socket.
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        // Linux allows one more connection than the given backlog.
        rustix::net::listen(&socket, 0)?;
        Ok(Self(Arc::new(Kind::Real(socket))))
    }

    /// A socket of a simulated kernel, which no process can inherit.
    #[must_use]
    pub fn simulated() -> Self {
        Self(Arc::new(Kind::Simulated(AtomicBool::new(false))))
    }

    /// Allows as many waiting connections as the system permits, independent of the backlog that the program requested.
    pub fn open(&self) {
        match &*self.0 {
            // Cannot fail on a listening socket.
            Kind::Real(socket) => drop(rustix::net::listen(socket, BACKLOG)),
            Kind::Simulated(open) => open.store(true, Ordering::Relaxed),
        }
    }

    /// Whether `open` was called on a simulated socket.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(&*self.0, Kind::Simulated(open) if open.load(Ordering::Relaxed))
    }

    /// Duplicates the descriptor, for the supervisor.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        match &*self.0 {
            Kind::Real(socket) => socket.try_clone(),
            Kind::Simulated(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl PartialEq for Socket {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Socket {}

/// Whether the socket at a path has no listener: the kernel refuses a connection.
pub(crate) fn has_no_listener(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let tried =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).and_then(|socket| {
            crate::system::refuse_descriptors(&socket);
            connect(&socket, &SocketAddrUnix::new(path)?)
        });
    tried == Err(Errno::CONNREFUSED)
}

/// A reserved port of 127.0.0.1: the system assigns it to no other process. A program that sets `SO_REUSEADDR`, as
/// nearly every server does, may listen on it.
///
/// A program of another user that requests the same port number first may listen on it as well, because `SO_REUSEADDR`
/// does not compare users. `SO_REUSEPORT` does, but few servers set it, and both sides would have to. Therefore data is
/// sent to the port only after a check with [`Spawn::port_owner`](crate::Spawn::port_owner). A Unix socket does not
/// have this problem.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _socket: OwnedFd,
}

impl Port {
    /// Reserves a port.
    ///
    /// # Errors
    /// The error of the system: no port or descriptor is available.
    pub fn reserve() -> io::Result<Self> {
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let bound = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
        Ok(Self { number: bound.port(), _socket: socket })
    }

    /// Returns the port number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn reach(path: &Path) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(socket)
    }

    #[test]
    fn a_second_connection_tells_that_the_first_was_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let socket = Socket::bind(&path).unwrap();
        assert!(Socket::bind(&path).is_err(), "it is taken");
        let _first = reach(&path).unwrap();
        assert_eq!(reach(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let listener = UnixListener::from(socket.duplicate().unwrap());
        drop(listener.accept().unwrap());
        let _second = reach(&path).unwrap();
        assert!(reach(&path).is_err());
        socket.open();
        drop((reach(&path).unwrap(), reach(&path).unwrap()));
        drop((socket, listener));
        assert!(UnixStream::connect(&path).is_err(), "nobody holds it any more");
    }

    /// How a program can lose its port, and how the loss is detected.
    #[test]
    fn whoever_takes_a_port_that_is_kept_is_found_by_its_user() {
        let port = Port::reserve().unwrap();
        let thief = TcpListener::bind(("127.0.0.1", port.number())).unwrap();
        let own = rustix::process::geteuid().as_raw();
        let address = thief.local_addr().unwrap();
        assert_eq!(listeners::listener(address).unwrap().map(|it| it.user), Some(own));
        assert!(
            TcpListener::bind(("127.0.0.1", port.number())).is_err(),
            "the program comes too late"
        );
        drop(thief);
    }

    #[test]
    fn a_port_that_is_kept_is_listened_on_by_its_program_alone() {
        let port = Port::reserve().unwrap();
        let others: Vec<u16> = (0..20).map(|_| Port::reserve().unwrap().number()).collect();
        assert!(!others.contains(&port.number()));
        // The standard library sets SO_REUSEADDR.
        let listener = TcpListener::bind(("127.0.0.1", port.number())).unwrap();
        assert!(TcpListener::bind(("127.0.0.1", port.number())).is_err());
        drop(listener);
    }
}
