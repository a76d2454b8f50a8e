//! The listening socket of the admin address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use event::BoundFile;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use settings::Address;

/// The maximum number of connections that wait to be accepted. The system may have a lower limit
/// (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

pub(crate) enum Socket {
    Internet(TcpListener),
    Unix(UnixListener),
}

/// Binds the address, and returns it with the port that the system chose if the port was 0, and the file of a Unix
/// socket. `group` is the group of a Unix socket.
pub(crate) fn bind(
    listen: &Address,
    group: Option<u32>,
) -> io::Result<(Address, Socket, Option<BoundFile>)> {
    match listen {
        Address::Internet(address) => {
            let socket = TcpListener::bind(address).or_else(|error| match address.ip() {
                // The system has no IPv6.
                IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).map_err(|_| error)
                }
                _ => Err(error),
            })?;
            // This is called a second time, because the backlog of the standard library is shorter.
            rustix::net::listen(&socket, BACKLOG)?;
            socket.set_nonblocking(true)?;
            Ok((Address::Internet(socket.local_addr()?), Socket::Internet(socket), None))
        }
        Address::Unix(path) => {
            let real = protected_path(path)?;
            remove_stale(&real)?;
            let socket = bind_unix(&real, group)?;
            let file = BoundFile::new(&real)?;
            Ok((Address::Unix(path.clone()), Socket::Unix(socket), Some(file)))
        }
        Address::Inherited(_) | Address::Named(_) => {
            let text = "the admin address must be an IP address or a Unix socket";
            Err(io::Error::new(io::ErrorKind::Unsupported, text))
        }
    }
}

/// Removes the socket of a daemon that was killed. A socket on which a process listens is kept, and so is a file that
/// is not a socket.
fn remove_stale(path: &Path) -> io::Result<()> {
    let refused = UnixStream::connect(path)
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if refused && is_socket {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Binds a Unix socket with mode 0660 and the group, before any client can connect: a bound socket that does not listen
/// yet refuses connections.
fn bind_unix(path: &Path, group: Option<u32>) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    event::refuse_descriptors(&socket);
    // The mode of the bound file is taken from the socket.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    give_access(path, group)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Changes the group and the mode of the socket at a path. The path is resolved once, without following a link. The
/// file is changed only if it is a socket of this user.
fn give_access(path: &Path, group: Option<u32>) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let found = rustix::fs::fstat(&file)?;
    let is_socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
    if !is_socket || found.st_uid != rustix::process::geteuid().as_raw() {
        return Err(denied(path, "was replaced by somebody else"));
    }
    if let Some(group) = group {
        let group = Some(Gid::from_raw(group));
        rustix::fs::chownat(&file, "", None, group, AtFlags::EMPTY_PATH)?;
    }
    // If a file was opened with `O_PATH`, the kernel changes its mode only through this name.
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::chmod(name, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP)?;
    Ok(())
}

/// Returns the path of a socket without links, if only root and this user can replace the file: they own each directory
/// above it, and no other user may write to such a directory unless it has the sticky bit.
fn protected_path(path: &Path) -> io::Result<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new(".")).canonicalize()?;
    let user = rustix::process::geteuid().as_raw();
    for directory in parent.ancestors() {
        let found = std::fs::symlink_metadata(directory)?;
        let is_owned = [0, user].contains(&found.uid());
        if !is_owned || found.mode() & 0o022 != 0 && found.mode() & 0o1000 == 0 {
            return Err(denied(directory, "can be changed by other users"));
        }
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(parent.join(name))
}

fn denied(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unix_socket_is_for_its_user_and_its_group() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("admin.sock");
        let group = rustix::process::getegid().as_raw();
        let bound = bind(&Address::Unix(path.clone()), Some(group));
        let (bound, socket, file) = bound.expect("it is bound");
        assert_eq!(bound, Address::Unix(path.clone()));
        let found = std::fs::metadata(&path).expect("a file");
        assert_eq!((found.mode() & 0o7777, found.gid()), (0o660, group));
        let taken = bind(&Address::Unix(path.clone()), None).map(drop);
        assert_eq!(taken.expect_err("it is in use").kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        // As after a kill.
        std::mem::forget(file);
        assert!(path.exists());
        bind(&Address::Unix(path.clone()), None).expect("a stale socket is replaced");
        assert!(!path.exists(), "the file was dropped");
    }

    #[test]
    fn a_directory_that_others_can_change_is_refused() {
        use std::fs::{Permissions, set_permissions};
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        let path = inner.join("admin.sock");
        // The directory itself, then a directory above it.
        for open in [inner.as_path(), folder.path()] {
            set_permissions(open, Permissions::from_mode(0o777)).expect("a mode");
            let refused = bind(&Address::Unix(path.clone()), None).map(drop);
            assert_eq!(
                refused.expect_err("others can change it").kind(),
                io::ErrorKind::PermissionDenied
            );
            assert!(!path.exists());
            set_permissions(open, Permissions::from_mode(0o1777)).expect("a mode");
            bind(&Address::Unix(path.clone()), None).expect("only its owner can rename the socket");
            assert!(!path.exists(), "the file was dropped");
            set_permissions(open, Permissions::from_mode(0o755)).expect("a mode");
        }
    }

    #[test]
    fn permissions_are_not_set_through_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let (secret, path) = (folder.path().join("secret"), folder.path().join("admin.sock"));
        std::fs::write(&secret, "x").expect("a file");
        set_mode(&secret, 0o600);
        std::os::unix::fs::symlink(&secret, &path).expect("a link");
        assert!(give_access(&path, None).is_err(), "it is a link");
        assert!(give_access(&secret, None).is_err(), "it is no socket");
        assert_eq!(std::fs::metadata(&secret).expect("a file").mode() & 0o777, 0o600);
    }

    fn set_mode(path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }

    #[test]
    fn a_file_that_is_not_a_socket_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("precious");
        std::fs::write(&path, "x").expect("a file");
        assert!(bind(&Address::Unix(path.clone()), None).is_err());
        assert_eq!(std::fs::read(&path).expect("it is there"), b"x");
    }
}
