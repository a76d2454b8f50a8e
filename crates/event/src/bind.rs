//! Creates sockets to listen on.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Stat, lstat, statat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, sockopt};

use crate::system::{family, socket, stream_socket};
use crate::{Address, Fd, refuse_descriptors};

/// How to bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindSettings {
    /// The maximum number of connections that wait to be accepted. The maximum of the system also applies.
    pub backlog: u32,
    /// Whether to bind an address while the system still keeps state of its former connections (TIME_WAIT).
    pub reuse_address: bool,
    /// Whether other sockets with the same setting may bind the same address. The kernel then distributes connections
    /// by a hash of the client's address.
    pub reuse_port: bool,
}

impl Default for BindSettings {
    fn default() -> Self {
        Self { backlog: 4096, reuse_address: true, reuse_port: false }
    }
}

/// Binds a listening socket, for [`crate::Context::accept_from`], and returns it with its address: with port 0, the
/// address contains the port that the system chose.
///
/// The file of a Unix socket without a listener is replaced; any other file is kept. No symbolic link is followed that
/// another user can have created.
///
/// # Errors
/// Those of the system: `AddrInUse` if the address has a listener, or if another file has that path. `PermissionDenied`
/// if another user can have created a symbolic link on the path of a Unix socket.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let address = event::Address::Internet(([127, 0, 0, 1], 0).into());
/// let (_listener, bound) = event::bind(&address, &event::BindSettings::default())?;
/// assert_ne!(bound, address);
/// # Ok(())
/// # }
/// ```
pub fn bind(address: &Address, settings: &BindSettings) -> io::Result<(Fd, Address)> {
    let (socket, bound) = match address {
        Address::Internet(address) => {
            let (socket, bound) =
                on_every_family(address, |address| bind_internet(address, settings))?;
            (socket, Address::Internet(bound))
        }
        Address::Unix(path) => (bind_unix(path, SocketType::STREAM)?, address.clone()),
    };
    let backlog = i32::try_from(settings.backlog).unwrap_or(i32::MAX);
    rustix::net::listen(&socket, backlog)?;
    Ok((socket.into(), bound))
}

/// Binds a datagram socket, for [`crate::Context::datagram`], and returns it with its address. Files of Unix sockets
/// are treated as in [`bind`].
///
/// # Errors
/// Those of the system, as for [`bind`].
pub fn bind_datagrams(address: &Address) -> io::Result<(Fd, Address)> {
    match address {
        Address::Internet(address) => {
            let (socket, bound) = on_every_family(address, |address| {
                let socket = socket(family(address), SocketType::DGRAM)?;
                both_families(&socket, address)?;
                rustix::net::bind(&socket, address)?;
                let bound = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
                Ok((socket, bound))
            })?;
            Ok((socket.into(), Address::Internet(bound)))
        }
        Address::Unix(path) => Ok((bind_unix(path, SocketType::DGRAM)?.into(), address.clone())),
    }
}

fn bind_internet(
    address: &SocketAddr,
    settings: &BindSettings,
) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = stream_socket(family(address))?;
    sockopt::set_socket_reuseaddr(&socket, settings.reuse_address)?;
    if settings.reuse_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    // Accepted sockets inherit it, which saves one system call each.
    sockopt::set_tcp_nodelay(&socket, true)?;
    both_families(&socket, address)?;
    rustix::net::bind(&socket, address)?;
    let bound = rustix::net::getsockname(&socket)?;
    Ok((socket, SocketAddr::try_from(bound)?))
}

/// A socket on every address accepts IPv4 too, whatever `net.ipv6.bindv6only` says.
fn both_families(socket: &OwnedFd, address: &SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V6(address) if address.ip().is_unspecified() => {
            Ok(sockopt::set_ipv6_v6only(socket, false)?)
        }
        _ => Ok(()),
    }
}

