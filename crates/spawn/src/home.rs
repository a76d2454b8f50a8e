//! Where a program listens that serves on a socket: what is made before it starts, and goes when it
//! has ended.
//!
//! What it is: the folder of a daemon, and in it a socket a program; or a port. What it must never
//! know: what is said through them.
//!
//! The folder may lie where every user can make one, and root or a cleaner of temporary files may remove it.
//! So the daemon holds a descriptor of it and connects through that: whatever stands at its path later, no
//! connection leads there. Programs get the path, which is compared with the descriptor before each start.
//! One that is gone or not ours any more is replaced by another with another name.
//!
//! A lock on the folder ends with its daemon, however that ends, and systemd-tmpfiles leaves a locked folder
//! alone. So a folder whose lock is free, and at whose sockets nobody listens, is nobody's: the next daemon of the
//! same user that makes one removes it.

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

/// Names that are tried for one: others may have it.
const TRIES: u32 = 1000;
/// The file that shows that a folder is a daemon's.
const MARK: &str = "lock";
/// The folder of daemons of the system.
const SYSTEM: &str = "/run/roadstead";

/// How a program comes to the socket that it serves on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Serves {
    /// It inherits one that listens already.
    Inherited,
    /// It makes one at a path that it is told.
    Path,
    /// It listens on a port of 127.0.0.1 that it is told.
    Port,
}

/// Where one program serves. What was made for it goes with this.
pub struct Home {
    /// Where it is connected to.
    pub at: At,
    /// The path that its program is told, if that is another one.
    pub path: Option<PathBuf>,
    /// What it inherits, for [`Command::socket`](crate::Command::socket).
    pub socket: Option<Socket>,
    _kept: Box<dyn Any + Send>,
}

/// A place to connect to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum At {
    /// The path of a Unix socket.
    Path(PathBuf),
    /// A port of 127.0.0.1.
    Port(u16),
}

impl Home {
    /// One that somebody else made; `kept` is dropped with it.
    #[must_use]
    pub fn new(at: At, socket: Option<Socket>, kept: Box<dyn Any + Send>) -> Self {
        Self { at, path: None, socket, _kept: kept }
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Home").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Makes homes. Their folder stands from the first one that needs it until they and this are gone.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    folder: Option<Arc<Folder>>,
    made: u32,
}

impl Homes {
    /// A new one: no two have the same path, not even one after the other.
    pub(crate) fn make(&mut self, how: Serves) -> io::Result<Home> {
        match how {
            Serves::Inherited => {
                let entry = self.entry()?;
                let socket = Socket::bind(&entry.path())?;
                // Nobody but this user can have made it in the folder that is held.
                let is_ours = fs::symlink_metadata(entry.held());
                if !is_ours.is_ok_and(|it| it.file_type().is_socket()) {
                    let text = format!("{} was replaced", entry.folder.path.display());
                    return Err(io::Error::other(text));
                }
                Ok(entry.home(Some(socket)))
            }
            Serves::Path => Ok(self.entry()?.home(None)),
            Serves::Port => {
                let port = Port::keep()?;
                Ok(Home::new(At::Port(port.number()), None, Box::new(port)))
            }
        }
    }

