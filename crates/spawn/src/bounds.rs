//! What a program is held to: as whom it runs, what it may use, where, and how urgently.
//!
//! What it is: data. What it knows: the kernel's limits by name. What it must never know: how they
//! are set; that is the child's part (`keeper/child`).

use std::path::PathBuf;

use rustix::process::Resource;

/// What a program is held to. The default is what the daemon itself is held to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bounds {
    /// The user it becomes, by name or number; needs a daemon that may change users.
    pub user: Option<String>,
    /// The group it becomes a member of, by name or number. Without it: those of `user`; a user
    /// that is a number nobody has a name for needs it.
    pub group: Option<String>,
    /// Neither it nor what it starts can gain rights by executing a set-user-id file.
    pub no_new_privs: bool,
    /// What it may use of this and that.
    pub limits: Limits,
    /// The processors it may run on; empty: all.
    pub cpus: Vec<usize>,
    /// Added to its nice value: 0..=19 is less urgent, below 0 needs the right to it.
    pub nice: i32,
    /// Where its control group is made.
    pub cgroup: Cgroup,
}

/// Limits of one process (setrlimit(2)), soft and hard alike; `None` is the daemon's own.
///
/// A control group is the better fence for a whole family of processes; these work everywhere.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Limits {
    /// Open descriptors.
    pub files: Option<u64>,
    /// Processes and threads of its *user*, wherever they run; root is not held to it.
    pub processes: Option<u64>,
    /// Bytes of a core file; 0: none is written.
    pub core: Option<u64>,
    /// Seconds of processor time: SIGXCPU, and SIGKILL a second later.
    pub cpu: Option<u64>,
    /// Bytes of memory that it writes to and shares with nobody. The whole control group's bytes,
    /// where it has one whose memory is counted.
    pub memory: Option<u64>,
    /// Bytes of address space, reserved and never used ones included. Node, Go and Java reserve
    /// far more than they use.
    pub address_space: Option<u64>,
    /// Bytes of a file that it writes.
    pub file_size: Option<u64>,
    /// Bytes of a stack.
    pub stack: Option<u64>,
}

impl Limits {
    /// In the order in which they are handed over.
    pub(crate) const fn all(&self) -> [Option<u64>; 8] {
        let Self { files, processes, core, cpu, memory, address_space, file_size, stack } = *self;
        [files, processes, core, cpu, memory, address_space, file_size, stack]
    }

    pub(crate) const fn from_all(all: [Option<u64>; 8]) -> Self {
        let [files, processes, core, cpu, memory, address_space, file_size, stack] = all;
        Self { files, processes, core, cpu, memory, address_space, file_size, stack }
    }

    /// The kernel's name, ours, and the number.
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

/// Where a program's control group is made (version 2): a fence that no process leaves, so that
/// all of a program's family ends with it, and is counted together.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Cgroup {
    /// Under the daemon's own, where that was delegated to it (`Delegate=yes` of systemd, or a
    /// folder that belongs to the daemon's user); else none.
    #[default]
    Auto,
    /// None.
    Off,
    /// Under this folder of a cgroup2 file system; a start fails where none can be made.
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
