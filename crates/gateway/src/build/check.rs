//! Builds the settings of health checks, with their addresses.

use backend::health_checks::{CheckConfig, HttpProbeConfig, ProbeConfig, check_address};

/// Builds the health checks of workers with these addresses, and sets the part of the settings that the pool uses.
///
/// `program` is the base of the command of a check: it has the user and the environment of the pool's programs, if the
/// pool has programs.
pub(super) fn check(
    check: settings::Check,
    program: spawn::Command,
    servers: &[(event::Address, String)],
    to: &mut pool::HealthSettings,
) -> CheckConfig {
    let settings::Check { probe, interval, timeout, rise, fall, checked_first, port } = check;
    *to = pool::HealthSettings { rise, fall, checked_first, checked: true, ..*to };
    CheckConfig {
        probe: match probe {
            settings::Probe::Tcp => ProbeConfig::Tcp,
            settings::Probe::Http(http) => {
                let settings::HttpProbe { method, path, host, status, body } = http;
                ProbeConfig::Http(HttpProbeConfig { method, path, host, status, body })
            }
            settings::Probe::Line { send, expect } => ProbeConfig::Line { send, expect },
            settings::Probe::Program { command, user, group } => {
                let mut started = program;
                if let Some((program, arguments)) = command.split_first() {
                    (started.program, started.arguments) = (program.clone(), arguments.to_vec());
                }
                let bounds = &mut started.bounds;
                // A different user has its own groups.
                bounds.group = group.or_else(|| bounds.group.take().filter(|_| user.is_none()));
                bounds.user = user.or_else(|| bounds.user.take());
                if bounds.user.is_some() {
                    let io = spawn::Io::Socket;
                    started.wiring = spawn::Wiring { io, log: io, ..started.wiring };
                }
                ProbeConfig::Program(Box::new(started))
            }
        },
        addresses: servers.iter().map(|(address, _)| check_address(address, port)).collect(),
        port,
        names: servers.iter().map(|(_, name)| name.clone()).collect(),
        interval,
        timeout,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        let config = check(settings, of_pool, &[], &mut pool::HealthSettings::default());
        let ProbeConfig::Program(command) = config.probe else { panic!("it runs a program") };
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
        assert_eq!((found.wiring.io, found.wiring.log), (spawn::Io::Socket, spawn::Io::Socket));
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
