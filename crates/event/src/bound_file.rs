//! The files of bound Unix sockets.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file of a bound Unix socket. Dropping this value removes the file, unless another process has bound a socket at
/// the path since.
#[derive(Debug)]
pub struct BoundFile {
    path: PathBuf,
    id: (u64, u64),
}

impl BoundFile {
    /// Notes the file at the path of a socket that was just bound.
    ///
    /// # Errors
    /// There is no such file, or it cannot be examined.
    pub fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), id: id(path)? })
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
        if id(&self.path).is_ok_and(|id| id == self.id) {
            std::fs::remove_file(&self.path)?;
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
fn id(path: &Path) -> io::Result<(u64, u64)> {
    let data = std::fs::symlink_metadata(path)?;
    Ok((data.dev(), data.ino()))
}

#[cfg(test)]
mod tests {
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
}
