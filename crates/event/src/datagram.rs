//! One datagram socket, with its waiting datagrams and their receivers.
//!
//! One received datagram is one event, and one call sends one datagram. Datagrams are neither joined nor split, and
//! none is stored after its event: a datagram that the handler does not use is lost, as it could be on the network.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use block::Slice;
use rustix::net::SocketAddrUnix;

use crate::{Address, Fd};

/// The maximum number of datagrams of one socket that wait for room in the kernel. Above it `send_datagram` refuses.
pub(crate) const WAITING_MAX: usize = 1024;

/// The sender of a datagram, to which replies are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(Place);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Internet(SocketAddr),
    Unix(SocketAddrUnix),
    /// A Unix socket without a name: nothing can be sent to it.
    Nowhere,
}

impl Origin {
    /// A sender to which nothing can be sent.
    pub const NOWHERE: Self = Self(Place::Nowhere);

    /// Returns the origin for a socket with this address.
    ///
    /// # Errors
    /// If a path is too long for a Unix socket.
    pub fn of(address: &Address) -> io::Result<Self> {
        Ok(Self(match address {
            Address::Internet(address) => Place::Internet(*address),
            Address::Unix(path) => Place::Unix(SocketAddrUnix::new(path)?),
        }))
    }

    /// The IP address and port; `None` if it is not on the network.
    #[must_use]
    pub const fn internet(&self) -> Option<SocketAddr> {
        match self.0 {
            Place::Internet(address) => Some(address),
            Place::Unix(_) | Place::Nowhere => None,
        }
    }

    /// The path; `None` unless it is a Unix socket with a path.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        use std::os::unix::ffi::OsStrExt;
        let bytes = self.unix()?.path_bytes()?;
        Some(Path::new(std::ffi::OsStr::from_bytes(bytes)))
    }

    pub(crate) const fn unix(&self) -> Option<&SocketAddrUnix> {
        match &self.0 {
            Place::Unix(address) => Some(address),
            Place::Internet(_) | Place::Nowhere => None,
        }
    }
}

impl From<SocketAddr> for Origin {
    fn from(address: SocketAddr) -> Self {
        Self(Place::Internet(address))
    }
}

impl From<SocketAddrUnix> for Origin {
    fn from(address: SocketAddrUnix) -> Self {
        Self(if address.is_unnamed() { Place::Nowhere } else { Place::Unix(address) })
    }
}

#[derive(Debug)]
pub(crate) struct Datagrams {
    pub(crate) fd: Fd,
    /// The kernel may have datagrams to receive.
    pub(crate) readable: bool,
    /// The kernel may have room to send.
    pub(crate) writable: bool,
    /// The socket is in the list of sockets to receive from.
    pub(crate) ready: bool,
    /// The socket is in the list of sockets to send for.
    pub(crate) dirty: bool,
    pub(crate) waiting: VecDeque<(Origin, Slice)>,
}

impl Datagrams {
    pub(crate) const fn new(fd: Fd) -> Self {
        let waiting = VecDeque::new();
        Self { fd, readable: false, writable: true, ready: false, dirty: false, waiting }
    }
}
