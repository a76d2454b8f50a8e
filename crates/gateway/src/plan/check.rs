//! The settings of checks, with where they go.

use std::time::Duration;

/// How the workers of a pool are looked at while nobody asks them.
#[derive(Clone, Debug)]
pub(crate) struct CheckPlan {
    pub(crate) probe: ProbePlan,
    /// Where the servers are connected to for it, by place; none where workers have no address.
    pub(crate) addresses: Vec<event::Address>,
    /// What the workers are called, by place, where they have names.
    pub(crate) names: Vec<String>,
    /// The port that is connected to in place of theirs.
    pub(crate) port: Option<u16>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

impl CheckPlan {
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
pub(crate) enum ProbePlan {
    Tcp,
    Http(HttpProbePlan),
    Line { send: String, expect: String },
    Program(Box<spawn::Command>),
}

/// A request of HTTP and what a good reply is.
#[derive(Clone, Debug)]
pub(crate) struct HttpProbePlan {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) host: Option<String>,
    pub(crate) status: (u16, u16),
    pub(crate) body: Option<String>,
}

/// What `check` says, of workers with these addresses; and what of it is the pool's.
pub(super) fn check(
    check: settings::Check,
    servers: &[(event::Address, String)],
    to: &mut pool::HealthSettings,
) -> CheckPlan {
    let settings::Check { probe, interval, timeout, rise, fall, checked_first, port } = check;
    *to = pool::HealthSettings { rise, fall, checked_first, checked: true, ..*to };
    CheckPlan {
        probe: match probe {
            settings::Probe::Tcp => ProbePlan::Tcp,
            settings::Probe::Http(http) => {
                let settings::HttpProbe { method, path, host, status, body } = http;
                ProbePlan::Http(HttpProbePlan { method, path, host, status, body })
            }
            settings::Probe::Line { send, expect } => ProbePlan::Line { send, expect },
            settings::Probe::Program(command) => {
                let (program, arguments) = match command.split_first() {
                    Some((program, arguments)) => (program.clone(), arguments.to_vec()),
                    None => (String::new(), Vec::new()),
                };
                let command = spawn::Command { program, arguments, ..spawn::Command::default() };
                ProbePlan::Program(Box::new(command))
            }
        },
        addresses: servers.iter().map(|(address, _)| check_address(address, port)).collect(),
        port,
        names: servers.iter().map(|(_, name)| name.clone()).collect(),
        interval,
        timeout,
    }
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
