//! Checks that the open files of a connection are still those at their paths.
//!
//! SQLite continues to write into a file that was removed or replaced, and reports success. So before and after each
//! commit the device and inode of the open files are compared with those at their paths: the database, its write-ahead
//! log and the index of the log. The comparison covers removal, replacement, a renamed or replaced directory, a mount
//! over the path, a symbolic link with another target, a database that was truncated to zero, and an index that became
//! shorter. The content of the log is compared in [`super::log`].
//!
//! SQLite maps the index into memory: access to a part that was truncated ends the process with SIGBUS. So its length
//! is also compared before each use. The index cannot be read here: closing another descriptor of it would release the
//! locks of SQLite.
//!
//! The descriptors of SQLite are not accessible. So the identity of an open file is that of its path when it was
//! opened, which must be the same before and after the opening.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

use super::log::Log;
use crate::fault::{Blame, Fault};

pub(super) const LOG_TRUNCATED: &str =
    "the write-ahead log of the database was truncated or overwritten";

/// The size of the smallest page in bytes: a database has at least one.
const PAGE_BYTES_MIN: u64 = 512;

/// The size of a part of the index of a log in bytes. An index has at least one part.
const INDEX_BYTES_MIN: u64 = 32 << 10;

/// The indexes that connections of this process have open. SQLite maps an index once for all of them: a truncated index
/// is recreated only after the last of them was closed.
static INDEXES: Mutex<Vec<Weak<Index>>> = Mutex::new(Vec::new());

/// An index that connections have open.
#[derive(Debug)]
struct Index {
    identity: Identity,
    /// The maximum size that was seen, in bytes. A valid index never becomes shorter.
    bytes: AtomicU64,
}

impl Index {
    /// Returns the index with this identity, if another connection has it open.
    fn opened(identity: Identity) -> Option<Arc<Self>> {
        let mut indexes = INDEXES.lock().unwrap_or_else(PoisonError::into_inner);
        indexes.retain(|index| index.strong_count() > 0);
        indexes.iter().filter_map(Weak::upgrade).find(|index| index.identity == identity)
    }

    fn note(metadata: &fs::Metadata) -> Arc<Self> {
        let identity = Identity::from(metadata);
        let index = Self::opened(identity).unwrap_or_else(|| {
            let index = Arc::new(Self { identity, bytes: AtomicU64::new(INDEX_BYTES_MIN) });
            let mut indexes = INDEXES.lock().unwrap_or_else(PoisonError::into_inner);
            indexes.push(Arc::downgrade(&index));
            index
        });
        index.bytes.fetch_max(metadata.len(), Ordering::Relaxed);
        index
    }

    /// Whether the index is shorter than before.
    fn is_short(&self, metadata: &fs::Metadata) -> bool {
        let bytes = metadata.len();
        self.bytes.fetch_max(bytes, Ordering::Relaxed) > bytes
    }
}

/// Returns the path of the file with this suffix next to the file that `path` leads to.
pub(super) fn beside(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    let mut name: OsString = path.canonicalize()?.into();
    name.push(suffix);
    Ok(name.into())
}

/// Returns the log next to a database that is missing or empty. It belongs to a file that was moved away, and SQLite
/// would delete it.
pub(super) fn orphaned_log(path: &Path) -> Option<PathBuf> {
    let has_bytes = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
    if has_bytes(path) {
        return None;
    }
    let log = log_of(path);
    has_bytes(&log).then_some(log)
}

/// Returns the index of the database at `path`, if it was truncated and another connection has it open. It cannot be
/// used before that connection is closed.
pub(super) fn short_index(path: &Path) -> Option<PathBuf> {
    let path = beside(path, "-shm").ok()?;
    let metadata = fs::metadata(&path).ok()?;
    let index = Index::opened(Identity::from(&metadata))?;
    index.is_short(&metadata).then_some(path)
}

/// Returns the number of names of the file at `path`; 0 if there is no file. SQLite names the log and its index after
/// the database, so a file with two names would have two logs.
pub(super) fn links(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.nlink())
}

