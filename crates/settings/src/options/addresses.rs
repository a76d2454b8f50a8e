// tidy: table
//! The options of a listener that go by a client's address.

use super::declare::{any, count};
use super::shape::{Default, Opt};

use Default::{Is, None as Nothing};

const RATE_MAX: u64 = 1_000_000;

pub(super) const PER_ADDRESS: &[Opt] = &[
    any("connections", count(1, RATE_MAX), Nothing, "Connections at once."),
    any("connects", count(1, RATE_MAX), Nothing, "New connections a second."),
    any(
        "connects_burst",
        count(1, RATE_MAX),
        Nothing,
        "New connections at once after a rest; without it as many as in a second.",
    ),
    any("requests", count(1, RATE_MAX), Nothing, "Requests a second."),
    any(
        "requests_burst",
        count(1, RATE_MAX),
        Nothing,
        "Requests at once after a rest; without it as many as in a second.",
    ),
    any(
        "ipv4_bits",
        count(0, 32),
        Is("32"),
        "IPv4 addresses that begin with so many equal bits count as one.",
    ),
    any(
        "ipv6_bits",
        count(0, 128),
        Is("64"),
        "The same for IPv6, where one customer has all that begin with the same 64.",
    ),
    any(
        "entries",
        count(1, 100_000_000),
        Is("65536"),
        "Addresses that are remembered; beyond it the one without a connection that rested longest \
         is forgotten, with what it had used.",
    ),
];
