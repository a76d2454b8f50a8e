//! Checks which local users may be a database server.
//!
//! Any local user can listen on the port of a database while the database does not run, or at the path of its socket if
//! every user can write to its directory. Without TLS nothing proves who listens: such a user would receive passwords
//! and rows, could acknowledge the rows, and could send data that the drivers do not expect. So connections are made
//! only to root, the user of this process or a system user.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Once;

use tokio::net::{TcpStream, lookup_host};

use crate::{DatabaseError, Host, Server, Tls};

/// User ids from this one on belong to people, as `useradd` assigns them. Databases run as a user below it.
const FIRST_PERSONAL_UID: u32 = 1000;

/// The user who would accept a connection.
#[derive(Debug)]
enum Listener {
    /// A user who may be a database, or no user of this machine.
    Trusted,
    Stranger(u32),
    Nobody(io::Error),
}

/// Returns the address to connect to, if it is a port of this machine without TLS. `None`: connect to the host.
///
/// # Errors
/// Returns an error if another user listens there, or none.
pub(crate) async fn place(server: &Server, name: &str) -> Result<Option<IpAddr>, DatabaseError> {
    let Server { host, tls: Tls::Off, .. } = server else { return Ok(None) };
    let unreachable = |text: String| DatabaseError::Unreachable(name.to_owned(), text.into());
    let (host, port) = match host {
        Host::Internet(host, port) => (host, port),
        Host::Socket(path, port) => {
            // PostgreSQL has its socket in a directory.
            let file = format!(".s.PGSQL.{port}");
            let path = if path.is_dir() { &path.join(file) } else { path };
            return socket(path).map(|()| None).map_err(unreachable);
        }
    };
    let found = lookup_host((host.as_str(), *port)).await;
    let found: Vec<SocketAddr> = found.map_err(|error| unreachable(error.to_string()))?.collect();
    if !found.iter().any(|address| is_here(address.ip())) {
        return Ok(None);
    }
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in found {
        match listener(address).await {
            Listener::Trusted => return Ok(Some(address.ip())),
            Listener::Stranger(user) => return Err(unreachable(refusal(user, address))),
            Listener::Nobody(error) => last = error,
        }
    }
    Err(unreachable(last.to_string()))
}

/// Checks whether another user now listens at an address that was verified before.
#[cfg(feature = "mysql")]
pub(crate) async fn check(address: SocketAddr) -> io::Result<()> {
    match listener(address).await {
        Listener::Trusted => Ok(()),
        Listener::Stranger(user) => Err(io::Error::other(refusal(user, address))),
        Listener::Nobody(error) => Err(error),
    }
}

fn refusal(user: u32, address: SocketAddr) -> String {
    format!(
        "nothing is sent: user {user} listens on {address}, and not root, the user of this process or a user of \
         the system (below {FIRST_PERSONAL_UID}); use TLS (`tls = \"on\"`) or the Unix socket of the database (`?socket=` in \
         `database`)"
    )
}

/// Checks that no user of this machine except the owner can have put a socket at this path.
fn socket(path: &Path) -> Result<(), String> {
    let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for entry in path.ancestors().chain(resolved.ancestors()) {
        let parent = entry.parent().unwrap_or(entry).metadata();
        // A missing file is reported by the driver.
        let (Ok(found), Ok(parent)) = (entry.symlink_metadata(), parent) else { continue };
        if parent.mode() & 0o002 != 0 && is_stranger(found.uid()) {
            return Err(format!(
                "nothing is sent: {} belongs to user {}, and not to root, the user of this process or a user of \
                 the system (below {FIRST_PERSONAL_UID}), and everybody can write to its directory; use a socket in a \
                 directory of the database alone",
                entry.display(),
                found.uid()
            ));
        }
    }
    Ok(())
}

async fn listener(address: SocketAddr) -> Listener {
    if !is_here(address.ip()) {
        return Listener::Trusted;
    }
    let address = reached(address);
    match classify(listeners::listener(address)) {
        Some(listener) => listener,
        None => match TcpStream::connect(address).await {
            Err(error) => Listener::Nobody(error),
            Ok(stream) => reached_by(address, &stream).unwrap_or_else(Listener::Nobody),
        },
    }
}

/// Returns who accepts a connection if there was no listener before. The kernel may route it to another machine or to a
/// container: then no user of this machine can receive it.
fn reached_by(address: SocketAddr, stream: &TcpStream) -> io::Result<Listener> {
    let own = stream.local_addr()?;
    match classify(listeners::acceptor(address, own)) {
        Some(listener) => Ok(listener),
        None if listeners::leads_elsewhere(address, own)? => Ok(Listener::Trusted),
        None => Ok(Listener::Nobody(io::ErrorKind::ConnectionReset.into())),
    }
}

/// Classifies an answer of the kernel. `None`: the kernel found no user of this machine.
fn classify(found: io::Result<Option<listeners::Acceptor>>) -> Option<Listener> {
    match found {
        Ok(Some(found)) if is_stranger(found.user) => Some(Listener::Stranger(found.user)),
        Ok(Some(_)) => Some(Listener::Trusted),
        Ok(None) => None,
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Some(unknown(&error)),
        // Another user can be the cause. The next attempt may have an answer.
        Err(error) => {
            let text =
                format!("nothing is sent: the kernel did not say who listens there: {error}");
            Some(Listener::Nobody(io::Error::new(error.kind(), text)))
        }
    }
}

fn is_stranger(user: u32) -> bool {
    user >= FIRST_PERSONAL_UID && user != rustix::process::geteuid().as_raw()
}

fn unknown(error: &io::Error) -> Listener {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            "the kernel does not say who listens on a port ({error}): another local user can take that of a \
             database, and gets its password and its rows"
        );
    });
    Listener::Trusted
}

