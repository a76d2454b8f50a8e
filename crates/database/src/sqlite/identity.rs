//! Whether the files that a connection holds open are still those at their paths.
//!
//! SQLite goes on writing into a file that was removed or replaced and reports success. A commit is
//! therefore preceded and followed by a comparison of device and inode of the open files with those
//! at their paths: the database, its write-ahead log and the index of the log. The comparison covers
//! removal, replacement, a renamed or replaced folder, a mount over the path, a symbolic link with
//! another target, and a database that was truncated to nothing.
//!
//! The descriptors of SQLite are not accessible, so the identity of an open file is that of its path
//! when it was opened, which has to be the same before and after the opening.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::fault::{Blame, Fault};

/// The size of the smallest page: a database has at least one.
const PAGE_BYTES_MIN: u64 = 512;

/// Device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(u64, u64);

impl Identity {
    /// The identity of the file at `path`, behind any symbolic links. None where there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().as_ref().map(Self::from)
    }
}

impl From<&fs::Metadata> for Identity {
    fn from(metadata: &fs::Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// The log of a database that was moved away or replaced, where it still lies beside the path. SQLite
/// would apply it to a file that took the place of the old one, and remove it where there is none:
/// with it the last rows of the old file.
///
/// The file is held open, so that no other file gets its inode.
#[derive(Clone, Debug, Default)]
pub(super) struct StaleLog(Arc<Mutex<Option<(PathBuf, fs::File)>>>);

impl StaleLog {
    /// Notes a log that does not belong to the file that is at the path of its database now. It has
    /// no locks of SQLite's, which a second descriptor would release.
    fn note(&self, path: &Path) {
        let held = fs::File::open(path).ok().map(|file| (path.to_owned(), file));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// The path of that log, as long as it is there and not empty.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, file) = held.as_ref()?;
        let of_file = file.metadata().ok().filter(|metadata| metadata.len() > 0);
        if of_file.as_ref().map(Identity::from) == Identity::of(path) && of_file.is_some() {
            return Some(path.clone());
        }
        *held = None;
        None
    }
}

/// The files of an open connection.
#[derive(Debug)]
pub(super) struct OpenFiles {
    database: (PathBuf, Identity),
    /// The write-ahead log and its index, beside the file that the path leads to.
    beside: [(PathBuf, Identity); 2],
    stale: StaleLog,
}

impl OpenFiles {
    /// The files of a connection that has just been opened and has used its log. `before` is what
    /// was at `path` before it was opened.
    ///
    /// # Errors
    /// When a file is missing, or was replaced meanwhile.
    pub(super) fn note(
        path: &Path,
        before: Option<Identity>,
        stale: &StaleLog,
    ) -> io::Result<Self> {
        let identity = |path: &Path| fs::metadata(path).map(|metadata| Identity::from(&metadata));
        let database = (path.to_owned(), identity(path)?);
        if before.is_some_and(|before| before != database.1) {
            return Err(io::Error::other("it was replaced while it was opened"));
        }
        let real = path.canonicalize()?;
        let beside = |suffix: &str| {
            let mut name: OsString = real.clone().into();
            name.push(suffix);
            let path = PathBuf::from(name);
            identity(&path).map(|identity| (path, identity))
        };
        let beside = [beside("-wal")?, beside("-shm")?];
        Ok(Self { database, beside, stale: stale.clone() })
    }

    /// Compares the open files with those at their paths: three system calls.
    ///
    /// # Errors
    /// When one of them is another one, or none. The log gets the path; the client does not.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let (path, opened) = &self.database;
        let found = fs::metadata(path);
        let what = match &found {
            Err(_) => Some("was removed"),
            Ok(found) if Identity::from(found) != *opened => Some("was replaced by another file"),
            Ok(found) if found.len() < PAGE_BYTES_MIN => Some("was truncated"),
            Ok(_) => None,
        };
        if let Some(what) = what {
            let (log, opened) = &self.beside[0];
            if what != "was truncated" && Identity::of(log) == Some(*opened) {
                self.stale.note(log);
            }
            tracing::error!(path = %path.display(), "the database file {what}");
            return Err(Fault::new(Blame::Access, &format!("the database file {what}")));
        }
        for (path, opened) in &self.beside {
            if Identity::of(path) != Some(*opened) {
                let text = "the write-ahead log of the database was removed or replaced";
                tracing::error!(path = %path.display(), "{text}");
                return Err(Fault::new(Blame::Access, text));
            }
        }
        Ok(())
    }
}
