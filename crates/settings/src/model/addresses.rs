//! Which client addresses a listener accepts, and the limits of each address.

use crate::options::{Group, Needs, Reload, Value, options, read_as, settings};
use crate::values::Network;

options! {
    /// Which client addresses a listener accepts.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Addresses of Any reload Live {
        /// Addresses or networks whose clients are accepted; all others are refused. Without it, all are accepted.
        allow: Vec<Network> as names, needs(Needs::ClientAddress);
        /// Addresses or networks whose clients are refused. It has precedence over `allow`.
        deny: Vec<Network> as names, needs(Needs::ClientAddress);
        /// Limits of all clients of one address together. Without it, only the limits of the listener apply.
        limits("per_address"): Option<AddressLimits> as table, reload(Reload::RestartIf("it is new, or removed, and there are several shards")), needs(Needs::ClientAddress);
    }
}

settings! {
    Vec<Network>, read_as::Texts: Some(Value::Texts(texts)) => {
        texts.iter().filter_map(|text| crate::values::network(text).ok()).collect()
    }, None => Self::new();
}

impl Addresses {
    /// Whether clients of this address are accepted.
    #[must_use]
    pub fn admit(&self, address: std::net::IpAddr) -> bool {
        let among = |networks: &[Network]| networks.iter().any(|it| it.contains(address));
        !among(&self.deny) && (self.allow.is_empty() || among(&self.allow))
    }
}

const RATE_MAX: u64 = 1_000_000;

options! {
    /// Limits of one address at a listener.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AddressLimits of Any reload Live {
        /// Maximum number of concurrent connections.
        connections: Option<u32> as count(1, RATE_MAX);
        /// The rate of new connections.
        connects: Option<Rate> => connects {
            /// Maximum number of new connections per second.
            connects: Option<u32> as count(1, RATE_MAX);
            /// Maximum number of new connections in a burst after an idle time. Default: the value of `connects`.
            connects_burst: Option<u32> as count(1, RATE_MAX);
        };
        /// The rate of requests.
        requests: Option<Rate> => requests {
            /// Maximum number of requests per second.
            requests: Option<u32> as count(1, RATE_MAX);
            /// Maximum number of requests in a burst after an idle time. Default: the value of `requests`.
            requests_burst: Option<u32> as count(1, RATE_MAX);
        };
        /// Prefix length of IPv4 addresses, in bits. Addresses with the same prefix count as one address.
        ipv4_bits: u8 as count(0, 32) = "32";
        /// Prefix length of IPv6 addresses, in bits. Usually one customer has all addresses with the same 64-bit
        /// prefix.
        ipv6_bits: u8 as count(0, 128) = "64";
        /// Maximum number of addresses in the table. Above it, the entry that has been idle longest among addresses
        /// without a connection is removed, with its usage.
        entries: u32 as count(1, 100_000_000) = "65536";
        /// Whether the daemons of a cluster count together what an address uses at their listeners of this name. They
        /// report it to each other twice per second, so the limits are kept approximately.
        shared: bool as switch = "false", reload(Reload::Restart);
    }
}

/// A rate per second, and the burst that is allowed after an idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The number per second.
    pub per_second: u32,
    /// The size of a burst.
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
