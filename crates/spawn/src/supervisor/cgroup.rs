//! Control groups of programs (cgroup v2), if the daemon may create them.
//!
//! What it is: a folder for each program in a folder of the supervisor, `roadstead.SUPERVISOR_PID/NUMBER`. What it
//! depends on: the files of cgroup2. What it must never depend on: a descriptor of a program.
//!
//! A process cannot leave its control group, so writing to `cgroup.kill` ends all processes of a program, including
//! those with other sessions and parents. If a supervisor and its watchdog are killed together, the next supervisor
//! empties and removes their groups.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::bounds::Cgroup;
use crate::error::StartError;

/// The prefix of the name of a supervisor's folder; the process id follows.
const PREFIX: &str = "roadstead.";

/// The control group of a program.
pub(super) struct Group {
    folder: PathBuf,
    /// Whether the kernel counts the memory of the group and enforces the limit.
    pub(super) holds_memory: bool,
}

/// All groups of this supervisor.
#[derive(Default)]
pub(super) struct Groups {
    /// The delegated group of the daemon, after the first lookup.
    delegated: Option<Option<PathBuf>>,
    /// The folders of this supervisor, each in another base folder.
    bases: Vec<PathBuf>,
    /// Groups whose program has ended and that are not empty yet.
    leaving: Vec<PathBuf>,
}

impl Groups {
    /// Creates the group of a new program. Returns `None` if no group is requested, or, with `Auto`, if none can be
    /// created.
    pub(super) fn make(
        &mut self,
        wanted: &Cgroup,
        number: u64,
        memory: Option<u64>,
    ) -> Result<Option<Group>, StartError> {
        match wanted {
            Cgroup::Off => Ok(None),
            Cgroup::Auto => {
                let base = self.delegated.get_or_insert_with(delegated).clone();
                Ok(base.and_then(|base| self.make_under(&base, number, memory).ok()))
            }
            Cgroup::Under(base) => {
                self.make_under(base, number, memory).map(Some).map_err(|error| {
                    StartError::Bounds {
                        doing: format!("make a control group in `{}`", base.display()),
                        errno: error.raw_os_error().unwrap_or(libc::EIO),
                    }
                })
            }
        }
    }

    fn make_under(&mut self, base: &Path, number: u64, memory: Option<u64>) -> io::Result<Group> {
        // On another file system this would create an ordinary folder.
        if !base.join("cgroup.procs").exists() {
            return Err(io::Error::from_raw_os_error(libc::ENOTSUP));
        }
        let ours = base.join(format!("{PREFIX}{}", std::process::id()));
        if !self.bases.contains(&ours) {
            clear_left(base);
            make_folder(&ours)?;
            // The kernel rejects this if `base` itself contains a process. Memory is then not counted.
            let _ = fs::write(base.join("cgroup.subtree_control"), "+memory");
            let _ = fs::write(ours.join("cgroup.subtree_control"), "+memory");
            self.bases.push(ours.clone());
        }
        let folder = ours.join(number.to_string());
        make_folder(&folder)?;
        let holds_memory = memory
            .is_some_and(|bytes| fs::write(folder.join("memory.max"), bytes.to_string()).is_ok());
        Ok(Group { folder, holds_memory })
    }

    /// Ends all processes in the group of a program that has ended.
    pub(super) fn end(&mut self, group: Group) {
        kill(&group.folder);
        self.leaving.push(group.folder);
        self.tidy();
    }

    /// Removes groups that have become empty.
    pub(super) fn tidy(&mut self) {
        self.leaving.retain(|folder| !removed(folder));
    }

    /// Ends and removes all groups.
    pub(super) fn end_all(&mut self) {
        for base in self.bases.drain(..) {
            remove_family(&base);
        }
    }
}

impl Group {
    /// Moves the calling child into the group. All its later children are created there.
    pub(super) fn join(&self) -> Result<(), StartError> {
        fs::write(self.folder.join("cgroup.procs"), "0").map_err(|error| StartError::Bounds {
            doing: format!("enter the control group `{}`", self.folder.display()),
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        })
    }
}

/// Other users may open files in the directory by name, as some runtimes do to find their memory limit. They may not list
/// it: while a user reads a directory, he can hold its lock, and then no directory in it can be created or removed.
fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o711).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn kill(folder: &Path) {
    // Requires Linux 5.14. On older kernels only the methods without control groups apply.
    let _ = fs::write(folder.join("cgroup.kill"), "1");
}

/// Whether the group is gone. The kernel does not remove a group that contains a process, not even an unreaped one.
fn removed(folder: &Path) -> bool {
    fs::remove_dir(folder).is_ok() || !folder.exists()
}

fn remove_family(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        kill(&entry.path());
        let _ = fs::remove_dir(entry.path());
    }
    let _ = fs::remove_dir(folder);
}

