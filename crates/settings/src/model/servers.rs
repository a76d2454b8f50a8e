//! Servers as workers, as they are configured.

use std::time::Duration;

use crate::options::{Opt, Options, Setting, Value, options, read_as};
use crate::values::Address;

options! {
    /// Servers that speak HTTP.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Servers of Servers reload Live {
        /// Servers that speak HTTP, as tables or as addresses or names alone; each is a worker.
        servers: Vec<Server> as list("address");
        /// Requests that one server has at once; each has a connection of its own.
        requests_max("server_requests_max"): u32 as count(1, 65_535) = "1000";
        /// How long a connection to a server may take.
        connect: Duration as time = "5s";
        /// How long nothing may come of a reply that has begun.
        between: Duration as time = "30s";
        /// How long a request may take in all, its reply included; `0s`: as long as it goes on.
        total: Duration as time_or_zero = "0s";
        /// How long a connection to a server is kept for the next request.
        keep: Duration as time = "60s";
        /// A server that says nothing for so long is asked by the kernel whether it is there, and has reset the
        /// connection if it does not answer in as long again; `0s`: never.
        tcp_keepalive: Duration as time_or_zero = "2m";
        /// How often the address of a server that has a name is looked up.
        resolve: Duration as seconds = "30s";
    }
}

options! {
    /// One server.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Server of Any reload Live {
        /// Where it listens, like `10.0.0.1:8000`, `app.example:8000` or `unix:/run/app.sock`.
        address: Address as server = required;
        /// How much it gets compared with the others; 0: nothing new.
        weight: u32 as count(0, 256) = "1";
        /// Requests that it has at once; without it, as many as `server_requests_max` says.
        slots: Option<u32> as count(1, 65_535);
        /// It serves only when no other can.
        backup: bool as switch = "false";
    }
}

impl Setting for Vec<Server> {
    type As = read_as::Tables;
    const OPTIONS: &'static [Opt] = Server::OPTIONS;

    fn of(value: Option<&Value>) -> Self {
        match value {
            Some(Value::Groups(groups)) => groups.iter().map(Server::fill).collect(),
            other => unreachable!("the table gives servers to {other:?}"),
        }
    }
}
