//! The listening socket of the admin address.

use std::io;
use std::net::TcpListener;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::{Gid, Mode};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use settings::Address;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

pub(crate) enum Socket {
    Internet(TcpListener),
    Unix(UnixListener),
}

/// Binds the address, and returns it with the port that the system chose where it was 0. `group` is
/// the group of a Unix socket.
pub(crate) fn bind(listen: &Address, group: Option<u32>) -> io::Result<(Address, Socket)> {
    match listen {
        Address::Internet(address) => {
            let socket = TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok((Address::Internet(socket.local_addr()?), Socket::Internet(socket)))
        }
        Address::Unix(path) => {
            remove_stale(path)?;
            let socket = bind_unix(path, group)?;
            Ok((Address::Unix(path.clone()), Socket::Unix(socket)))
        }
        Address::Inherited(_) | Address::Named(_) => {
            let text = "the admin address must be an IP address or a Unix socket";
            Err(io::Error::new(io::ErrorKind::Unsupported, text))
        }
    }
}

/// Removes the socket of a daemon that was killed. One that somebody serves on stays, and a file that
/// is not a socket too.
fn remove_stale(path: &Path) -> io::Result<()> {
    let refused = UnixStream::connect(path)
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if refused && is_socket {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Mode 0660 with the group, before anybody can connect: a bound socket that does not listen yet
/// refuses connections. The mode that it is bound with comes from the socket itself, so that the umask
/// does not decide it and no path is looked up a second time for it.
fn bind_unix(path: &Path, group: Option<u32>) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    if let Some(group) = group {
        rustix::fs::chown(path, None, Some(Gid::from_raw(group)))?;
    }
    rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_unix_socket_is_for_its_user_and_its_group() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("admin.sock");
        let group = rustix::process::getegid().as_raw();
        let (bound, socket) = bind(&Address::Unix(path.clone()), Some(group)).expect("it is bound");
        assert_eq!(bound, Address::Unix(path.clone()));
        let found = std::fs::metadata(&path).expect("a file");
        assert_eq!((found.mode() & 0o7777, found.gid()), (0o660, group));
        let taken = bind(&Address::Unix(path.clone()), None).map(drop);
        assert_eq!(taken.expect_err("it is in use").kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        bind(&Address::Unix(path), None).expect("a stale socket is replaced");
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
