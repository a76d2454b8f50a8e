//! The token of a daemon whose admin address is a loopback port without a configured token.
//!
//! Every local user can connect to such a port. Therefore the daemon creates a random token at its start, in a file
//! that only its user (and root) can read. `ctl` and `ask` read the token from this file: a user who may read the file
//! may control the daemon. The name of the file is derived from the address.

use std::fs::{self, DirBuilder};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The number of random bytes in a token.
const TOKEN_BYTES: usize = 32;
/// The number of hexadecimal digits of a token.
const DIGITS: usize = 2 * TOKEN_BYTES;
/// The directory of a system daemon, for any user it runs as.
const SYSTEM: &str = "/run/roadstead";

/// A token file that exists until this is dropped.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    token: String,
}

impl TokenFile {
    /// Creates the file for an address. It replaces the file of an earlier daemon.
    ///
    /// # Errors
    /// No directory is available that other users cannot change.
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
        // The file has mode 0600 and is renamed when it is complete, so that no reader finds a part of it.
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
        // The file of a later daemon is not removed.
        if fs::read_to_string(&self.path).is_ok_and(|text| text.trim_end() == self.token) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the token of the daemon that listens on a loopback address, and the user who owns its file, if this user may
/// read the file.
#[must_use]
pub fn local_token(address: SocketAddr) -> Option<(String, u32)> {
    let system = PathBuf::from(SYSTEM);
    [own_directory(), system].into_iter().find_map(|directory| read_in(&directory, address))
}

/// Returns the token in a directory that only its owner can change, from a private file of the same owner. Only a valid
/// token is returned, because the process that listens on the address receives it.
fn read_in(directory: &Path, address: SocketAddr) -> Option<(String, u32)> {
    let flags = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let folder = rustix::fs::open(directory, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let found = rustix::fs::fstat(&folder).ok()?;
    let user = rustix::process::geteuid().as_raw();
    // Root may use the daemon of any user, in a directory below the system directory, which only root can change.
    let is_trusted = [0, user].contains(&found.st_uid) || directory == Path::new(SYSTEM);
    if !is_trusted || found.st_mode & 0o022 != 0 {
        return None;
    }
    let file = rustix::fs::openat(&folder, file_name(address), flags, Mode::empty()).ok()?;
    let (file, owner) = (fs::File::from(file), found.st_uid);
    let found = file.metadata().ok()?;
    if !found.is_file() || found.uid() != owner || found.mode() & 0o077 != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(2 * DIGITS as u64).read_to_string(&mut text).ok()?;
    let token = text.trim_end();
    let is_token = token.len() == DIGITS && token.bytes().all(|it| it.is_ascii_hexdigit());
    is_token.then(|| (token.to_owned(), owner))
}

/// Whether a directory belongs to this user and no other user can change it.
fn is_own(path: &Path) -> bool {
    let found = path.canonicalize().and_then(fs::symlink_metadata);
    let user = rustix::process::geteuid().as_raw();
    let is_private = |it: fs::Metadata| it.is_dir() && it.uid() == user && it.mode() & 0o022 == 0;
    path.is_absolute() && found.is_ok_and(is_private)
}

/// Returns the directory of this user. This is the directory that the service manager or the session provides, if it
/// belongs to this user. Otherwise it is one below `/run` for root, and one below the directory of temporary files for
/// other users.
fn own_directory() -> PathBuf {
    let given = |name: &str| {
        let value = std::env::var_os(name)?.into_string().ok()?;
        // systemd separates several directories by colons.
        let first = value.split(':').next().map(PathBuf::from)?;
        Some(first).filter(|path| is_own(path))
    };
    if let Some(directory) = given("RUNTIME_DIRECTORY") {
        return directory;
    }
    if let Some(session) = given("XDG_RUNTIME_DIR") {
        return session.join("roadstead");
    }
    match rustix::process::geteuid().as_raw() {
        0 => PathBuf::from(SYSTEM),
        user => std::env::temp_dir().join(format!("roadstead-admin-{user}")),
    }
}

fn file_name(address: SocketAddr) -> String {
    format!("admin-{address}.token")
}

/// Returns hexadecimal digits from the random source of the system.
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
    fn only_a_token_that_nobody_else_can_have_put_there_is_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("roadstead");
        let file = TokenFile::create_in(&directory, address()).expect("a file");
        let own = Some((file.token().to_owned(), rustix::process::geteuid().as_raw()));
        assert_eq!(read_in(&directory, address()), own);
        for (path, wrong, right) in [(&directory, 0o777, 0o700), (&file.path, 0o644, 0o600)] {
            fs::set_permissions(path, fs::Permissions::from_mode(wrong)).expect("a mode");
            assert_eq!(read_in(&directory, address()), None, "{}", path.display());
            fs::set_permissions(path, fs::Permissions::from_mode(right)).expect("a mode");
        }
        assert_eq!(read_in(&directory, address()), own);
        // A different file of this user, as a link or with different content.
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&file.path, &elsewhere).expect("it is renamed");
        symlink(&elsewhere, &file.path).expect("a link");
        assert_eq!(read_in(&directory, address()), None, "a link");
        fs::remove_file(&file.path).expect("a link");
        for text in ["secret", &"x".repeat(64), &"a".repeat(65), ""] {
            fs::write(&file.path, text).expect("a file");
            fs::set_permissions(&file.path, fs::Permissions::from_mode(0o600)).expect("a mode");
            assert_eq!(read_in(&directory, address()), None, "{text}");
        }
    }

    #[test]
    fn a_directory_of_the_environment_is_used_only_if_nobody_else_can_change_it() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(is_own(folder.path()));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("a mode");
        assert!(!is_own(folder.path()));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("a mode");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(60001), None).expect("an owner");
            assert!(!is_own(folder.path()));
        }
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
