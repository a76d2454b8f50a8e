#![doc = include_str!("../README.md")]
//!
//! # Scope
//!
//! What it is: the user ids of sockets. What it depends on: addresses and the kernel. What it must never depend on: the
//! caller and its reasons.
//!
//! The kernel looks up one socket per query. So the cost does not depend on the number of sockets, which other users
//! can increase, and an answer is never truncated. No function blocks.

#![forbid(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`, `NLMSG_DONE` and `NLMSG_ERROR`.
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`, alone and with `NLM_F_DUMP`.
const LOOK_UP: u16 = 0x1;
const DUMP: u16 = 0x301;
/// `TCP_ESTABLISHED` and `TCP_LISTEN`.
const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;
/// `LOOPBACK_IFINDEX`: connections within a machine arrive at this device, also those to its other addresses. With this
/// device the kernel finds sockets that are bound to it (`SO_BINDTODEVICE`) and those that are bound to no device.
const LOOPBACK: u32 = 1;

/// The size of the header of a message, of a request, and of an answer, in bytes.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const ANSWER: usize = 72;

/// A socket at the server end of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Acceptor {
    /// The user who created the socket.
    pub user: u32,
    /// The inode number of the socket. No other socket has the same number at the same time.
    pub socket: u32,
}

/// Returns the user who has accepted the connection from `client` to `server`, an address of this machine, or who will
/// accept it: before it is accepted, this is the user who listens at the address. `None`: no user of this machine.
///
/// # Errors
/// Returns an error of the kind `Unsupported` if the kernel can never answer, because it was built without this
/// interface or a sandbox forbids it. Any other error means that there is no answer this time. Another user may be the
/// cause.
pub fn acceptor(server: SocketAddr, client: SocketAddr) -> io::Result<Option<Acceptor>> {
    let socket = open()?;
    let accepted = look_up(&socket, server, client)?.filter(Found::is_owned);
    if let Some(found) = accepted {
        return Ok(Some(found.acceptor()));
    }
    let listener = look_up(&socket, server, any_client(server))?;
    // A connection that was not accepted ends with its listener. So if the connection still exists and was not
    // accepted, it belongs to this listener.
    let accepted = look_up(&socket, server, client)?.filter(Found::is_owned);
    or_check_support(&socket, accepted.or(listener))
}

/// Returns the socket that accepts new connections of this machine to a TCP address. `None`: there is no such socket on
/// this machine.
///
/// # Errors
/// As for [`acceptor`].
pub fn listener(server: SocketAddr) -> io::Result<Option<Acceptor>> {
    let socket = open()?;
    let found = look_up(&socket, server, any_client(server))?;
    or_check_support(&socket, found)
}

/// Whether a connection that this process made to an address of this machine leads to another machine, or to a
/// container: the connection is open, and no socket of this machine is at its other end. A connection that its peer has
/// closed does not lead elsewhere.
///
/// # Errors
/// As for [`acceptor`].
pub fn leads_elsewhere(server: SocketAddr, client: SocketAddr) -> io::Result<bool> {
    let socket = open()?;
    let is_open = || {
        let own = look_up(&socket, client, server)?;
        Ok::<_, io::Error>(own.is_some_and(|own| own.state == ESTABLISHED))
    };
    // If the peer closes during the lookup, the connection is no longer open afterwards.
    Ok(is_open()? && look_up(&socket, server, client)?.is_none() && is_open()?)
}

/// Returns an address that no client has.
fn any_client(server: SocketAddr) -> SocketAddr {
    match server.ip().to_canonical() {
        IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        IpAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

/// Returns the result of a lookup. A kernel that cannot look up TCP sockets finds nothing either, so this case is
/// checked.
fn or_check_support(socket: &OwnedFd, found: Option<Found>) -> io::Result<Option<Acceptor>> {
    match found {
        Some(found) => Ok(Some(found.acceptor())),
        None => check_support(socket).map(|()| None),
    }
}

/// Checks that the kernel can look up TCP sockets, with a query for all sockets in an empty set of states.
fn check_support(socket: &OwnedFd) -> io::Result<()> {
    let request = request(libc::AF_INET, DUMP, 0);
    sendto(socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).map_err(fault)?;
    let mut buffer = [0; 4 << 10];
    let (_, count) = recv(socket, &mut buffer[..], RecvFlags::empty()).map_err(fault)?;
    supported(&buffer[..count])
}

/// Parses an answer to the query of [`check_support`]: the end of an empty list, or an error.
fn supported(packet: &[u8]) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let (header, body) = packet.split_at_checked(HEADER).ok_or_else(invalid)?;
    match u16::from_ne_bytes([header[4], header[5]]) {
        DONE | ERROR => {
            let errno = body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
            match errno.ok_or_else(invalid)? {
                0.. => Ok(()),
                errno @ -4095..0 => Err(fault_of_support(Errno::from_raw_os_error(-errno))),
                _ => Err(invalid()),
            }
        }
        _ => Err(invalid()),
    }
}

/// Converts an error of this query. The kernel returns `ENOENT` if it has no lookup of TCP sockets.
fn fault_of_support(errno: Errno) -> io::Error {
    match errno {
        Errno::NOENT => unsupported("it has no tcp_diag"),
        errno => fault(errno),
    }
}

/// Converts an error of the kernel. The kind is `Unsupported` if only the kernel or a sandbox can be its cause.
fn fault(errno: Errno) -> io::Error {
    match errno {
        Errno::PROTONOSUPPORT
        | Errno::AFNOSUPPORT
        | Errno::OPNOTSUPP
        | Errno::NOSYS
        | Errno::PERM
        | Errno::ACCESS => unsupported(&io::Error::from(errno).to_string()),
        errno => errno.into(),
    }
}

fn unsupported(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Opens a netlink socket for queries to the kernel.
fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG)).map_err(fault)
}

/// A socket that the kernel has found.
struct Found {
    state: u8,
    user: u32,
    /// 0: no process owns the socket. Its user is then unknown.
    inode: u32,
}

impl Found {
    const fn is_owned(&self) -> bool {
        self.inode != 0 || self.state == LISTEN
    }

    const fn acceptor(&self) -> Acceptor {
        Acceptor { user: self.user, socket: self.inode }
    }
}

/// Looks up the socket at the server end of this connection. If there is none, looks up the socket that would accept
/// the connection.
fn look_up(socket: &OwnedFd, server: SocketAddr, client: SocketAddr) -> io::Result<Option<Found>> {
    let (server_ip, client_ip) = (server.ip().to_canonical(), client.ip().to_canonical());
    let family = if server_ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut request = request(family, LOOK_UP, u32::MAX);
    let mut put = |at: usize, bytes: &[u8]| {
        request[HEADER + at..HEADER + at + bytes.len()].copy_from_slice(bytes);
    };
    put(8, &server.port().to_be_bytes());
    put(10, &client.port().to_be_bytes());
    for (at, address) in [(12, server_ip), (28, client_ip)] {
        match address {
            IpAddr::V4(address) => put(at, &address.octets()),
            IpAddr::V6(address) => put(at, &address.octets()),
        }
    }
    put(44, &LOOPBACK.to_ne_bytes());
    // `INET_DIAG_NOCOOKIE`.
    put(48, &[0xff; 8]);
    sendto(socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).map_err(fault)?;
    let mut buffer = [0; 4 << 10];
    let (_, count) = recv(socket, &mut buffer[..], RecvFlags::empty()).map_err(fault)?;
    match found(&buffer[..count]) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Parses the socket in an answer.
fn found(packet: &[u8]) -> io::Result<Found> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let (header, body) = packet.split_at_checked(HEADER).ok_or_else(invalid)?;
    match u16::from_ne_bytes([header[4], header[5]]) {
        ERROR => Err(error_in(body)),
        BY_FAMILY => {
            let body: &[u8; ANSWER] = body.first_chunk().ok_or_else(invalid)?;
            Ok(Found { state: body[1], user: number(body, 64), inode: number(body, 68) })
        }
        _ => Err(invalid()),
    }
}

/// Parses the error in an answer.
fn error_in(body: &[u8]) -> io::Error {
    match body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(errno @ -4095..0) => fault(Errno::from_raw_os_error(-errno)),
        _ => io::ErrorKind::InvalidData.into(),
    }
}

fn number(body: &[u8; ANSWER], at: usize) -> u32 {
    u32::from_ne_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]])
}

/// Returns a query for TCP sockets of a family in some states.
fn request(family: i32, flags: u16, states: u32) -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    let length = u32::try_from(REQUEST).expect("it is small");
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    request[HEADER] = u8::try_from(family).expect("families are small");
    request[HEADER + 1] = u8::try_from(libc::IPPROTO_TCP).expect("protocols are small");
    request[HEADER + 4..HEADER + 8].copy_from_slice(&states.to_ne_bytes());
    request
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn user(address: SocketAddr) -> Option<u32> {
        listener(address).unwrap().map(|found| found.user)
    }

    fn local(port: u16) -> Option<u32> {
        user(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    #[test]
    fn those_who_listen_on_a_port_are_found_with_their_user() {
        let own = rustix::process::geteuid().as_raw();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(local(port), Some(own));
        // A socket that is bound but does not listen accepts no connection.
        let kept = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let kept = kept.unwrap();
        rustix::net::bind(&kept, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let bound = SocketAddr::try_from(rustix::net::getsockname(&kept).unwrap()).unwrap();
        assert_eq!(local(bound.port()), None);
        if let Ok(everywhere) = TcpListener::bind("[::]:0") {
            let port = everywhere.local_addr().unwrap().port();
            assert_eq!(local(port), Some(own));
        }
        drop(listener);
        assert_eq!(local(port), None);
    }

    #[test]
    fn whoever_accepts_a_connection_is_found_also_before_it_does() {
        let own = rustix::process::geteuid().as_raw();
        for (place, to) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("0.0.0.0:0", "127.0.0.1"),
            ("[::]:0", "127.0.0.1"),
            ("[::]:0", "::1"),
        ] {
            // Not every machine has IPv6.
            let Ok(listener) = TcpListener::bind(place) else { continue };
            let port = listener.local_addr().unwrap().port();
            let server = SocketAddr::new(to.parse().unwrap(), port);
            let client = TcpStream::connect(server).unwrap();
            let from = client.local_addr().unwrap();
            let found = || acceptor(server, from).unwrap();
            let listens = found().unwrap();
            assert_eq!(listens.user, own, "{place}: it waits");
            assert_eq!(found(), Some(listens), "{place}: it still waits");
            let accepted = listener.accept().unwrap();
            let has = found().unwrap();
            assert_eq!(has.user, own, "{place}: it was accepted");
            assert_ne!(has.socket, listens.socket, "{place}: by a socket of its own");
            drop(listener);
            assert_eq!(found(), Some(has), "{place}: it lives on");
            assert!(!leads_elsewhere(server, from).unwrap(), "{place}: it is here");
            drop(accepted);
            assert_eq!(found(), None, "{place}: it is nobody's");
            assert!(!leads_elsewhere(server, from).unwrap(), "{place}: it was closed here");
        }
    }

    #[test]
    fn listeners_of_other_addresses_are_not_those_of_an_address() {
        let own = rustix::process::geteuid().as_raw();
        let user = |text: &str| user(text.parse().unwrap());
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(user(&format!("127.0.0.2:{port}")), Some(own));
        assert_eq!(user(&format!("[::ffff:127.0.0.2]:{port}")), Some(own));
        assert_eq!(user(&format!("127.0.0.1:{port}")), None);
        assert_eq!(user(&format!("[::1]:{port}")), None);
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = everywhere.local_addr().unwrap().port();
        assert_eq!(user(&format!("127.0.0.1:{port}")), Some(own));
    }

    #[test]
    fn a_listener_for_ipv6_alone_takes_no_connection_of_ipv4() {
        let own = rustix::process::geteuid().as_raw();
        let kept =
            socket_with(AddressFamily::INET6, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        // Not every machine has IPv6.
        let Ok(kept) = kept else { return };
        rustix::net::sockopt::set_ipv6_v6only(&kept, true).unwrap();
        let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        if rustix::net::bind(&kept, &everywhere).is_err() {
            return;
        }
        rustix::net::listen(&kept, 1).unwrap();
        let bound = SocketAddr::try_from(rustix::net::getsockname(&kept).unwrap()).unwrap();
        assert_eq!(local(bound.port()), None);
        assert_eq!(user(SocketAddr::from((Ipv6Addr::LOCALHOST, bound.port()))), Some(own));
    }

    #[test]
    fn a_listener_is_found_among_any_number_of_others() {
        let own = rustix::process::geteuid().as_raw();
        let wanted = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = wanted.local_addr().unwrap();
        let other = |number: u16| {
            let [high, low] = number.to_be_bytes();
            TcpListener::bind(SocketAddr::from(([127, 9, high, low], server.port())))
        };
        let others: Vec<TcpListener> = (1..800).map(|number| other(number).unwrap()).collect();
        assert_eq!(user(server), Some(own));
        let client = TcpStream::connect(server).unwrap();
        let found = acceptor(server, client.local_addr().unwrap()).unwrap();
        assert_eq!(found, listener(server).unwrap());
        let told = others.iter().map(|other| other.local_addr().unwrap());
        assert!(told.map(|other| listener(other).unwrap()).all(|other| other != found));
        drop(wanted);
        assert_eq!(user(server), None, "none of the others");
    }

    #[test]
    fn an_answer_that_is_cut_is_an_error() {
        for length in 0..HEADER + 4 {
            let kind = |error: io::Error| error.kind();
            let cut = |kind: u16| {
                let mut packet = vec![0; length];
                packet.iter_mut().skip(4).zip(kind.to_ne_bytes()).for_each(|(to, byte)| *to = byte);
                packet
            };
            for message in [ERROR, DONE, BY_FAMILY] {
                let found = found(&cut(message)).err().map(kind);
                assert_eq!(found, Some(io::ErrorKind::InvalidData), "{message} {length}");
                let supported = supported(&cut(message)).err().map(kind);
                assert_eq!(supported, Some(io::ErrorKind::InvalidData), "{message} {length}");
            }
        }
        assert!(found(&request(libc::AF_INET, LOOK_UP, 0)).is_err(), "its body is too short");
    }

    #[test]
    fn a_kernel_that_cannot_look_up_is_no_kernel_that_finds_nothing() {
        check_support(&open().unwrap()).unwrap();
        let answer = |message: u16, errno: i32| {
            let mut packet = [0; HEADER + 4];
            packet[4..6].copy_from_slice(&message.to_ne_bytes());
            packet[HEADER..].copy_from_slice(&errno.to_ne_bytes());
            packet
        };
        let kind = |found: io::Result<()>| found.err().map(|error| error.kind());
        for message in [DONE, ERROR] {
            assert_eq!(kind(supported(&answer(message, 0))), None);
            let absent = kind(supported(&answer(message, -libc::ENOENT)));
            assert_eq!(absent, Some(io::ErrorKind::Unsupported));
            // Another user can be the cause of these.
            for errno in [libc::ENOMEM, libc::ENOBUFS, libc::EAGAIN, libc::EMFILE, i32::MAX] {
                let kind = kind(supported(&answer(message, -errno)));
                assert!(kind.is_some_and(|it| it != io::ErrorKind::Unsupported), "{errno}");
            }
        }
        for errno in [Errno::PROTONOSUPPORT, Errno::AFNOSUPPORT, Errno::PERM, Errno::ACCESS] {
            assert_eq!(fault(errno).kind(), io::ErrorKind::Unsupported, "{errno}");
        }
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::AGAIN] {
            assert_ne!(fault(errno).kind(), io::ErrorKind::Unsupported, "{errno}");
        }
    }
}
