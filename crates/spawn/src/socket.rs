//! Sockets that a program serves on: one that it inherits, and a port that is kept for it.
//!
//! What it is: two handles of what is made before the program starts. What it must never know: what
//! is said through them.

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

/// Connections that may wait to be accepted; the system's own maximum cuts it.
const BACKLOG: i32 = 4096;

/// A listening Unix socket for a program to inherit. It closes when the last copy goes; its file
/// stays.
#[derive(Clone, Debug)]
pub struct Socket(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    Real(OwnedFd),
    /// Of a simulated kernel, and whether it was opened.
    Simulated(AtomicBool),
}

impl Socket {
    /// Binds one at a path where nothing is. One connection may wait in it until [`Self::open`]: a
    /// second that is made tells that somebody accepts.
    ///
    /// # Errors
    /// What the system says: the path is taken, too long, or in no folder.
    pub fn bind(path: &Path) -> io::Result<Self> {
        // It blocks, as programs expect of what they inherit.
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        // Linux lets one more wait than it is told.
        rustix::net::listen(&socket, 0)?;
        Ok(Self(Arc::new(Kind::Real(socket))))
    }

    /// One of a simulated kernel, which no process can inherit.
    #[must_use]
    pub fn simulated() -> Self {
        Self(Arc::new(Kind::Simulated(AtomicBool::new(false))))
    }

    /// Lets as many connections wait as the system allows, whatever its program asked for.
    pub fn open(&self) {
        match &*self.0 {
            // It cannot fail on a socket that listens.
            Kind::Real(socket) => drop(rustix::net::listen(socket, BACKLOG)),
            Kind::Simulated(open) => open.store(true, Ordering::Relaxed),
        }
    }

    /// Whether a simulated one was opened.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(&*self.0, Kind::Simulated(open) if open.load(Ordering::Relaxed))
    }

    /// Another descriptor of it, for the keeper.
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

/// Whether nobody listens at a path where a socket was made: a connection to it is refused.
pub(crate) fn is_dead(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let tried = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .and_then(|socket| connect(&socket, &SocketAddrUnix::new(path)?));
    tried == Err(Errno::CONNREFUSED)
}

/// A port of 127.0.0.1 that the system gives to nobody else meanwhile; a program that sets
/// `SO_REUSEADDR`, as nearly every server does, may listen on it.
///
/// So may a program of another user that asks for this very number first: `SO_REUSEADDR` does not look at
/// users, and `SO_REUSEPORT`, which does, is set by few servers and would have to be set by both. What is sent
/// to the port is therefore sent only after [`Spawn::port_owner`](crate::Spawn::port_owner). A Unix socket
/// has no such gap.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _socket: OwnedFd,
}

impl Port {
    /// Keeps one.
    ///
    /// # Errors
    /// What the system says: no port or descriptor is left.
    pub fn keep() -> io::Result<Self> {
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let bound = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
        Ok(Self { number: bound.port(), _socket: socket })
    }

    /// Its number.
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

    /// How the port of a program can be lost, and how that is seen.
    #[test]
    fn whoever_takes_a_port_that_is_kept_is_found_by_its_user() {
        let port = Port::keep().unwrap();
        let thief = TcpListener::bind(("127.0.0.1", port.number())).unwrap();
        let own = rustix::process::geteuid().as_raw();
        let address = thief.local_addr().unwrap();
        assert_eq!(listeners::at(address).unwrap(), [own]);
        assert!(
            TcpListener::bind(("127.0.0.1", port.number())).is_err(),
            "the program comes too late"
        );
        drop(thief);
    }

    #[test]
    fn a_port_that_is_kept_is_listened_on_by_its_program_alone() {
        let port = Port::keep().unwrap();
        let others: Vec<u16> = (0..20).map(|_| Port::keep().unwrap().number()).collect();
        assert!(!others.contains(&port.number()));
        // The standard library sets SO_REUSEADDR.
        let listener = TcpListener::bind(("127.0.0.1", port.number())).unwrap();
        assert!(TcpListener::bind(("127.0.0.1", port.number())).is_err());
        drop(listener);
    }
}
