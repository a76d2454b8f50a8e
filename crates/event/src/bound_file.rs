//! The files of bound Unix sockets.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat, unlinkat};

/// The file of a bound Unix socket. Dropping this value removes the file, unless another process has bound a socket at
/// the path since.
///
/// The directory is held: another user who owns a directory above it may replace that one by a link into a file system
/// that never answers.
#[derive(Debug)]
pub struct BoundFile {
    path: PathBuf,
    directory: OwnedFd,
    name: OsString,
    id: (u64, u64),
}

impl BoundFile {
    /// Notes the file at the path of a socket that was just bound.
    ///
    /// # Errors
    /// There is no such file, or it cannot be examined.
    pub fn new(path: &Path) -> io::Result<Self> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, parent, flags, Mode::empty())?;
        let id = id(&directory, &name)?;
        Ok(Self { path: path.to_owned(), directory, name, id })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file as dropping does, and returns the error.
    ///
    /// # Errors
    /// The file is there and cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        if id(&self.directory, &self.name).is_ok_and(|id| id == self.id) {
            unlinkat(&self.directory, &self.name, AtFlags::empty())?;
        }
        Ok(())
    }
}

impl Drop for BoundFile {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// The identity of a file, independent of its name.
fn id(directory: &OwnedFd, name: &OsString) -> rustix::io::Result<(u64, u64)> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_the_file_that_was_bound_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert!(BoundFile::new(&path).is_err(), "there is no file");
        let first = UnixListener::bind(&path).unwrap();
        let file = BoundFile::new(&path).unwrap();
        // The first file keeps its number while it has another name.
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        let second = UnixListener::bind(&path).unwrap();
        drop(file);
        assert!(path.exists(), "another process has bound it");
        drop(BoundFile::new(&path).unwrap());
        assert!(!path.exists());
        drop((first, second));
    }

    #[test]
    fn the_directory_is_that_in_which_it_was_bound() {
        let folder = tempfile::tempdir().unwrap();
        let [app, moved, other] = ["app", "moved", "other"].map(|name| folder.path().join(name));
        std::fs::create_dir(&app).unwrap();
        std::fs::create_dir(&other).unwrap();
        let _socket = UnixListener::bind(app.join("s")).unwrap();
        let file = BoundFile::new(&app.join("s")).unwrap();
        std::fs::rename(&app, &moved).unwrap();
        symlink(&other, &app).unwrap();
        std::fs::hard_link(moved.join("s"), other.join("s")).unwrap();
        drop(file);
        assert!(!moved.join("s").exists() && other.join("s").exists());
    }
}
