//! How the workers of a pool are checked.

use std::time::Duration;

/// How the workers of a pool are looked at while nobody asks them.
#[derive(Clone, Debug)]
pub(crate) struct CheckConfig {
    pub(crate) probe: ProbeConfig,
    /// Where the servers are connected to for it, by place; none where workers have no address.
    pub(crate) addresses: Vec<event::Address>,
    /// What the workers are called, by place, where they have names.
    pub(crate) names: Vec<String>,
    /// The port that is connected to in place of theirs.
    pub(crate) port: Option<u16>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

impl CheckConfig {
    /// Puts the addresses into the order of workers that have these names at their places. Where
    /// nobody of a name is in the plan, its worker is one that leaves, and any will do.
    pub(crate) fn arrange(&mut self, names: &[Option<String>]) {
        let of = |name: &Option<String>| {
            let found = self.names.iter().position(|other| Some(other) == name.as_ref());
            let place = found.unwrap_or(0);
            Some((self.addresses.get(place)?.clone(), self.names.get(place)?.clone()))
        };
        let arranged: Vec<_> = names.iter().filter_map(of).collect();
        (self.addresses, self.names) = arranged.into_iter().unzip();
    }
}

/// What one check does.
#[derive(Clone, Debug)]
pub(crate) enum ProbeConfig {
    Tcp,
    Http(HttpProbeConfig),
    Line { send: String, expect: String },
    Program(Box<spawn::Command>),
}

/// A request of HTTP and what a good reply is.
#[derive(Clone, Debug)]
pub(crate) struct HttpProbeConfig {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) host: Option<String>,
    pub(crate) status: (u16, u16),
    pub(crate) body: Option<String>,
}

/// Where a server of this address is connected to for a check.
pub(crate) fn check_address(address: &event::Address, port: Option<u16>) -> event::Address {
    match (address, port) {
        (event::Address::Internet(address), Some(port)) => {
            let mut address = *address;
            address.set_port(port);
            event::Address::Internet(address)
        }
        (address, _) => address.clone(),
    }
}