/// Whether a connection to this address stays on this machine.
fn is_here(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

/// Returns where a connection to this address goes: a connection to the unspecified address goes to this machine.
fn reached(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, fchown, lchown, symlink};
    use std::time::Duration;

    use super::*;
    use crate::Secret;

    #[test]
    fn a_database_runs_as_root_the_own_user_or_one_of_the_system() {
        let own = rustix::process::geteuid().as_raw();
        let judged = |user| classify(Ok(Some(listeners::Acceptor { user, socket: 1 })));
        for user in [0, own, 70, 999] {
            assert!(matches!(judged(user), Some(Listener::Trusted)), "{user}");
        }
        assert!(matches!(judged(65_534), Some(Listener::Stranger(65_534))));
        assert!(classify(Ok(None)).is_none());
    }

    #[test]
    fn nothing_is_sent_where_the_kernel_fails_to_say_who_listens() {
        let judged = |kind: io::ErrorKind| classify(Err(kind.into()));
        for kind in [io::ErrorKind::FileTooLarge, io::ErrorKind::WouldBlock] {
            let Some(Listener::Nobody(error)) = judged(kind) else { panic!("{kind}") };
            assert!(error.to_string().contains("nothing is sent"), "{error}");
        }
        assert!(matches!(judged(io::ErrorKind::Unsupported), Some(Listener::Trusted)));
    }

    /// The kernel finds a socket that is bound to the loopback device only in a query for this device.
    #[test]
    fn another_user_is_no_database_also_on_the_loopback_device_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        // Before Linux 5.7 this needs a capability.
        if !rustix::process::geteuid().is_root() || socket.bind_device(Some(b"lo")).is_err() {
            return;
        }
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let listener = socket.listen(1).unwrap();
        fchown(&listener, Some(65_534), None).unwrap();
        let port = listener.local_addr().unwrap().port();
        let it = server(Host::Internet("127.0.0.1".to_owned(), port), Some("secret"));
        let refused = runtime.block_on(place(&it, "db")).map_err(|error| error.to_string());
        assert!(refused.unwrap_err().contains("user 65534 listens"));
    }

    /// The listener may be closed before it is found. The next connection would reach it too.
    #[test]
    fn a_listener_that_comes_and_goes_is_no_other_machine() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stream = runtime.block_on(TcpStream::connect(address)).unwrap();
        drop(listener.accept().unwrap());
        drop(listener);
        let found = reached_by(address, &stream).unwrap();
        assert!(matches!(found, Listener::Nobody(_)), "{found:?}");
    }

    fn server(host: Host, password: Option<&str>) -> Server {
        Server {
            host,
            user: "app".to_owned(),
            password: password.map(|text| Secret::new(text.to_owned())),
            database: "app".to_owned(),
            tls: Tls::Off,
            connect_timeout: Duration::from_secs(10),
        }
    }

    fn found(server: &Server) -> Result<Option<IpAddr>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(place(server, "db")).map_err(|error| error.to_string())
    }

    #[test]
    fn another_user_is_no_database_with_or_without_a_password() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let to = |password| server(Host::Internet("127.0.0.1".to_owned(), port), password);
        for password in [None, Some("secret")] {
            assert_eq!(found(&to(password)), Ok(Some(Ipv4Addr::LOCALHOST.into())));
        }
        if !rustix::process::geteuid().is_root() {
            return;
        }
        fchown(&listener, Some(65_534), None).unwrap();
        for password in [None, Some("secret")] {
            let refused = found(&to(password)).unwrap_err();
            assert!(refused.contains("user 65534 listens"), "{refused}");
        }
    }

    #[test]
    fn a_socket_that_anybody_could_have_made_is_no_database_of_another_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db.sock");
        let file = folder.path().join(".s.PGSQL.5432");
        let hosts =
            || [Host::Socket(path.clone(), 0), Host::Socket(folder.path().to_owned(), 5432)];
        let _sockets = [&path, &file].map(|it| std::os::unix::net::UnixListener::bind(it).unwrap());
        let mode = |mode| {
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
        };
        mode(0o1777);
        for host in hosts() {
            assert_eq!(found(&server(host, None)), Ok(None));
        }
        if !rustix::process::geteuid().is_root() {
            return;
        }
        for path in [&path, &file] {
            lchown(path, Some(65_534), None).unwrap();
        }
        for host in hosts() {
            let refused = found(&server(host, None)).unwrap_err();
            assert!(refused.contains("belongs to user 65534"), "{refused}");
        }
        // A link of that user to another socket is rejected too.
        let linked = folder.path().join("linked");
        symlink(&path, &linked).unwrap();
        mode(0o755);
        for host in hosts().into_iter().chain([Host::Socket(linked.clone(), 0)]) {
            assert_eq!(found(&server(host, None)), Ok(None), "its directory is closed");
        }
        lchown(&path, Some(0), None).unwrap();
        lchown(&linked, Some(65_534), None).unwrap();
        mode(0o1777);
        assert!(found(&server(Host::Socket(linked, 0), None)).is_err());
    }

    #[test]
    fn addresses_of_this_machine_are_known_however_they_are_written() {
        for text in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "0.0.0.0:1"] {
            assert!(is_here(text.parse::<SocketAddr>().unwrap().ip()), "{text}");
        }
        assert!(!is_here([192, 0, 2, 1].into()));
        for (text, wanted) in [
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("[::]:1", "[::1]:1"),
            ("[::ffff:127.0.0.1]:1", "127.0.0.1:1"),
        ] {
            assert_eq!(reached(text.parse().unwrap()).to_string(), wanted);
        }
    }
}
