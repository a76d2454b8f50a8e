//! Servers as workers.

use std::time::Duration;

use crate::options::{Opt, Options, Setting, Value, options, read_as};
use crate::values::Address;

options! {
    /// Servers that speak HTTP.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Servers of Servers reload Live {
        /// Servers that speak HTTP, as tables or as addresses or names. Each server is a worker.
        servers: Vec<Server> as list("address");
        /// Maximum number of concurrent requests of each server; each uses a connection.
        concurrent_max("upstream.max_concurrent"): u32 as count(1, 65_535) = "1000", former(&["server_requests_max"]);
        /// Maximum time to connect to a server.
        connect_timeout: Duration as time = "5s";
        /// Maximum gap between two reads of a response.
        read_timeout: Duration as time = "30s", former(&["between"]);
        /// Maximum time for a request, including its whole response.
        request_timeout: Duration as time_or_off = "off", former(&["total"]);
        /// How long an idle connection to a server is kept open for the next request. Choose it below the server's own
        /// limit: Node.js closes idle connections after 5 s.
        keepalive_timeout: Duration as time = "4s", former(&["keep"]);
        /// TCP keepalive: after this time without traffic the kernel probes the server, and the connection is closed if
        /// there is no answer within as long again.
        tcp_keepalive_interval: Duration as time_or_off = "2m", former(&["tcp_keepalive"]);
        /// Interval at which the host name of a server is resolved again.
        resolve_interval: Duration as seconds = "30s", former(&["resolve"]);
    }
}

options! {
    /// One server.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Server of Any reload Live {
        /// Address of the server, like `10.0.0.1:8000`, `app.example:8000` or `unix:/run/app.sock`. A Unix socket is
        /// refused if another user can have chosen it; `check` names the reason.
        address: Address as server = required;
        /// Share of requests relative to the other servers; 0: only requests of clients with session affinity.
        weight: u32 as count(0, 256) = "1";
        /// Maximum number of concurrent requests of this server. Default: `upstream.max_concurrent`.
        concurrent_max("max_concurrent"): Option<u32> as count(1, 65_535), former(&["slots"]);
        /// Whether the server serves only when no other server can.
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
