//! The limits of a program: its user, resources, processors and priority.
//!
//! What it is: data. What it depends on: the names of the kernel's limits. What it must never depend on: how limits are
//! set, which the child does (`supervisor/child`).

use std::path::PathBuf;

use rustix::process::Resource;

/// The user, group and limits of a program. By default a program has those of the daemon.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bounds {
    /// The user as which the program runs, by name or number. The daemon needs the right to change users.
    pub user: Option<String>,
    /// The group of the program, by name or number. If absent, the program gets the groups of `user`. Required if
    /// `user` is a number without a name.
    pub group: Option<String>,
    /// Whether the program and its children are prevented from gaining rights by executing a set-user-id file.
    pub no_new_privs: bool,
    /// Resource limits.
    pub limits: Limits,
    /// The processors on which the program may run; empty: all.
    pub cpus: Vec<usize>,
    /// A number added to the nice value of the program. 0..=19 lowers its priority; a value below 0 needs a privilege.
    pub nice: i32,
    /// Where the control group of the program is created.
    pub cgroup: Cgroup,
}

/// Limits of one process (setrlimit(2)), with the same soft and hard value. `None`: the limit of the daemon.
///
/// A control group is a better limit for a program and all its child processes; these limits work on every system.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Limits {
    /// Open descriptors.
    pub files: Option<u64>,
    /// Processes and threads of the *user* of the program, including those outside of the program. Root is not limited.
    pub processes: Option<u64>,
    /// The size of a core file, in bytes; 0: none is written.
    pub core: Option<u64>,
    /// Processor time in seconds, then SIGXCPU, and SIGKILL one second later.
    pub cpu: Option<u64>,
    /// Private writable memory, in bytes. If the program has a control group whose memory is counted: the memory of the
    /// whole control group.
    pub memory: Option<u64>,
    /// Address space in bytes, including reserved memory that is never used. Node, Go and Java reserve much more than
    /// they use.
    pub address_space: Option<u64>,
    /// The size of a file that the program writes, in bytes.
    pub file_size: Option<u64>,
    /// The size of a stack, in bytes.
    pub stack: Option<u64>,
}

impl Limits {
    /// Returns the limits in the order in which they are encoded.
    pub(crate) const fn all(&self) -> [Option<u64>; 8] {
        let Self { files, processes, core, cpu, memory, address_space, file_size, stack } = *self;
        [files, processes, core, cpu, memory, address_space, file_size, stack]
    }

    pub(crate) const fn from_all(all: [Option<u64>; 8]) -> Self {
        let [files, processes, core, cpu, memory, address_space, file_size, stack] = all;
        Self { files, processes, core, cpu, memory, address_space, file_size, stack }
    }

    /// Returns, for each limit, the resource of the kernel, the name of the option, and the value.
    pub(crate) fn resources(&self) -> [(Resource, &'static str, Option<u64>); 8] {
        let [files, processes, core, cpu, memory, address_space, file_size, stack] = self.all();
        [
            (Resource::Nofile, "files", files),
            (Resource::Nproc, "processes", processes),
            (Resource::Core, "core", core),
            (Resource::Cpu, "cpu", cpu),
            (Resource::Data, "memory", memory),
            (Resource::As, "address_space", address_space),
            (Resource::Fsize, "file_size", file_size),
            (Resource::Stack, "stack", stack),
        ]
    }
}

/// Where the control group (version 2) of a program is created. No process can leave its control group, so the program
/// and all its descendants end together and are counted together.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Cgroup {
    /// Under the control group of the daemon, if it was delegated to the daemon (`Delegate=yes` of systemd, or the
    /// folder belongs to the user of the daemon); otherwise no control group.
    #[default]
    Auto,
    /// No control group.
    Off,
    /// Under this folder of a cgroup2 file system. A start fails if no group can be created there.
    Under(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_its_own_place() {
        let mut all = [None; 8];
        for place in 0..8 {
            all[place] = Some(place as u64);
            assert_eq!(Limits::from_all(all).all(), all);
        }
        let named = Limits::from_all(all).resources();
        for (place, (_, _, value)) in named.into_iter().enumerate() {
            assert_eq!(value, Some(place as u64));
        }
    }
}
