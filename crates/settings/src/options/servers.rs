// tidy: table
//! The options of pools of servers.

use std::time::Duration;

use super::declare::{DAY, any, count, time, time_or_zero};
use super::shape::{Default, Kind, Of, Opt};

use Default::{Is, None as Nothing, Required};

const fn servers(name: &'static str, kind: Kind, default: Default, about: &'static str) -> Opt {
    Opt::new(name, kind, default, Of::Servers, about)
}

/// What only a pool of servers has.
pub(super) const SERVERS: &[Opt] = &[
    servers(
        "servers",
        Kind::List(SERVER, "address"),
        Nothing,
        "Servers that speak HTTP, as tables or as addresses or names alone; each is a worker.",
    ),
    servers(
        "server_requests_max",
        count(1, 65_535),
        Is("1000"),
        "Requests that one server has at once; each has a connection of its own.",
    ),
    servers("connect", time(), Is("5s"), "How long a connection to a server may take."),
    servers("between", time(), Is("30s"), "How long nothing may come of a reply that has begun."),
    servers(
        "total",
        time_or_zero(),
        Is("0s"),
        "How long a request may take in all, its reply included; `0s`: as long as it goes on.",
    ),
    servers(
        "keep",
        time(),
        Is("60s"),
        "How long a connection to a server is kept for the next request.",
    ),
    servers(
        "tcp_keepalive",
        time_or_zero(),
        Is("2m"),
        "A server that says nothing for so long is asked by the kernel whether it is there, and has reset the \
         connection if it does not answer in as long again; `0s`: never.",
    ),
    servers(
        "resolve",
        Kind::Time { min: Duration::from_secs(1), max: DAY },
        Is("30s"),
        "How often the address of a server that has a name is looked up.",
    ),
];

const SERVER: &[Opt] = &[
    any(
        "address",
        Kind::Server,
        Required,
        "Where it listens, like `10.0.0.1:8000`, `app.example:8000` or `unix:/run/app.sock`.",
    ),
    any(
        "weight",
        count(0, 256),
        Is("1"),
        "How much it gets compared with the others; 0: nothing new.",
    ),
    any(
        "slots",
        count(1, 65_535),
        Nothing,
        "Requests that it has at once; without it, as many as `server_requests_max` says.",
    ),
    any("backup", Kind::Switch, Is("false"), "It serves only when no other can."),
];
