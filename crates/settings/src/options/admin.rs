// tidy: table
//! The options of the admin address.

use super::declare::{any, count, time};
use super::shape::{Default, Kind, Opt};

use Default::{Is, None as Nothing, Required};

pub(super) const ADMIN: &[Opt] = &[
    any(
        "listen",
        Kind::Address,
        Required,
        "Where metrics, status and commands are served. On a Unix socket, root, the daemon's user and \
         members of `group` have full access. On a loopback address, requests without a token may \
         only read. Any other address requires `token`.",
    ),
    any(
        "token",
        Kind::Secret,
        Nothing,
        "The bearer token for full access, as `env:NAME` or `file:PATH`; at least 16 characters. \
         Without it, a daemon on a loopback address creates a random token at startup, in a file that \
         only its user can read.",
    ),
    any(
        "group",
        Kind::Text,
        Nothing,
        "The group, by name or number, whose members have full access through the Unix socket.",
    ),
    any(
        "allowed_hosts",
        Kind::Names,
        Nothing,
        "Host names accepted in `Host`, in addition to `localhost`, loopback addresses and the \
         address that the client connected to.",
    ),
    any(
        "max_connections",
        count(1, 10_000),
        Is("64"),
        "Maximum number of connections; clients without a valid token have at most half of them.",
    ),
    any(
        "header_timeout",
        time(),
        Is("10s"),
        "Maximum time to receive the headers of a request, including idle time before it.",
    ),
];
