//! Converts how a pool's programs are connected and restricted to the types of `spawn`.

use backend::programs::LaunchPolicy;

pub(super) fn policy(wiring: settings::Wiring, bounds: settings::Bounds) -> LaunchPolicy {
    let settings::Wiring { io, fds, unbuffer } = wiring;
    // A program of another user is not trusted to leave the daemon's end of a pipe alone.
    let has_user = bounds.user.is_some();
    let (io, log) = match io {
        settings::Io::Auto if has_user => (spawn::Io::Socket, spawn::Io::Socket),
        settings::Io::Auto | settings::Io::Pipe => (spawn::Io::Pipe, spawn::Io::Pipe),
        settings::Io::Socket if has_user => (spawn::Io::Socket, spawn::Io::Socket),
        settings::Io::Socket => (spawn::Io::Socket, spawn::Io::Pipe),
    };
    let wiring = spawn::Wiring {
        io,
        log,
        numbers: match fds {
            settings::Fds::Standard => spawn::DescriptorNumbers::Standard,
            settings::Fds::ThreeFour => spawn::DescriptorNumbers::ThreeFour,
        },
        unbuffer: match unbuffer {
            settings::Unbuffer::Off => spawn::Unbuffer::No,
            settings::Unbuffer::Stdbuf => spawn::Unbuffer::Stdbuf,
            settings::Unbuffer::Pty => spawn::Unbuffer::Pty,
        },
    };
    let settings::Bounds {
        env_clear,
        user,
        group,
        no_new_privs,
        limits,
        cpu_affinity: cpu,
        nice,
        cgroup,
    } = bounds;
    let bounds = spawn::Bounds {
        user,
        group,
        no_new_privs,
        limits: limits_of(limits),
        cpus: Vec::new(),
        nice: i32::try_from(nice).expect("the table allows 0 to 19"),
        cgroup: match cgroup {
            settings::Cgroup::Auto => spawn::Cgroup::Auto,
            settings::Cgroup::Off => spawn::Cgroup::Off,
            settings::Cgroup::Under(folder) => spawn::Cgroup::Under(folder),
        },
    };
    LaunchPolicy { env_clear, wiring, bounds, cpu }
}

fn limits_of(limits: settings::Limits) -> spawn::Limits {
    let settings::Limits {
        files,
        processes,
        core,
        cpu_time: cpu,
        memory,
        address_space,
        file_size,
        stack,
    } = limits;
    let cpu = cpu.map(|time| time.as_secs().max(1));
    spawn::Limits { files, processes, core, cpu, memory, address_space, file_size, stack }
}

/// Converts when programs are replaced although they have no fault.
pub(crate) fn recycling(recycle: settings::Recycle) -> pool::RecycleSettings {
    let settings::Recycle {
        requests_max: requests,
        age_max: age,
        memory_max: memory,
        jitter,
        share,
    } = recycle;
    pool::RecycleSettings { requests, age, memory, jitter, share }
}

#[cfg(test)]
mod tests {
    use exchange::WorkerIndex;
    use std::time::Duration;

    use settings::{Bounds, Cgroup, Fds, Io, Limits, Processors, Unbuffer, Wiring};

    use super::*;

    fn wiring(io: Io, fds: Fds, unbuffer: Unbuffer) -> spawn::Wiring {
        policy(Wiring { io, fds, unbuffer }, bounds()).wiring
    }

    fn bounds() -> Bounds {
        Bounds {
            env_clear: true,
            user: Some("nobody".to_owned()),
            group: Some("4".to_owned()),
            no_new_privs: true,
            limits: Limits {
                files: Some(1),
                processes: Some(2),
                core: Some(0),
                cpu_time: Some(Duration::from_millis(3500)),
                memory: Some(4),
                address_space: Some(5),
                file_size: Some(6),
                stack: Some(7),
            },
            cpu_affinity: Processors::List(vec![8, 9]),
            nice: 10,
            cgroup: Cgroup::Under("/groups".into()),
        }
    }

    const PIPES: Wiring = Wiring { io: Io::Pipe, fds: Fds::Standard, unbuffer: Unbuffer::Off };

    #[test]
    fn each_way_to_connect_a_program_is_its_own() {
        let plain = wiring(Io::Pipe, Fds::Standard, Unbuffer::Off);
        assert_eq!(plain.io, spawn::Io::Pipe);
        assert_eq!(plain.numbers, spawn::DescriptorNumbers::Standard);
        assert_eq!(plain.unbuffer, spawn::Unbuffer::No);
        let other = wiring(Io::Socket, Fds::ThreeFour, Unbuffer::Stdbuf);
        assert_eq!(other.io, spawn::Io::Socket);
        assert_eq!(other.numbers, spawn::DescriptorNumbers::ThreeFour);
        assert_eq!(other.unbuffer, spawn::Unbuffer::Stdbuf);
        let terminal = wiring(Io::Pipe, Fds::Standard, Unbuffer::Pty);
        assert_eq!(terminal.unbuffer, spawn::Unbuffer::Pty);
    }

    #[test]
    fn a_program_of_another_user_has_sockets() {
        use spawn::Io::{Pipe, Socket};
        for (io, own, of_user) in [
            (Io::Auto, (Pipe, Pipe), (Socket, Socket)),
            (Io::Pipe, (Pipe, Pipe), (Pipe, Pipe)),
            (Io::Socket, (Socket, Pipe), (Socket, Socket)),
        ] {
            let of = |user: Option<&str>| {
                let user = user.map(str::to_owned);
                let given = Wiring { io, ..PIPES };
                let wiring = policy(given, Bounds { user, ..bounds() }).wiring;
                (wiring.io, wiring.log)
            };
            assert_eq!((of(None), of(Some("nobody"))), (own, of_user), "{io:?}");
        }
    }

    #[test]
    fn a_program_is_held_to_all_that_its_pool_says() {
        let terms = policy(PIPES, bounds());
        assert!(terms.env_clear);
        let held = terms.bounds(WorkerIndex::new(0));
        assert_eq!((held.user.as_deref(), held.group.as_deref()), (Some("nobody"), Some("4")));
        assert!(held.no_new_privs);
        let limits = spawn::Limits {
            files: Some(1),
            processes: Some(2),
            core: Some(0),
            cpu: Some(3),
            memory: Some(4),
            address_space: Some(5),
            file_size: Some(6),
            stack: Some(7),
        };
        assert_eq!(held.limits, limits);
        assert_eq!((held.cpus, held.nice), (vec![8, 9], 10));
        assert_eq!(held.cgroup, spawn::Cgroup::Under("/groups".into()));
        for (cgroup, due) in
            [(Cgroup::Auto, spawn::Cgroup::Auto), (Cgroup::Off, spawn::Cgroup::Off)]
        {
            assert_eq!(
                policy(PIPES, Bounds { cgroup, ..bounds() }).bounds(WorkerIndex::new(0)).cgroup,
                due
            );
        }
    }

    #[test]
    fn processors_are_shared_out_by_the_index_of_a_program() {
        let at = |cpu: Processors, worker: u32| {
            let policy = policy(PIPES, Bounds { cpu_affinity: cpu, ..bounds() });
            policy.bounds(WorkerIndex::new(worker)).cpus
        };
        assert!(at(Processors::Any, 0).is_empty());
        let allowed = spawn::allowed_cpus();
        for (worker, processor) in (0..).zip([&allowed[..], &allowed].concat()) {
            assert_eq!(at(Processors::Spread, worker), [processor]);
        }
    }
}
