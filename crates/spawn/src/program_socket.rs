//! The sockets of programs that serve on a socket. They are created before a program starts and removed after it has
//! ended.
//!
//! What it is: the folder of a daemon with one socket per program; or a port. What it must never depend on: the data
//! that is sent through the sockets.
//!
//! The folder may be in a directory where every user can create files, and root or a cleaner of temporary files may
//! remove it. Therefore the daemon keeps a descriptor of the folder and connects through it: connections cannot reach
//! another folder that appears at the same path. Programs get the path, which is compared with the descriptor before
//! each start. A folder that is gone or is no longer ours is replaced by a folder with another name.
//!
//! The daemon holds a lock on the folder. The lock ends with the daemon, however it ends, and systemd-tmpfiles does not
//! remove a locked folder. If a folder is not locked and its sockets have no listener, its daemon was killed. The next
//! daemon of the same user that creates a folder removes it.

use std::any::Any;
use std::fmt;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::socket::{self, Port, Socket};

/// The maximum number of names that are tried for a new folder, because a name may exist already.
const TRIES: u32 = 1000;
/// The file that identifies a folder of a daemon.
const LOCK_FILE: &str = "lock";
/// The directory for the folders of daemons that run as root.
const SYSTEM: &str = "/run/roadstead";

/// How a program gets the socket on which it serves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SocketKind {
    /// It inherits a listening socket.
    Inherited,
    /// It creates a socket at a path that it receives.
    Path,
    /// It listens on a port of 127.0.0.1 whose number it receives.
    Port,
}

/// The socket or port of one program. Dropping it removes what was created for the program.
pub struct ProgramSocket {
    /// The address for connections of the daemon.
    pub at: ProgramAddress,
    /// The path that the program receives, if it differs from `at`.
    pub path: Option<PathBuf>,
    /// The inherited socket, for [`Command::socket`](crate::Command::socket).
    pub socket: Option<Socket>,
    _kept: Box<dyn Any + Send>,
}

/// The address of a program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ProgramAddress {
    /// The path of a Unix socket.
    Path(PathBuf),
    /// A port of 127.0.0.1.
    Port(u16),
}

impl ProgramSocket {
    /// A value for a socket that was created elsewhere. `kept` is dropped with it.
    #[must_use]
    pub fn new(at: ProgramAddress, socket: Option<Socket>, kept: Box<dyn Any + Send>) -> Self {
        Self { at, path: None, socket, _kept: kept }
    }
}

impl fmt::Debug for ProgramSocket {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Home").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Creates [`ProgramSocket`]s. Their folder is created when the first of them needs it, and is removed when all of them and this
/// value are dropped.
#[derive(Debug, Default)]
pub(crate) struct ProgramSockets {
    folder: Option<Arc<Folder>>,
    made: u32,
}

impl ProgramSockets {
    /// Creates one. A path is never used twice, not even after the first was removed.
    pub(crate) fn make(&mut self, how: SocketKind) -> io::Result<ProgramSocket> {
        match how {
            SocketKind::Inherited => {
                let entry = self.entry()?;
                let socket = Socket::bind(&entry.path())?;
                // Compared through the descriptor: only this user can have created it in the held folder.
                let is_ours = fs::symlink_metadata(entry.descriptor_path());
                if !is_ours.is_ok_and(|it| it.file_type().is_socket()) {
                    let text = format!("{} was replaced", entry.folder.path.display());
                    return Err(io::Error::other(text));
                }
                Ok(entry.home(Some(socket)))
            }
            SocketKind::Path => Ok(self.entry()?.home(None)),
            SocketKind::Port => {
                let port = Port::reserve()?;
                Ok(ProgramSocket::new(ProgramAddress::Port(port.number()), None, Box::new(port)))
            }
        }
    }

