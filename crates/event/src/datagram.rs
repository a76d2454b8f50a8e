//! One datagram socket, with its waiting datagrams and their receivers.
//!
//! One received datagram is one event, and one call sends one datagram. Datagrams are neither joined nor split, and
//! none is stored after its event: a datagram that the handler does not use is lost, as it could be on the network.
//!
//! The sender of a Unix datagram chooses its address, and may replace the file there by a link to a socket that only
//! this process may send to. So a reply is sent only to a socket that belongs to the user of the sender.

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
    /// A Unix socket, with the user to whom its file must belong; `None`: any file, or a name without a file.
    Unix(SocketAddrUnix, Option<u32>),
    /// A Unix socket without a name: nothing can be sent to it.
    Nowhere,
}

impl Origin {
    /// A sender to which nothing can be sent.
    pub const NOWHERE: Self = Self(Place::Nowhere);

    /// Returns the origin for a socket with this address. The caller trusts the address: a path may be a link, and the
    /// socket may belong to any user.
    ///
    /// # Errors
    /// If a path is too long for a Unix socket.
    pub fn of(address: &Address) -> io::Result<Self> {
        Ok(Self(match address {
            Address::Internet(address) => Place::Internet(*address),
            Address::Unix(path) => Place::Unix(SocketAddrUnix::new(path)?, None),
        }))
    }

    /// The IP address and port; `None` if it is not on the network.
    #[must_use]
    pub const fn internet(&self) -> Option<SocketAddr> {
        match self.0 {
            Place::Internet(address) => Some(address),
            Place::Unix(..) | Place::Nowhere => None,
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
            Place::Unix(address, _) => Some(address),
            Place::Internet(_) | Place::Nowhere => None,
        }
    }

    /// The user to whom the file of a Unix socket must belong.
    pub(crate) const fn owner(&self) -> Option<u32> {
        match &self.0 {
            Place::Unix(_, owner) => *owner,
            Place::Internet(_) | Place::Nowhere => None,
        }
    }

    /// Returns the origin of a datagram from a Unix socket of this user. Nothing can be sent to a socket without a name,
    /// with a path that is relative to the directory of the sender, or with a path and an unknown user. A name without a
    /// file (an abstract address) has no owner, and every process may send to it.
    pub(crate) fn of_sender(address: SocketAddrUnix, user: Option<u32>) -> Self {
        Self(match (address.path_bytes(), user) {
            (None, _) if address.is_unnamed() => Place::Nowhere,
            (None, _) => Place::Unix(address, None),
            (Some([b'/', ..]), Some(user)) => Place::Unix(address, Some(user)),
            (Some(_), _) => Place::Nowhere,
        })
    }
}

impl From<SocketAddr> for Origin {
    fn from(address: SocketAddr) -> Self {
        Self(Place::Internet(address))
    }
}

/// The kind of a datagram socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind {
    /// UDP.
    Internet,
    /// A Unix socket, which also receives the user of each sender.
    Unix {
        /// The file of the socket, to which it sends nothing; `None` if it has no address, or its file is not known.
        file: Option<FileId>,
    },
}

/// A file, identified independently of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// The device that contains the file.
    pub device: u64,
    /// The number of the file on the device.
    pub inode: u64,
}

#[derive(Debug)]
pub(crate) struct Datagrams {
    pub(crate) fd: Fd,
    /// Known after the kernel has prepared the socket, before anything is received.
    pub(crate) kind: DatagramKind,
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
        Self {
            fd,
            kind: DatagramKind::Internet,
            readable: false,
            writable: true,
            ready: false,
            dirty: false,
            waiting: VecDeque::new(),
        }
    }
}