    fn entry(&mut self) -> io::Result<Entry> {
        let folder = match self.folder.take() {
            Some(folder) if folder.stands() => folder,
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

    fn held(&self) -> PathBuf {
        self.folder.held.join(&self.name)
    }

    fn home(self, socket: Option<Socket>) -> Home {
        Home { at: At::Path(self.held()), path: Some(self.path()), socket, _kept: Box::new(self) }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = fs::remove_file(self.held());
    }
}

/// A folder that this user alone may enter.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// The folder itself, whatever stands at its path: by its descriptor.
    held: PathBuf,
    /// It is locked.
    directory: File,
}

impl Folder {
    fn make(base: &Path) -> io::Result<Self> {
        tidy(base);
        for _ in 0..TRIES {
            // Nobody can know it and take it before.
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

    /// Locks a new folder; none when another daemon came between and took it for one that was left.
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
            // A file system without locks: nobody can have one there, and nothing is removed.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut held = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        let found = directory.metadata()?;
        if !held.metadata().is_ok_and(|it| is_same(&it, &found)) {
            // There is no /proc.
            held.clone_from(&path);
        }
        let folder = Self { path, held, directory };
        let mark = folder.held.join(MARK);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(mark);
        Ok(unless_gone(made)?.is_some_and(|_| folder.stands()).then_some(folder))
    }

    /// Whether its path leads to it, and nobody else may enter.
    fn stands(&self) -> bool {
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
            // Whatever a program left there is gone with the folder.
            let _ = fs::remove_dir_all(&self.path);
        }
        // Programs of a daemon that was killed may have lived on when this one began.
        self.path.parent().into_iter().for_each(tidy);
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Whether a folder is this user's, who alone may enter.
fn is_private(found: &Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    found.is_dir() && found.uid() == user && found.mode() & 0o777 == 0o700
}

/// Removes folders of daemons that were killed.
fn tidy(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(is_name);
        if ours && remove_if_left(&entry.path()).unwrap_or(false) {
            tracing::info!("removed {}, left by a daemon that was killed", entry.path().display());
        }
    }
}

/// Whether a folder is called as ours are.
fn is_name(name: &str) -> bool {
    let numbers = name.strip_prefix("roadstead-").and_then(|rest| rest.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Removes a folder that is surely a daemon's of this user, and whose daemon and programs have
/// surely ended. Says whether it did.
fn remove_if_left(folder: &Path) -> io::Result<bool> {
    if !is_private(&fs::symlink_metadata(folder)?) {
        return Ok(false);
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    // Without the file it may be anything.
    let mark = OpenOptions::new().write(true).custom_flags(flags).open(folder.join(MARK))?;
    let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY;
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(folder)?;
    if !mark.metadata()?.is_file() || directory.try_lock().is_err() {
        return Ok(false);
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A program that outlived its daemon is its keeper's, or nobody's, but it lives.
        if entry.file_type()?.is_socket() && !socket::is_dead(&entry.path()) {
            return Ok(false);
        }
    }
    fs::remove_dir_all(folder)?;
    Ok(true)
}

/// Where such folders stand: what the service manager or the session gave us if it is this user's, else below
/// `/run` for root, else where all temporary files are.
fn base() -> PathBuf {
    let given = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"].into_iter().filter_map(std::env::var_os);
    let mut given = given.map(PathBuf::from).filter(|path| is_own(path));
    let system = || rustix::process::geteuid().is_root().then(|| system(SYSTEM.into())).flatten();
    given.next().or_else(system).unwrap_or_else(std::env::temp_dir)
}

/// A folder that is made if it is missing. None if there is one that others can change, or none can be made.
fn system(path: PathBuf) -> Option<PathBuf> {
    // It may be there.
    let _ = DirBuilder::new().mode(0o700).create(&path);
    Some(path).filter(|path| is_own(path))
}

/// Whether a directory is this user's, and nobody else can change it.
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

    /// A folder as a daemon leaves it that is killed, with a socket that nobody has.
    fn left(base: &Path, name: &str) -> PathBuf {
        let path = base.join(name);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        fs::write(path.join(MARK), "").unwrap();
        drop(UnixListener::bind(path.join("1")).unwrap());
        path
    }

    #[test]
    fn a_home_is_gone_with_its_owner_and_its_path_is_not_used_again() {
        let mut homes = Homes::default();
        let home = homes.make(Serves::Inherited).unwrap();
        assert!(home.socket.is_some());
        let path = home.path.clone().unwrap();
        let folder = path.parent().unwrap().to_owned();
        assert!(path.exists());
        drop(home);
        assert!(!path.exists());
        let other = homes.make(Serves::Path).unwrap();
        assert!(other.socket.is_none());
        assert_ne!(other.path, Some(path));
        fs::write(folder.join("litter"), "").unwrap();
        drop(homes);
        assert!(folder.exists(), "a home still stands in it");
        drop(other);
        assert!(!folder.exists());
        let (one, other) =
            (Homes::default().make(Serves::Port), Homes::default().make(Serves::Port));
        assert_ne!(one.unwrap().at, At::Port(0));
        assert!(other.is_ok());
    }

    #[test]
    fn what_stands_in_place_of_a_folder_gets_no_connection_and_no_program() {
        let mut homes = Homes::default();
        let home = homes.make(Serves::Inherited).unwrap();
        let (At::Path(at), path) = (home.at.clone(), home.path.clone().unwrap()) else {
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
        for how in [Serves::Inherited, Serves::Path] {
            let other = homes.make(how).unwrap();
            let other = other.path.as_deref().unwrap().parent().unwrap();
            assert_ne!(other, folder);
            assert!(other.exists());
        }
        drop((homes, home));
        assert!(path.exists(), "it is not ours to remove");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_others_may_enter_by_now_is_not_used_again() {
        let mut homes = Homes::default();
        let home = homes.make(Serves::Path).unwrap();
        let folder = home.path.as_deref().unwrap().parent().unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        let other = homes.make(Serves::Path).unwrap();
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
        // Its backlog is full, as that of one that does not accept.
        let full = Socket::bind(&crowded.join("1")).unwrap();
        let _waits = std::os::unix::net::UnixStream::connect(crowded.join("1")).unwrap();
        let unmarked = left(base, "roadstead-1-3");
        fs::remove_file(unmarked.join(MARK)).unwrap();
        let open = left(base, "roadstead-1-4");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let others = [left(base, "roadstead-1"), left(base, "roadstead-1-x"), left(base, "rs-1-1")];
        let elsewhere = tempfile::tempdir().unwrap();
        let target = left(elsewhere.path(), "roadstead-1-5");
        symlink(&target, base.join("roadstead-1-5")).unwrap();
        tidy(base);
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
                        assert!(folder.path.join(MARK).exists());
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