    fn entry(&mut self) -> io::Result<Entry> {
        let folder = match self.folder.take() {
            Some(folder) if folder.is_intact() => folder,
            lost => {
                let made = Arc::new(Folder::make(&base())?);
                if let Some(lost) = lost {
                    tracing::warn!(
                        "{} is gone or was replaced: programs get their sockets in {}",
                        lost.path.display(),
                        made.path.display()
                    );
                }
                made
            }
        };
        self.folder = Some(Arc::clone(&folder));
        self.made = self.made.wrapping_add(1);
        Ok(Entry { name: self.made.to_string(), folder })
    }
}

/// The name of one socket in its folder.
struct Entry {
    name: String,
    folder: Arc<Folder>,
}

impl Entry {
    fn path(&self) -> PathBuf {
        self.folder.path.join(&self.name)
    }

    fn descriptor_path(&self) -> PathBuf {
        self.folder.descriptor_path.join(&self.name)
    }

    fn home(self, socket: Option<Socket>) -> ProgramSocket {
        ProgramSocket {
            at: ProgramAddress::Path(self.descriptor_path()),
            path: Some(self.path()),
            socket,
            _kept: Box::new(self),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // The file may not exist.
        let _ = fs::remove_file(self.descriptor_path());
    }
}

/// A folder that only this user may enter.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// The path of the folder through its descriptor, which stays valid whatever is at `path`.
    descriptor_path: PathBuf,
    /// The locked directory.
    directory: File,
}

impl Folder {
    fn make(base: &Path) -> io::Result<Self> {
        remove_abandoned(base);
        for _ in 0..TRIES {
            // Random, so that others cannot predict the name and take it first.
            let number = RandomState::new().hash_one(0) >> 32;
            let path = base.join(format!("roadstead-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    if let Some(folder) = Self::hold(path)? {
                        return Ok(folder);
                    }
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Locks a new folder. Returns `None` if another daemon treated it as abandoned and removed or locked it meanwhile.
    fn hold(path: PathBuf) -> io::Result<Option<Self>> {
        let unless_gone = |opened: io::Result<File>| match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        };
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        let Some(directory) = unless_gone(opened)? else { return Ok(None) };
        match directory.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            // On a file system without locks no daemon can lock a folder, and no folder is removed.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut descriptor_path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        let found = directory.metadata()?;
        if !descriptor_path.metadata().is_ok_and(|it| is_same(&it, &found)) {
            // `/proc` is not mounted.
            descriptor_path.clone_from(&path);
        }
        let folder = Self { path, descriptor_path, directory };
        let mark = folder.descriptor_path.join(LOCK_FILE);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(mark);
        Ok(unless_gone(made)?.is_some_and(|_| folder.is_intact()).then_some(folder))
    }

    /// Whether the path refers to this folder, and only this user may enter it.
    fn is_intact(&self) -> bool {
        let found = fs::symlink_metadata(&self.path);
        found.is_ok_and(|it| self.is(&it) && is_private(&it))
    }

    fn is(&self, found: &Metadata) -> bool {
        self.directory.metadata().is_ok_and(|it| is_same(&it, found))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|it| self.is(&it)) {
            // Files of a program in the folder are removed with it.
            let _ = fs::remove_dir_all(&self.path);
        }
        // Programs of a killed daemon may still have been running when this daemon started.
        self.path.parent().into_iter().for_each(remove_abandoned);
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Whether a folder belongs to this user and only this user may enter it.
fn is_private(found: &Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    found.is_dir() && found.uid() == user && found.mode() & 0o777 == 0o700
}

/// Removes folders of daemons that were killed.
fn remove_abandoned(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(is_name);
        if ours && remove_if_abandoned(&entry.path()).unwrap_or(false) {
            tracing::info!("removed {}, left by a daemon that was killed", entry.path().display());
        }
    }
}

/// Whether a name has the format of our folders.
fn is_name(name: &str) -> bool {
    let numbers = name.strip_prefix("roadstead-").and_then(|rest| rest.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Removes a folder if it certainly belongs to a daemon of this user, and that daemon and its programs have certainly
/// ended. Returns whether it was removed.
fn remove_if_abandoned(folder: &Path) -> io::Result<bool> {
    if !is_private(&fs::symlink_metadata(folder)?) {
        return Ok(false);
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    // Without the mark file, the folder may belong to another program.
    let mark = OpenOptions::new().write(true).custom_flags(flags).open(folder.join(LOCK_FILE))?;
    let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY;
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(folder)?;
    if !mark.metadata()?.is_file() || directory.try_lock().is_err() {
        return Ok(false);
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A program that outlived its daemon still runs, with or without its supervisor.
        if entry.file_type()?.is_socket() && !socket::has_no_listener(&entry.path()) {
            return Ok(false);
        }
    }
    fs::remove_dir_all(folder)?;
    Ok(true)
}

/// Returns the directory for our folders: the directory from the service manager or the session if it belongs to this
/// user, otherwise a directory below `/run` for root, otherwise the directory for temporary files.
fn base() -> PathBuf {
    let given = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"].into_iter().filter_map(std::env::var_os);
    let mut given = given.map(PathBuf::from).filter(|path| is_own(path));
    let system = || rustix::process::geteuid().is_root().then(|| system(SYSTEM.into())).flatten();
    given.next().or_else(system).unwrap_or_else(std::env::temp_dir)
}

/// Returns this directory, after creating it if it is missing. `None` if it cannot be created, or if others can change
/// it.
fn system(path: PathBuf) -> Option<PathBuf> {
    // It may exist already.
    let _ = DirBuilder::new().mode(0o700).create(&path);
    Some(path).filter(|path| is_own(path))
}

/// Whether a directory belongs to this user, and no other user can change it.
fn is_own(path: &Path) -> bool {
    let found = path.canonicalize().and_then(fs::symlink_metadata);
    let user = rustix::process::geteuid().as_raw();
    let is_private = |it: Metadata| it.is_dir() && it.uid() == user && it.mode() & 0o022 == 0;
    path.is_absolute() && found.is_ok_and(is_private)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Creates a folder as a killed daemon leaves it, with a socket without a listener.
    fn left(base: &Path, name: &str) -> PathBuf {
        let path = base.join(name);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        fs::write(path.join(LOCK_FILE), "").unwrap();
        drop(UnixListener::bind(path.join("1")).unwrap());
        path
    }

    #[test]
    fn a_home_is_gone_with_its_owner_and_its_path_is_not_used_again() {
        let mut program_sockets = ProgramSockets::default();
        let home = program_sockets.make(SocketKind::Inherited).unwrap();
        assert!(home.socket.is_some());
        let path = home.path.clone().unwrap();
        let folder = path.parent().unwrap().to_owned();
        assert!(path.exists());
        drop(home);
        assert!(!path.exists());
        let other = program_sockets.make(SocketKind::Path).unwrap();
        assert!(other.socket.is_none());
        assert_ne!(other.path, Some(path));
        fs::write(folder.join("litter"), "").unwrap();
        drop(program_sockets);
        assert!(folder.exists(), "a home still stands in it");
        drop(other);
        assert!(!folder.exists());
        let (one, other) = (
            ProgramSockets::default().make(SocketKind::Port),
            ProgramSockets::default().make(SocketKind::Port),
        );
        assert_ne!(one.unwrap().at, ProgramAddress::Port(0));
        assert!(other.is_ok());
    }

    #[test]
    fn what_stands_in_place_of_a_folder_gets_no_connection_and_no_program() {
        let mut program_sockets = ProgramSockets::default();
        let home = program_sockets.make(SocketKind::Inherited).unwrap();
        let (ProgramAddress::Path(at), path) = (home.at.clone(), home.path.clone().unwrap()) else {
            panic!("a path")
        };
        assert_eq!(at.canonicalize().unwrap(), path.canonicalize().unwrap());
        let folder = path.parent().unwrap().to_owned();
        let base = folder.parent().unwrap();
        let aside = base.join(format!("aside-{}", std::process::id()));
        fs::rename(&folder, &aside).unwrap();
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        let _thief = UnixListener::bind(&path).unwrap();
        let (real, seen) = (aside.join("1").metadata().unwrap(), at.metadata().unwrap());
        assert!(is_same(&real, &seen), "the socket that was made");
        fs::remove_dir_all(&aside).unwrap();
        assert!(!at.exists(), "it is gone, whatever stands at its path");
        for how in [SocketKind::Inherited, SocketKind::Path] {
            let other = program_sockets.make(how).unwrap();
            let other = other.path.as_deref().unwrap().parent().unwrap();
            assert_ne!(other, folder);
            assert!(other.exists());
        }
        drop((program_sockets, home));
        assert!(path.exists(), "it is not ours to remove");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_others_may_enter_by_now_is_not_used_again() {
        let mut program_sockets = ProgramSockets::default();
        let home = program_sockets.make(SocketKind::Path).unwrap();
        let folder = home.path.as_deref().unwrap().parent().unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        let other = program_sockets.make(SocketKind::Path).unwrap();
        assert_ne!(other.path.as_deref().unwrap().parent(), Some(folder));
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_folder_is_locked_so_that_cleaners_leave_it_alone() {
        let base = tempfile::tempdir().unwrap();
        let folder = Folder::make(base.path()).unwrap();
        let other = File::open(&folder.path).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
    }

    #[test]
    fn root_has_its_folders_where_nobody_else_can_make_any() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("roadstead");
        for _ in 0..2 {
            assert_eq!(system(path.clone()), Some(path.clone()));
        }
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(system(path), None);
    }

    #[test]
    fn what_a_killed_daemon_left_goes_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        let dead = left(base, "roadstead-1-0");
        fs::write(dead.join("litter"), "").unwrap();
        let lives = Folder::make(base).unwrap();
        assert!(!dead.exists());
        let served = left(base, "roadstead-1-1");
        fs::remove_file(served.join("1")).unwrap();
        let program = UnixListener::bind(served.join("1")).unwrap();
        let crowded = left(base, "roadstead-1-2");
        fs::remove_file(crowded.join("1")).unwrap();
        // Its backlog is full, as for a program that does not accept connections.
        let full = Socket::bind(&crowded.join("1")).unwrap();
        let _waits = std::os::unix::net::UnixStream::connect(crowded.join("1")).unwrap();
        let unmarked = left(base, "roadstead-1-3");
        fs::remove_file(unmarked.join(LOCK_FILE)).unwrap();
        let open = left(base, "roadstead-1-4");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let others = [left(base, "roadstead-1"), left(base, "roadstead-1-x"), left(base, "rs-1-1")];
        let elsewhere = tempfile::tempdir().unwrap();
        let target = left(elsewhere.path(), "roadstead-1-5");
        symlink(&target, base.join("roadstead-1-5")).unwrap();
        remove_abandoned(base);
        for path in
            [&lives.path, &served, &crowded, &unmarked, &open, &target].into_iter().chain(&others)
        {
            assert!(path.exists(), "{}", path.display());
        }
        drop((program, full));
        drop(lives);
        assert!(!served.exists() && !crowded.exists(), "whoever served there has ended since");
    }

    #[test]
    fn a_directory_of_the_environment_is_used_only_if_nobody_else_can_change_it() {
        let base = tempfile::tempdir().unwrap();
        assert!(is_own(base.path()));
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_own(base.path()));
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(base.path(), Some(60001), None).unwrap();
            assert!(!is_own(base.path()));
        }
    }

    #[test]
    fn a_new_folder_is_not_taken_for_one_that_was_left() {
        let base = tempfile::tempdir().unwrap();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let base = base.path().to_owned();
                std::thread::spawn(move || {
                    for _ in 0..50 {
                        let folder = Folder::make(&base).unwrap();
                        assert!(folder.path.join(LOCK_FILE).exists());
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
