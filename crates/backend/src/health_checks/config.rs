//! How the workers of a pool are checked.

use std::time::Duration;

/// How the workers of a pool are looked at while nobody asks them.
#[derive(Clone, Debug)]
pub struct CheckConfig {
    pub probe: ProbeConfig,
    /// Where the servers are connected to for it, by place; none where workers have no address.
    pub addresses: Vec<event::Address>,
    /// What the workers are called, by place, where they have names.
    pub names: Vec<String>,
    /// The port that is connected to in place of theirs.
    pub port: Option<u16>,
    pub interval: Duration,
    pub timeout: Duration,
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
pub enum ProbeConfig {
    Tcp,
    Http(HttpProbeConfig),
    Line { send: String, expect: String },
    Program(Box<spawn::Command>),
}

/// A request of HTTP and what a good reply is.
#[derive(Clone, Debug)]
pub struct HttpProbeConfig {
    pub method: String,
    pub path: String,
    pub host: Option<String>,
    pub status: (u16, u16),
    pub body: Option<String>,
}

/// Where a server of this address is connected to for a check.
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
