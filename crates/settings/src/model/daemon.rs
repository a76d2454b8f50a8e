//! The daemon as a whole, and its admin address.

use std::time::Duration;

use crate::options::kinds::GIB;
use crate::options::{Reload, Value, options, read_as, settings, words};
use crate::values::Address;
use crate::values::Secret;

options! {
    /// Settings of the daemon as a whole (`[daemon]`).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Daemon of Any reload Live {
        /// Maximum duration of a drain. When it expires, the remaining requests are ended.
        drain_timeout: Duration as time_or_zero = "30s", former(&["drain"]);
        /// How long an HTTP connection without a request stays open during a drain, counted from its last activity. A
        /// request that arrives in this time is served with `Connection: close`.
        drain_keepalive_timeout: Duration as time_or_zero = "1s";
        /// Bytes of memory that queues, output, held replies, messages between shards and read buffers may occupy
        /// together. Above it, new requests are rejected, then connections are closed. Default: 80 % of the limit of
        /// the control group, or half of the memory if there is no limit.
        memory_max: Option<usize> as size(1 << 20, 16_384 * GIB);
        /// Kernel interface with which the event loops wait.
        event: EventKernel as word = "auto", reload(Reload::Restart);
        /// Number of shards: event loops, each on its own thread; `auto`: as many as there are processors for the
        /// daemon. Clients are distributed among them. Every limit holds for all shards together.
        shards: Shards as count_or_auto(1, 64) = "1", reload(Reload::Restart);
    }
}

/// The number of event loops of a daemon, each on its own thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shards {
    /// As many as there are processors for the daemon.
    Auto,
    /// This number, 1 to 64.
    Count(u32),
}

settings! {
    Shards, read_as::Number:
        Some(Value::Number(0)) => Self::Auto,
        Some(Value::Number(count)) => Self::Count(u32::try_from(*count).expect("the row has a range"));
}

words! {
    /// The kernel interface with which the event loops wait.
    pub enum EventKernel {
        /// The best one of this system: epoll.
        Auto = "auto",
        /// Idle connections cost nothing.
        Epoll = "epoll",
        /// Every iteration of the loop examines every connection.
        Poll = "poll",
        /// As `poll`. A client that leaves while its connection is not read is noticed within a second.
        Select = "select",
    }
}

options! {
    /// The admin address (`[admin]`).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Admin of Any reload Restart {
        /// Address at which metrics, status and commands are served. On a Unix socket, root, the daemon's user and
        /// members of `group` have full access. On a loopback address, requests without a token may only read. Any
        /// other address requires `token`.
        listen: Address as address = required;
        /// The bearer token for full access, as `env:NAME` or `file:PATH`; at least 16 characters. Without it, a
        /// daemon on a loopback address creates a random token at startup, in a file that only its user can read.
        token: Option<Secret> as secret;
        /// The group, by name or number, whose members have full access through the Unix socket.
        group: Option<String> as name;
        /// Host names accepted in `Host`, in addition to `localhost`, loopback addresses and the address that the
        /// client connected to.
        allowed_hosts: Vec<String> as names;
        /// Maximum number of authenticated connections. Clients without a valid token have a separate limit.
        max_connections: u32 as count(1, 10_000) = "64";
        /// Maximum time to receive the headers of a request, including idle time before it.
        header_timeout: Duration as time = "10s";
    }
}
