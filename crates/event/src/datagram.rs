//! One datagram socket: what waits to be sent, and to whom.
//!
//! One datagram in is one event, one call is one datagram out. Nothing is put together or taken
//! apart, and nothing is held: what the owner does not want is gone, as it would be on the network.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use block::Slice;
use rustix::net::SocketAddrUnix;

use crate::{Address, Fd};

/// Datagrams of one socket that wait until the kernel has room. Over it `send_datagram` refuses.
pub(crate) const WAITING_MAX: usize = 1024;

/// Where a datagram came from, and where its answer goes.
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
    /// Nobody who could be answered.
    pub const NOWHERE: Self = Self(Place::Nowhere);

    /// Where a socket with this address is.
    ///
    /// # Errors
    /// When a path is too long for a Unix socket.
    pub fn of(address: &Address) -> io::Result<Self> {
        Ok(Self(match address {
            Address::Internet(address) => Place::Internet(*address),
            Address::Unix(path) => Place::Unix(SocketAddrUnix::new(path)?),
        }))
    }

    /// The host and port, when it is on the network.
    #[must_use]
    pub const fn internet(&self) -> Option<SocketAddr> {
        match self.0 {
            Place::Internet(address) => Some(address),
            Place::Unix(_) | Place::Nowhere => None,
        }
    }

    /// The path, when it is a Unix socket that has one.
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
    /// The kernel may have datagrams for us.
    pub(crate) readable: bool,
    /// The kernel may have room for ours.
    pub(crate) writable: bool,
    /// It is in the list of sockets to receive from.
    pub(crate) ready: bool,
    /// It is in the list of sockets to send for.
    pub(crate) dirty: bool,
    pub(crate) waiting: VecDeque<(Origin, Slice)>,
}

impl Datagrams {
    pub(crate) const fn new(fd: Fd) -> Self {
        let waiting = VecDeque::new();
        Self { fd, readable: false, writable: true, ready: false, dirty: false, waiting }
    }
}
