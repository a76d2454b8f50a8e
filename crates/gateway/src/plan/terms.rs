//! How a pool's programs are connected and what they are held to, as `spawn` wants it.

use settings::Processors;

/// How programs are connected and what they are held to.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) env_clear: bool,
    pub(crate) wiring: spawn::Wiring,
    bounds: spawn::Bounds,
    cpu: Processors,
}

impl Terms {
    pub(crate) fn new(wiring: settings::Wiring, bounds: settings::Bounds) -> Self {
        let settings::Wiring { io, fds, unbuffer } = wiring;
        let wiring = spawn::Wiring {
            io: match io {
                settings::Io::Pipe => spawn::Io::Pipe,
                settings::Io::Socket => spawn::Io::Socket,
            },
            numbers: match fds {
                settings::Fds::Standard => spawn::Numbers::Standard,
                settings::Fds::ThreeFour => spawn::Numbers::ThreeFour,
            },
            unbuffer: match unbuffer {
                settings::Unbuffer::No => spawn::Unbuffer::No,
                settings::Unbuffer::Stdbuf => spawn::Unbuffer::Stdbuf,
                settings::Unbuffer::Pty => spawn::Unbuffer::Pty,
            },
        };
        let settings::Bounds { env_clear, user, group, no_new_privs, limits, cpu, nice, cgroup } =
            bounds;
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
        Self { env_clear, wiring, bounds, cpu }
    }

    /// What the program at this place of its pool is held to. Called on the loop's thread, which
    /// stays where it is when programs are to be near.
    pub(crate) fn bounds(&self, place: usize) -> spawn::Bounds {
        let cpus = match &self.cpu {
            Processors::Any => Vec::new(),
            Processors::Near => spawn::stay_here().into_iter().collect(),
            Processors::Spread => {
                let allowed = spawn::allowed();
                allowed.get(place % allowed.len().max(1)).copied().into_iter().collect()
            }
            Processors::List(list) => list.clone(),
        };
        spawn::Bounds { cpus, ..self.bounds.clone() }
    }
}

fn limits_of(limits: settings::Limits) -> spawn::Limits {
    let settings::Limits { files, processes, core, cpu, memory, address_space, file_size, stack } =
        limits;
    let cpu = cpu.map(|time| time.as_secs().max(1));
    spawn::Limits { files, processes, core, cpu, memory, address_space, file_size, stack }
}

/// When programs are replaced though nothing is wrong with them.
pub(crate) fn recycling(recycle: settings::Recycle) -> pool::RecycleSettings {
    let settings::Recycle { requests, age, memory, jitter, share } = recycle;
    pool::RecycleSettings { requests, age, memory, jitter, share }
}
