//! The token of a daemon whose admin address is a loopback port without a configured token.
//!
//! Every local user can connect to such a port. So the daemon creates a random token at its start, in a
//! file that only its user (and root) can read, and `ctl` and `ask` read it there: whoever may read the
//! file may control the daemon. The name of the file is made of the address.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 32;

/// A token file that exists until this is dropped.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    token: String,
}

impl TokenFile {
    /// Creates the file for an address, in place of one that a daemon left there.
    ///
    /// # Errors
    /// When no directory can be had that nobody else can change.
    pub(crate) fn create(address: SocketAddr) -> io::Result<Self> {
        Self::create_in(&own_directory(), address)
    }

    fn create_in(directory: &Path, address: SocketAddr) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(directory)?;
        if !found.is_dir()
            || found.uid() != rustix::process::geteuid().as_raw()
            || found.mode() & 0o022 != 0
        {
            let text = format!("{} can be changed by other users", directory.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        let token = random_token()?;
        let path = directory.join(file_name(address));
        // Mode 0600, and renamed, so that nobody finds it half written.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        writeln!(file, "{token}")?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(Self { path, token })
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // Not one that a later daemon has put there.
        if fs::read_to_string(&self.path).is_ok_and(|text| text.trim_end() == self.token) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The token of the daemon that listens on a loopback address, if this user may read it.
#[must_use]
pub fn local_token(address: SocketAddr) -> Option<String> {
    let system = PathBuf::from("/run/roadstead");
    [own_directory(), system].into_iter().find_map(|directory| {
        let text = settings::read_named_text(&directory.join(file_name(address))).ok()?;
        Some(text.trim_end().to_owned()).filter(|text| !text.is_empty())
    })
}

/// The directory of this user: what the service manager or the session provides, else one below
/// `/run` for root and below the directory of temporary files for everybody else.
fn own_directory() -> PathBuf {
    let given = |name: &str| {
        let value = std::env::var_os(name)?.into_string().ok()?;
        // systemd separates several by colons.
        let first = value.split(':').next().map(PathBuf::from)?;
        Some(first).filter(|path| path.is_absolute() && path.is_dir())
    };
    if let Some(directory) = given("RUNTIME_DIRECTORY") {
        return directory;
    }
    if let Some(session) = given("XDG_RUNTIME_DIR") {
        return session.join("roadstead");
    }
    match rustix::process::geteuid().as_raw() {
        0 => PathBuf::from("/run/roadstead"),
        user => std::env::temp_dir().join(format!("roadstead-admin-{user}")),
    }
}

fn file_name(address: SocketAddr) -> String {
    format!("admin-{address}.token")
}

/// Hexadecimal digits from the random source of the system.
fn random_token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    event::fill_random(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn address() -> SocketAddr {
        "127.0.0.1:7070".parse().expect("an address")
    }

    #[test]
    fn a_token_file_is_private_and_exists_as_long_as_its_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("roadstead");
        let one = TokenFile::create_in(&directory, address()).expect("a file");
        let path = directory.join("admin-127.0.0.1:7070.token");
        let mode = fs::metadata(&path).expect("a file").mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(fs::metadata(&directory).expect("a directory").mode() & 0o7777, 0o700);
        let other = TokenFile::create_in(&directory, address()).expect("it is replaced");
        assert_ne!(one.token(), other.token());
        drop(one);
        let kept = fs::read_to_string(&path).expect("it is the other's");
        assert_eq!(kept.trim_end(), other.token());
        drop(other);
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_that_others_can_change_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = folder.path().join("open");
        fs::create_dir(&open).expect("a directory");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("a mode");
        let link = folder.path().join("link");
        symlink(folder.path(), &link).expect("a link");
        for directory in [open, link] {
            let refused = TokenFile::create_in(&directory, address()).map(drop);
            let error = refused.expect_err("it is not private");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
    }
}
