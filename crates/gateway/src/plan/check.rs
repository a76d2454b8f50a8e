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
///
/// A program of a check starts from `program`: as the programs of the pool, where it has any, as far as their
/// user and environment are concerned.
pub(super) fn check(
    check: settings::Check,
    program: spawn::Command,
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
            settings::Probe::Program { command, user, group } => {
                let mut started = program;
                if let Some((program, arguments)) = command.split_first() {
                    (started.program, started.arguments) = (program.clone(), arguments.to_vec());
                }
                let bounds = &mut started.bounds;
                // The groups of another user are its own.
                bounds.group = group.or_else(|| bounds.group.take().filter(|_| user.is_none()));
                bounds.user = user.or_else(|| bounds.user.take());
                ProbePlan::Program(Box::new(started))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn command(user: Option<&str>, group: Option<&str>) -> spawn::Command {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let probe = settings::Probe::Program {
            command: vec!["check.sh".to_owned(), "now".to_owned()],
            user: owned(user),
            group: owned(group),
        };
        let of_pool = spawn::Command {
            env: vec![("A".to_owned(), "b".to_owned())],
            env_clear: true,
            bounds: spawn::Bounds {
                user: Some("web".to_owned()),
                group: Some("www".to_owned()),
                no_new_privs: true,
                ..spawn::Bounds::default()
            },
            ..spawn::Command::default()
        };
        let second = Duration::from_secs(1);
        let settings = settings::Check {
            probe,
            interval: second,
            timeout: second,
            rise: 1,
            fall: 1,
            checked_first: false,
            port: None,
        };
        let plan = check(settings, of_pool, &[], &mut pool::HealthSettings::default());
        let ProbePlan::Program(command) = plan.probe else { panic!("it runs a program") };
        *command
    }

    #[test]
    fn a_program_of_a_check_runs_as_the_programs_of_its_pool_do() {
        let found = command(None, None);
        assert_eq!(
            (found.program.as_str(), found.arguments.as_slice()),
            ("check.sh", ["now".to_owned()].as_slice())
        );
        assert!(found.env_clear && found.bounds.no_new_privs);
        assert_eq!(found.env, [("A".to_owned(), "b".to_owned())]);
        let who = |user, group| {
            let spawn::Bounds { user, group, .. } = command(user, group).bounds;
            (user.unwrap_or_default(), group.unwrap_or_default())
        };
        let pair = |user: &str, group: &str| (user.to_owned(), group.to_owned());
        assert_eq!(who(None, None), pair("web", "www"));
        assert_eq!(who(Some("check"), None), pair("check", ""));
        assert_eq!(who(None, Some("ops")), pair("web", "ops"));
        assert_eq!(who(Some("check"), Some("ops")), pair("check", "ops"));
    }
}
