//! Addresses of sockets and of networks.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// An address to listen on or to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IPv4 or IPv6 address with a port. With port 0 the system chooses a port.
    Internet(SocketAddr),
    /// A Unix socket, written `unix:/path`.
    Unix(PathBuf),
    /// A listening socket that the service manager passes under this name, as systemd does; written `fd:NAME`.
    Inherited(String),
    /// A host name, which is resolved to an address. Only for connecting.
    Named(HostName),
}

/// A host name, and a port from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName {
    /// The name, in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Address {
    /// Whether only this machine can reach the address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Internet(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
            Self::Inherited(_) | Self::Named(_) => false,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Inherited(name) => write!(f, "fd:{name}"),
            Self::Named(name) => name.fmt(f),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Addresses that share a prefix, written `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The first address of the network.
    pub address: IpAddr,
    /// The length of the prefix, in bits.
    pub bits: u8,
}

/// The length of the prefix of all IPv4-mapped IPv6 addresses (`::ffff:0:0/96`), in bits.
const MAPPED_BITS: u8 = 96;

impl Network {
    /// Whether the network contains an address. An IPv4-mapped IPv6 address counts as an IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let number = |address: IpAddr| match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, true),
            IpAddr::V6(address) => (u128::from(address), false),
        };
        let network = self.canonical();
        let (ours, theirs) = (number(network.address), number(address.to_canonical()));
        let differ = ours.0 ^ theirs.0;
        ours.1 == theirs.1 && (network.bits == 0 || differ >> (128 - u32::from(network.bits)) == 0)
    }

    /// Returns the same network. A network of IPv4-mapped addresses (`::ffff:10.0.0.0/104`) is converted to an IPv4
    /// network.
    #[must_use]
    pub const fn canonical(self) -> Self {
        match (self.address.to_canonical(), self.address) {
            (IpAddr::V4(address), IpAddr::V6(_)) if self.bits >= MAPPED_BITS => {
                Self { address: IpAddr::V4(address), bits: self.bits - MAPPED_BITS }
            }
            _ => self,
        }
    }
}