/// Binds; on a system without IPv6 every address is every IPv4 address.
fn on_every_family<T>(
    address: &SocketAddr,
    bind: impl Fn(&SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let lacks_ipv6 = |error: &io::Error| {
        [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL]
            .contains(&Errno::from_io_error(error).unwrap_or(Errno::IO))
    };
    match bind(address) {
        Err(error) if address.is_ipv6() && address.ip().is_unspecified() && lacks_ipv6(&error) => {
            bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
        }
        result => result,
    }
}

/// Binds at a path on which no other user can have created a symbolic link.
fn bind_unix(path: &Path, kind: SocketType) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let place = paths::walk(path)?;
    let socket = socket(AddressFamily::UNIX, kind)?;
    refuse_descriptors(&socket);
    if kind == SocketType::DGRAM {
        // Before the first datagram can arrive, because the kernel records its sender on arrival.
        sockopt::set_socket_passcred(&socket, true)?;
    }
    match rustix::net::bind(&socket, &address) {
        Err(Errno::ADDRINUSE) if is_stale(&place, path, &address)? => {
            rustix::fs::unlinkat(&place.folder, &place.name, AtFlags::empty())?;
            rustix::net::bind(&socket, &address)?;
        }
        result => result?,
    }
    // Another user who owns a directory on the path can replace it at any time.
    if !is_at(&place, path) {
        let text = "a directory on the path was replaced meanwhile";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(socket)
}

/// Whether the file at a path is the one in the directory to which the path led.
fn is_at(place: &paths::Place, path: &Path) -> bool {
    let id = |found: Stat| (found.st_dev, found.st_ino);
    let here = statat(&place.folder, &place.name, AtFlags::SYMLINK_NOFOLLOW).map(id);
    here.is_ok() && here == lstat(path).map(id)
}

/// Whether the file is a socket that refuses connections.
fn is_stale(place: &paths::Place, path: &Path, address: &SocketAddrUnix) -> io::Result<bool> {
    let mode = lstat(path)?.st_mode;
    if !FileType::from_raw_mode(mode).is_socket() || !is_at(place, path) {
        return Ok(false);
    }
    let probe = stream_socket(AddressFamily::UNIX)?;
    refuse_descriptors(&probe);
    Ok(rustix::net::connect(&probe, address) == Err(Errno::CONNREFUSED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_asks_as_its_listener_was_told_to() {
        let address = Address::Internet(([127, 0, 0, 1], 0).into());
        let (listener, bound) = bind(&address, &BindSettings::default()).unwrap();
        for (after, idle, between) in [(120, 120, 30), (2, 2, 1), (0, 1, 1), (86_400, 32_767, 8192)]
        {
            crate::keep_alive(&listener, std::time::Duration::from_secs(after));
            let Address::Internet(bound) = bound else { panic!("{bound:?}") };
            let _client = std::net::TcpStream::connect(bound).unwrap();
            // The client has connected before the listener accepts.
            let accepted = loop {
                match crate::system::accept(&listener) {
                    Ok((accepted, _)) => break accepted,
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            };
            assert!(sockopt::socket_keepalive(&accepted).unwrap());
            assert_eq!(sockopt::tcp_keepidle(&accepted).unwrap().as_secs(), idle);
            assert_eq!(sockopt::tcp_keepintvl(&accepted).unwrap().as_secs(), between);
            assert_eq!(sockopt::tcp_keepcnt(&accepted).unwrap(), 4);
        }
    }

    #[test]
    fn every_address_is_one_of_ipv6_or_ipv4_and_clients_of_ipv4_have_their_own() {
        let address = Address::Internet((std::net::Ipv6Addr::UNSPECIFIED, 0).into());
        let (listener, bound) = bind(&address, &BindSettings::default()).unwrap();
        let Address::Internet(bound) = bound else { panic!("{bound:?}") };
        let client = std::net::TcpStream::connect(("127.0.0.1", bound.port())).unwrap();
        let peer = loop {
            match crate::system::accept(&listener) {
                Ok((_, peer)) => break peer,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        assert_eq!(peer, crate::Peer::Internet(client.local_addr().unwrap()));
    }

    #[test]
    fn a_unix_socket_that_nobody_answers_is_replaced_and_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let address = Address::Unix(path.clone());
        let settings = BindSettings::default();
        let (first, bound) = bind(&address, &settings).unwrap();
        assert_eq!(bound, address);
        let error = bind(&address, &settings).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "somebody listens");
        drop(first);
        drop(bind(&address, &settings).unwrap());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        let error = bind(&address, &settings).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    /// Root puts no socket where the owner of a directory on the path wants it.
    #[test]
    fn links_of_other_users_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [theirs, ours] = ["theirs", "ours"].map(|name| folder.path().join(name));
        for directory in [&theirs, &ours] {
            std::fs::create_dir(directory).unwrap();
        }
        std::os::unix::fs::symlink(&ours, theirs.join("link")).unwrap();
        let path = theirs.join("link/socket");
        let bound = || {
            let error = bind(&Address::Unix(path.clone()), &BindSettings::default()).err();
            (error.map(|error| error.kind()), ours.join("socket").exists())
        };
        // Everybody can create links in the directory.
        let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&theirs, mode(0o777)).unwrap();
        assert_eq!(bound(), (Some(io::ErrorKind::PermissionDenied), false));
        std::fs::set_permissions(&theirs, mode(0o755)).unwrap();
        assert_eq!(bound(), (None, true));
    }

    #[test]
    fn a_file_in_another_directory_is_not_the_one_that_was_bound() {
        let folder = tempfile::tempdir().unwrap();
        let [app, moved, other] = ["app", "moved", "other"].map(|name| folder.path().join(name));
        for directory in [&app, &other] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("socket"), "").unwrap();
        }
        let path = app.join("socket");
        let place = paths::walk(&path).unwrap();
        assert!(is_at(&place, &path));
        std::fs::rename(&app, &moved).unwrap();
        std::os::unix::fs::symlink(&other, &app).unwrap();
        assert!(!is_at(&place, &path));
        std::fs::remove_file(moved.join("socket")).unwrap();
        std::fs::remove_file(other.join("socket")).unwrap();
        assert!(!is_at(&place, &path), "there is no file");
    }

    #[test]
    fn a_port_is_shared_only_by_those_who_all_say_so() {
        let any = Address::Internet(([127, 0, 0, 1], 0).into());
        let shared = BindSettings { reuse_port: true, ..BindSettings::default() };
        let (_one, bound) = bind(&any, &shared).unwrap();
        bind(&bound, &shared).unwrap();
        let error = bind(&bound, &BindSettings::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn an_address_is_reused_after_its_connections_only_when_asked_for() {
        let any = Address::Internet(([127, 0, 0, 1], 0).into());
        let (listener, bound) = bind(&any, &BindSettings::default()).unwrap();
        let Address::Internet(to) = bound else { unreachable!() };
        let client = std::net::TcpStream::connect(to).unwrap();
        let (accepted, _) = {
            let listener = system_listener(listener);
            listener.set_nonblocking(false).unwrap();
            listener.accept().unwrap()
        };
        // Our end closes first, so the system keeps the connection (TIME_WAIT).
        drop(accepted);
        assert_eq!(io::Read::read(&mut &client, &mut [0; 1]).unwrap(), 0);
        drop(client);
        let strict = BindSettings { reuse_address: false, ..BindSettings::default() };
        let error = bind(&Address::Internet(to), &strict).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        bind(&Address::Internet(to), &BindSettings::default()).unwrap();
    }

    fn system_listener(fd: Fd) -> std::net::TcpListener {
        std::os::fd::AsFd::as_fd(&fd).try_clone_to_owned().unwrap().into()
    }

    #[test]
    fn an_address_in_use_is_an_error() {
        let any = Address::Internet(([127, 0, 0, 1], 0).into());
        let (_listener, bound) = bind(&any, &BindSettings::default()).unwrap();
        let error = bind(&bound, &BindSettings::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
