//! Who gets a password on a port of this machine.
//!
//! Any local user can listen on the port of a database while that does not run, ask for the password in clear
//! text or with a key of their own, and would get it: without TLS nothing proves who listens. So a
//! password goes to such a port only if root, the user of this process or a user of the system listens there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Once;

use tokio::net::{TcpStream, lookup_host};

use crate::{DatabaseError, Host, Server, Tls};

/// Users from this one on are people's, as `useradd` gives them out; databases run as one below it.
const PEOPLE: u32 = 1000;

/// Who would take a connection.
#[derive(Debug)]
enum Listener {
    /// Somebody who may have the password, or nobody of this machine.
    Trusted,
    Stranger(u32),
    Nobody(io::Error),
}

/// Where to connect to, if a password is to go to a port of this machine without TLS. None: wherever the
/// host is.
///
/// # Errors
/// When somebody else listens there, or nobody.
pub(crate) async fn place(server: &Server, name: &str) -> Result<Option<IpAddr>, DatabaseError> {
    let Server { host, password: Some(_), tls: Tls::Off, .. } = server else { return Ok(None) };
    let Host::Internet(host, port) = host else { return Ok(None) };
    let unreachable = |text: String| DatabaseError::Unreachable(name.to_owned(), text.into());
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

/// Whether somebody else listens now at an address that was the right one.
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
        "the password is not sent: user {user} listens on {address}, and not root, the user of this process or a \
         user of the system (below {PEOPLE}); use TLS (`tls = \"on\"`) or the Unix socket of the database \
         (`?socket=` in `database`)"
    )
}

async fn listener(address: SocketAddr) -> Listener {
    if !is_here(address.ip()) {
        return Listener::Trusted;
    }
    let address = reached(address);
    let users = match listeners::at(address) {
        Ok(users) => users,
        Err(error) => return unknown(&error),
    };
    if !users.is_empty() {
        return judge(users);
    }
    // The kernel may bring the connection to another machine or to a container. Nobody else can get it then.
    match TcpStream::connect(address).await {
        Err(error) => Listener::Nobody(error),
        Ok(stream) => match stream.local_addr().and_then(|own| listeners::acceptor(address, own)) {
            Ok(user) => judge(user),
            Err(error) => unknown(&error),
        },
    }
}

fn judge(users: impl IntoIterator<Item = u32>) -> Listener {
    let own = rustix::process::geteuid().as_raw();
    let stranger = users.into_iter().find(|&user| user >= PEOPLE && user != own);
    stranger.map_or(Listener::Trusted, Listener::Stranger)
}

fn unknown(error: &io::Error) -> Listener {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            "the kernel does not say who listens on a port ({error}): another local user can take that of a \
             database and get its password"
        );
    });
    Listener::Trusted
}

/// Whether a connection to this address stays on this machine.
fn is_here(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

/// Where a connection to this address goes: that to all addresses goes to this machine.
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
    use super::*;

    #[test]
    fn a_password_is_for_root_the_own_user_and_those_of_the_system() {
        let own = rustix::process::geteuid().as_raw();
        for users in [&[][..], &[0], &[own], &[70], &[999, 0]] {
            let found = judge(users.iter().copied());
            assert!(matches!(found, Listener::Trusted), "{users:?}: {found:?}");
        }
        for users in [&[65_534][..], &[0, 65_534]] {
            let found = judge(users.iter().copied());
            assert!(matches!(found, Listener::Stranger(65_534)), "{users:?}: {found:?}");
        }
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
