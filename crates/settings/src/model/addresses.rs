//! Whom a listener takes, by address, and how much of each.

use super::address::Network;

/// Whom a listener takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Only these, unless it is empty.
    pub allow: Vec<Network>,
    /// None of these, also where `allow` has them.
    pub deny: Vec<Network>,
    /// What each of them may do; none: all that the listener may.
    pub limits: Option<AddressLimits>,
}

impl Addresses {
    /// Whether clients of this address are taken.
    #[must_use]
    pub fn admit(&self, address: std::net::IpAddr) -> bool {
        let among = |networks: &[Network]| networks.iter().any(|it| it.contains(address));
        !among(&self.deny) && (self.allow.is_empty() || among(&self.allow))
    }
}

/// What one address may do at a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressLimits {
    /// Connections at once.
    pub connections: Option<u32>,
    /// New connections.
    pub connects: Option<Rate>,
    /// Requests.
    pub requests: Option<Rate>,
    /// IPv4 addresses that begin with so many equal bits count as one.
    pub ipv4_bits: u8,
    /// The same for IPv6.
    pub ipv6_bits: u8,
    /// Addresses that are remembered.
    pub entries: u32,
}

/// So many a second, and so many at once after a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// A second.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}
