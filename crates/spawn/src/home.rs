//! Where a program listens that serves on a socket: what is made before it starts, and goes when it
//! has ended.
//!
//! What it is: the folder of a daemon, and in it a socket a program; or a port. What it must never
//! know: what is said through them.
//!
//! A lock on a file in the folder ends with its daemon, however that ends. So a folder whose lock is
//! free, and at whose sockets nobody listens, is nobody's: the next daemon of the same user that
//! makes one removes it.

use std::any::Any;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::socket::{self, Port, Socket};

/// The folders of this process, so that none is used twice.
static FOLDERS: AtomicU32 = AtomicU32::new(0);
/// Names that are tried for one: others may have ended without having tidied up.
const TRIES: u32 = 1000;
/// The file in a folder whose lock says that its daemon lives.
const LOCK: &str = "lock";

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
        Self { at, socket, _kept: kept }
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
        Ok(match how {
            Serves::Inherited => {
                let entry = self.entry()?;
                let socket = Socket::bind(&entry.path)?;
                Home::new(At::Path(entry.path.clone()), Some(socket), Box::new(entry))
            }
            Serves::Path => {
                let entry = self.entry()?;
                Home::new(At::Path(entry.path.clone()), None, Box::new(entry))
            }
            Serves::Port => {
                let port = Port::keep()?;
                Home::new(At::Port(port.number()), None, Box::new(port))
            }
        })
    }

    fn entry(&mut self) -> io::Result<Entry> {
        let folder = match &self.folder {
            Some(folder) => Arc::clone(folder),
            None => Arc::clone(self.folder.insert(Arc::new(Folder::make(&base())?))),
        };
        self.made = self.made.wrapping_add(1);
        Ok(Entry { path: folder.path.join(self.made.to_string()), _folder: folder })
    }
}

/// The path of one socket.
struct Entry {
    path: PathBuf,
    _folder: Arc<Folder>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = fs::remove_file(&self.path);
    }
}

/// A folder that this user alone may enter, and its lock.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    fn make(base: &Path) -> io::Result<Self> {
        tidy(base);
        for _ in 0..TRIES {
            let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("roadstead-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    if let Some(lock) = mark(&path)? {
                        return Ok(Self { path, _lock: lock });
                    }
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whatever a program left there is gone with the folder.
        let _ = fs::remove_dir_all(&self.path);
        // Programs of a daemon that was killed may have lived on when this one began.
        self.path.parent().into_iter().for_each(tidy);
    }
}

/// Locks a new folder; none when another daemon came between and took it for one that was left.
fn mark(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join(LOCK);
    let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let lock = match lock {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        made => made?,
    };
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        // A file system without locks: nobody can have one there, and nothing is removed.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    let stands = fs::metadata(&path)
        .is_ok_and(|it| lock.metadata().is_ok_and(|mine| it.ino() == mine.ino()));
    Ok(stands.then_some(lock))
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
    let found = fs::symlink_metadata(folder)?;
    let user = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != user || found.mode() & 0o777 != 0o700 {
        return Ok(false);
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    // Without the file it may be anything.
    let lock = OpenOptions::new().write(true).custom_flags(flags).open(folder.join(LOCK))?;
    if !lock.metadata()?.is_file() || lock.try_lock().is_err() {
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

/// Where such folders stand: what the service manager or the session gave us if it is this user's, else
/// where all temporary files are.
fn base() -> PathBuf {
    let given = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"].into_iter().filter_map(std::env::var_os);
    let mut given = given.map(PathBuf::from).filter(|path| is_own(path));
    given.next().unwrap_or_else(std::env::temp_dir)
}

/// Whether a directory is this user's, and nobody else can change it.
fn is_own(path: &Path) -> bool {
    let found = path.canonicalize().and_then(fs::symlink_metadata);
    let user = rustix::process::geteuid().as_raw();
    let is_private = |it: fs::Metadata| it.is_dir() && it.uid() == user && it.mode() & 0o022 == 0;
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
        fs::write(path.join(LOCK), "").unwrap();
        drop(UnixListener::bind(path.join("1")).unwrap());
        path
    }

    #[test]
    fn a_home_is_gone_with_its_owner_and_its_path_is_not_used_again() {
        let mut homes = Homes::default();
        let home = homes.make(Serves::Inherited).unwrap();
        assert!(home.socket.is_some());
        let At::Path(path) = home.at.clone() else { panic!("a path") };
        let folder = path.parent().unwrap().to_owned();
        assert!(path.exists());
        drop(home);
        assert!(!path.exists());
        let other = homes.make(Serves::Path).unwrap();
        assert!(other.socket.is_none());
        assert_ne!(other.at, At::Path(path));
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
        fs::remove_file(unmarked.join(LOCK)).unwrap();
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
                        assert!(folder.path.join(LOCK).exists());
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
