//! Whom a listener takes, by address, and how much of each.

use crate::options::{Group, Reload, Value, options, read_as, settings};
use crate::values::Network;

options! {
    /// Whom a listener takes.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Addresses of Any reload Live {
        /// Addresses or networks whose clients are taken, and no others; without it all are.
        allow: Vec<Network> as names;
        /// Addresses or networks whose clients are refused, also those that `allow` has.
        deny: Vec<Network> as names;
        /// What the clients of one address may do together; without it all that the listener may.
        limits("per_address"): Option<AddressLimits> as table, reload(Reload::RestartIf("it is new, or removed, and there are several shards"));
    }
}

settings! {
    Vec<Network>, read_as::Texts: Some(Value::Texts(texts)) => {
        texts.iter().filter_map(|text| crate::values::network(text).ok()).collect()
    }, None => Self::new();
}

impl Addresses {
    /// Whether clients of this address are taken.
    #[must_use]
    pub fn admit(&self, address: std::net::IpAddr) -> bool {
        let among = |networks: &[Network]| networks.iter().any(|it| it.contains(address));
        !among(&self.deny) && (self.allow.is_empty() || among(&self.allow))
    }
}

const RATE_MAX: u64 = 1_000_000;

options! {
    /// What one address may do at a listener.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AddressLimits of Any reload Live {
        /// Connections at once.
        connections: Option<u32> as count(1, RATE_MAX);
        /// New connections.
        connects: Option<Rate> => connects {
            /// New connections a second.
            connects: Option<u32> as count(1, RATE_MAX);
            /// New connections at once after a rest; without it as many as in a second.
            connects_burst: Option<u32> as count(1, RATE_MAX);
        };
        /// Requests.
        requests: Option<Rate> => requests {
            /// Requests a second.
            requests: Option<u32> as count(1, RATE_MAX);
            /// Requests at once after a rest; without it as many as in a second.
            requests_burst: Option<u32> as count(1, RATE_MAX);
        };
        /// IPv4 addresses that begin with so many equal bits count as one.
        ipv4_bits: u8 as count(0, 32) = "32";
        /// The same for IPv6, where one customer has all that begin with the same 64.
        ipv6_bits: u8 as count(0, 128) = "64";
        /// Addresses that are remembered; beyond it the one without a connection that rested longest is forgotten,
        /// with what it had used.
        entries: u32 as count(1, 100_000_000) = "65536";
    }
}

/// So many a second, and so many at once after a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// A second.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}

fn connects(group: &Group) -> Option<Rate> {
    let per_second = group.get("connects")?;
    Some(Rate { per_second, burst: group.get("connects_burst").unwrap_or(per_second) })
}

fn requests(group: &Group) -> Option<Rate> {
    let per_second = group.get("requests")?;
    Some(Rate { per_second, burst: group.get("requests_burst").unwrap_or(per_second) })
}