/// Ends and removes groups of supervisors that no longer exist.
fn clear_left(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let supervisor =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if supervisor.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            remove_family(&entry.path());
        }
    }
}

/// Returns the folder of the daemon's control group, if it was delegated to the daemon.
fn delegated() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let folder = folder_of(&mounts, path)?;
    let found = fs::metadata(&folder).ok()?;
    // The root of all groups does not have this file and cannot be delegated.
    let is_group = folder.join("cgroup.events").exists();
    let user = rustix::process::geteuid();
    let owned = !user.is_root() && found.uid() == user.as_raw();
    let mut flag = [0; 8];
    let marked = rustix::fs::getxattr(&folder, "user.delegate", &mut flag)
        .or_else(|_| rustix::fs::getxattr(&folder, "trusted.delegate", &mut flag))
        .is_ok_and(|length| flag[..length] == *b"1");
    // The root of the daemon's cgroup namespace, for example in a container.
    let whole = path == "/" && user.is_root();
    (is_group && (owned || marked || whole)).then_some(folder)
}

/// Returns the folder of the control group that a supervisor created for one program. `groups` is the contents of
/// `/proc/PID/cgroup`. `None` if the process is in another group.
pub(crate) fn own_folder(groups: &str) -> Option<PathBuf> {
    let path = own_path(groups)?;
    // The mount point of the file system does not change.
    static MOUNTED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let mounted = MOUNTED.get_or_init(|| {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        folder_of(&mounts, "/")
    });
    Some(mounted.as_ref()?.join(path.trim_start_matches('/')))
}

/// Returns the path within the control groups, if the group was created by a supervisor.
fn own_path(groups: &str) -> Option<&str> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (base, number) = path.rsplit_once('/')?;
    let supervisor = base.rsplit('/').next()?.strip_prefix(PREFIX)?;
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    (is_number(number) && is_number(supervisor)).then_some(path)
}

/// Returns the memory that is counted for a group, in bytes, without inactive pages of files, because the kernel
/// reclaims those pages when memory is needed. `None` if memory is not counted.
pub(crate) fn memory_in(folder: &Path) -> Option<u64> {
    let current: u64 =
        fs::read_to_string(folder.join("memory.current")).ok()?.trim().parse().ok()?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let idle =
        stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
    Some(current.saturating_sub(idle.unwrap_or(0)))
}

/// Returns the folder of a group in the file system.
fn folder_of(mounts: &str, path: &str) -> Option<PathBuf> {
    let at = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let at = words.next()?;
        (words.next() == Some("cgroup2")).then_some(at)
    })?;
    Some(Path::new(at).join(path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_stands_where_its_file_system_is_mounted() {
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let folder = folder_of(mounts, "/system.slice/roadstead.service").unwrap();
        assert_eq!(folder, Path::new("/sys/fs/cgroup/unified/system.slice/roadstead.service"));
        assert_eq!(folder_of("proc /proc proc rw 0 0\n", "/"), None);
    }

    #[test]
    fn only_a_group_that_was_made_for_one_program_counts_as_its_family() {
        let of = |path: &str| own_path(&format!("9:memory:/x\n0::{path}\n")).map(str::to_owned);
        let own = "/system.slice/roadstead.service/roadstead.17/4";
        assert_eq!(of(own).as_deref(), Some(own));
        assert_eq!(of("/roadstead.17/4").as_deref(), Some("/roadstead.17/4"));
        for other in
            ["/", "", "/user.slice", "/roadstead.17", "/roadstead.x/4", "/roadstead.17/4/5"]
        {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(own_path("4:memory:/roadstead.17/4\n"), None, "of the first version");
    }

    #[test]
    fn the_memory_of_a_family_is_what_is_counted_without_idle_pages_of_files() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(memory_in(folder.path()), None, "it is not counted");
        fs::write(folder.path().join("memory.current"), "5000\n").unwrap();
        assert_eq!(memory_in(folder.path()), Some(5000));
        let stat = "anon 3000\ninactive_file 1200\nactive_file 800\n";
        fs::write(folder.path().join("memory.stat"), stat).unwrap();
        assert_eq!(memory_in(folder.path()), Some(3800));
    }

    #[test]
    fn a_folder_that_is_no_control_group_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = Cgroup::Under(folder.path().into());
        let refused = Groups::default().make(&wanted, 1, None).err().unwrap();
        let said = format!("make a control group in `{}`", folder.path().display());
        assert!(matches!(refused, StartError::Bounds { doing, .. } if doing == said));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn other_users_cannot_list_a_group() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("group");
        make_folder(&group).unwrap();
        make_folder(&group).unwrap();
        assert_eq!(fs::metadata(&group).unwrap().mode() & 0o066, 0);
    }
}