/// Whether the file at `path` is mounted alone (`mount --bind`, `docker -v FILE:FILE`). It then has another name, in the
/// directory that it is mounted from, although it has only one link. Reported by Linux 5.8 and later.
pub(super) fn is_mounted_alone(path: &Path) -> bool {
    let found = statx(CWD, path, AtFlags::NO_AUTOMOUNT, StatxFlags::empty());
    found.is_ok_and(|it| it.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(u64, u64);

impl Identity {
    /// Returns the identity of the file at `path`, after following symbolic links. `None` if there is no file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().as_ref().map(Self::from)
    }
}

impl From<&fs::Metadata> for Identity {
    fn from(metadata: &fs::Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// A file that may return to its path. A new file may get the inode of a removed file, but not its creation time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Original {
    identity: Identity,
    /// The creation time. `None` if the file system does not record it.
    made: Option<SystemTime>,
}

impl Original {
    /// Whether this file is at this path, judged by its device and inode.
    fn is_file_at((path, original): &(PathBuf, Self)) -> bool {
        Identity::of(path) == Some(original.identity)
    }

    /// Whether the file at `path` is known to be this one.
    fn is_at(&self, path: &Path) -> bool {
        let found = fs::metadata(path);
        self.made.is_some() && found.is_ok_and(|metadata| Self::from(&metadata) == *self)
    }
}

impl From<&fs::Metadata> for Original {
    fn from(metadata: &fs::Metadata) -> Self {
        Self { identity: Identity::from(metadata), made: metadata.created().ok() }
    }
}

/// The databases that connections of this process have open, and the logs of databases that were moved away or
/// replaced. Another pool that is about to open such a path has not noticed the move.
static REGISTER: Mutex<Register> = Mutex::new(Register { open: Vec::new(), stale: Vec::new() });

struct Register {
    open: Vec<Weak<Opened>>,
    stale: Vec<Stale>,
}

/// A database that a connection has open, with its log.
#[derive(Debug)]
struct Opened {
    /// The path, and the file that was at the path.
    database: (PathBuf, Original),
    log: (PathBuf, Identity),
}

impl Opened {
    /// Returns its log, if the log is at its path and the database is not.
    fn stale(&self) -> Option<Stale> {
        let (path, identity) = &self.log;
        if Original::is_file_at(&self.database) || Identity::of(path) != Some(*identity) {
            return None;
        }
        // SQLite holds no locks on the log, so a second descriptor releases none.
        let file = fs::File::open(path).ok()?;
        Some(Stale { path: path.clone(), file, database: self.database.clone() })
    }
}

/// The log of a database that was moved away or replaced, if it is still next to the path. SQLite would apply it to a
/// file that replaced the old one, and would delete it if there is no file. In both cases the last rows of the old file
/// would be lost.
#[derive(Debug)]
struct Stale {
    path: PathBuf,
    /// The log is kept open, so that no other file gets its inode.
    file: fs::File,
    /// The path of its database, and the file that was at the path.
    database: (PathBuf, Original),
}

impl Stale {
    /// Whether the log exists, is not empty, and its database has not returned to its path.
    fn is_in_the_way(&self) -> bool {
        let of_file = self.file.metadata().ok().filter(|metadata| metadata.len() > 0);
        let (path, original) = &self.database;
        let is_there = of_file.is_some_and(|it| Identity::of(&self.path) == Some((&it).into()));
        is_there && !original.is_at(path)
    }
}

impl Register {
    /// Finds the open databases that were moved away from their logs, and removes outdated entries.
    fn review(&mut self) {
        self.stale.retain(Stale::is_in_the_way);
        self.open.retain(|opened| opened.strong_count() > 0);
        for stale in self.open.iter().filter_map(Weak::upgrade).filter_map(|it| it.stale()) {
            if !self.stale.iter().any(|known| known.path == stale.path) {
                self.stale.push(stale);
            }
        }
        self.stale.retain(Stale::is_in_the_way);
    }
}

fn register() -> MutexGuard<'static, Register> {
    REGISTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the log of a database that a connection of this process had open and that is not at its path, if the log is
/// next to `path`, or the database is at `path` now. Without its log, the database lacks its last rows.
pub(super) fn stale_log(path: &Path) -> Option<PathBuf> {
    let log = log_of(path);
    let file = fs::metadata(path).ok().as_ref().map(Original::from);
    let mut register = register();
    register.review();
    let is_of = |stale: &&Stale| stale.path == log || file == Some(stale.database.1);
    register.stale.iter().find(is_of).map(|stale| stale.path.clone())
}

/// Returns the path of the log of the database at `path`. The database need not exist.
fn log_of(path: &Path) -> PathBuf {
    let real = path.canonicalize().ok().or_else(|| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new(".")).canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    });
    let mut name: OsString = real.unwrap_or_else(|| path.to_owned()).into();
    name.push("-wal");
    name.into()
}

