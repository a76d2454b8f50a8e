//! The configuration of active health checks.

use std::time::Duration;

use exchange::{ByWorker, WorkerIndex};

/// The active health checks of a pool.
#[derive(Clone, Debug)]
pub struct CheckConfig {
    /// What one check does.
    pub probe: ProbeConfig,
    /// The addresses of the workers, by their index; empty if they have none.
    pub addresses: ByWorker<event::Address>,
    /// The names of the workers, by their index; empty if they have none.
    pub names: ByWorker<String>,
    /// The port for checks, instead of that of the worker.
    pub port: Option<u16>,
    /// The time between two checks of a worker.
    pub interval: Duration,
    /// The time in which a check must complete.
    pub timeout: Duration,
}

impl CheckConfig {
    /// Sorts the addresses by the index of the workers with these names. A name that is not configured belongs to a
    /// worker that is being removed; any address is assigned to it.
    pub(crate) fn arrange(&mut self, names: &[Option<String>]) {
        let of = |name: &Option<String>| {
            let found = self.names.iter().find(|(_, other)| Some(*other) == name.as_ref());
            let worker = found.map_or(WorkerIndex::new(0), |(worker, _)| worker);
            Some((self.addresses.get(worker)?.clone(), self.names.get(worker)?.clone()))
        };
        let (addresses, names): (Vec<_>, Vec<_>) = names.iter().filter_map(of).unzip();
        self.addresses = addresses.into_iter().collect();
        self.names = names.into_iter().collect();
    }
}

/// What one check does.
#[derive(Clone, Debug)]
pub enum ProbeConfig {
    /// Opens a TCP connection.
    Tcp,
    /// Sends an HTTP request.
    Http(HttpProbeConfig),
    /// Sends a line, and expects a reply line.
    Line {
        /// The line to send.
        send: String,
        /// The text with which the reply must start; empty: any reply is good.
        expect: String,
    },
    /// Runs a program of the operator, whose exit code is the result.
    Program(Box<spawn::Command>),
}

/// An HTTP health check.
#[derive(Clone, Debug)]
pub struct HttpProbeConfig {
    /// The method of the request.
    pub method: String,
    /// The path and query of the request.
    pub path: String,
    /// The `Host` of the request; `None`: the address of the server.
    pub host: Option<String>,
    /// The inclusive range of good statuses.
    pub status: (u16, u16),
    /// The text that the body must contain.
    pub body: Option<String>,
}

/// Returns the address for checks of a server, with `port` if one is configured.
pub fn check_address(address: &event::Address, port: Option<u16>) -> event::Address {
    match (address, port) {
        (event::Address::Internet(address), Some(port)) => {
            let mut address = *address;
            address.set_port(port);
            event::Address::Internet(address)
        }
        (address, _) => address.clone(),
    }
}