/// The files of an open connection.
#[derive(Debug)]
pub(super) struct OpenFiles {
    opened: Arc<Opened>,
    /// The index of the log, and its path.
    index: (PathBuf, Arc<Index>),
}

impl OpenFiles {
    /// Records the files of a connection that has just been opened and has used its log. `before` is the identity of
    /// the file at `path` before it was opened.
    ///
    /// # Errors
    /// Returns an error if a file is missing, or was replaced in between.
    pub(super) fn note(path: &Path, before: Option<Identity>, log: &Log) -> io::Result<Self> {
        let original = Original::from(&fs::metadata(path)?);
        let database = (path.to_owned(), original);
        if before.is_some_and(|before| before != original.identity) {
            return Err(io::Error::other("it was replaced while it was opened"));
        }
        let (log_path, index_path) = (beside(path, "-wal")?, beside(path, "-shm")?);
        let log = (log_path, Identity::from(&log.metadata()?));
        let index = Index::note(&fs::metadata(&index_path)?);
        let opened = Arc::new(Opened { database, log });
        register().open.push(Arc::downgrade(&opened));
        Ok(Self { opened, index: (index_path, index) })
    }

    /// Compares the open files with those at their paths: three system calls.
    ///
    /// # Errors
    /// Returns an error if one of them is a different file or is missing. The log of the daemon shows the path; the
    /// client does not receive it.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let Opened { database: (path, opened), log } = &*self.opened;
        let found = fs::metadata(path);
        let what = match &found {
            Err(_) => Some("was removed"),
            Ok(found) if Identity::from(found) != opened.identity => {
                Some("was replaced by another file")
            }
            Ok(found) if found.len() < PAGE_BYTES_MIN => Some("was truncated"),
            Ok(_) => None,
        };
        if let Some(what) = what {
            // Its log is protected from other connections after this connection is closed, too.
            register().review();
            tracing::error!(path = %path.display(), "the database file {what}");
            return Err(Fault::new(Blame::Access, &format!("the database file {what}")));
        }
        let (index_path, index) = &self.index;
        for (path, opened) in [(&log.0, log.1), (index_path, index.identity)] {
            if Identity::of(path) != Some(opened) {
                let text = "the write-ahead log of the database was removed or replaced";
                tracing::error!(path = %path.display(), "{text}");
                return Err(Fault::new(Blame::Access, text));
            }
        }
        if self.index_is_short() {
            let text = "the index of the database's write-ahead log was truncated";
            tracing::error!(path = %index_path.display(), "{text}");
            return Err(Fault::new(Blame::Access, text));
        }
        Ok(())
    }

    /// Whether the index was truncated. Then it cannot be used, not even for a rollback.
    pub(super) fn index_is_short(&self) -> bool {
        let (path, index) = &self.index;
        fs::metadata(path).is_ok_and(|metadata| {
            Identity::from(&metadata) == index.identity && index.is_short(&metadata)
        })
    }

    /// Returns the fault that the log no longer contains the frames that its index counts. The log of the daemon shows
    /// the path; the client does not receive it.
    pub(super) fn log_truncated(&self) -> Fault {
        tracing::error!(path = %self.opened.log.0.display(), "{LOG_TRUNCATED}");
        Fault::new(Blame::Access, LOG_TRUNCATED)
    }
}
