//! Who listens on a TCP port of this machine, and who accepts a connection: asked of the kernel (sock_diag(7)).
//!
//! What it is: the user ids behind sockets. What it depends on: addresses and the kernel. What it must never depend on: who
//! asks, and why.
//!
//! The cost of [`at`] grows with the number of listening sockets, not with that of connections; [`acceptor`] looks one
//! connection up. Neither blocks.

#![forbid(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`, `NLMSG_DONE` and `NLMSG_ERROR`.
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`, and with `NLM_F_DUMP`.
const LOOK_UP: u16 = 0x1;
const DUMP: u16 = 0x301;
/// `TCP_LISTEN`.
const LISTEN: u8 = 10;

/// Bytes of a message's header, of a request, and of an answer.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const ANSWER: usize = 72;

/// Packets that are read for one answer, at most.
const PACKETS_MAX: usize = 1000;

/// A socket on the server's end of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Acceptor {
    /// Who made it.
    pub user: u32,
    /// Its number: no other socket has it at the same time.
    pub socket: u32,
}

/// The user who has accepted the connection from `client` to `server`, an address of this machine, or who will:
/// while nobody has, the one who listens there. None: nobody of this machine.
///
/// # Errors
/// When the kernel does not answer: it was built without this, or a sandbox forbids it.
pub fn acceptor(server: SocketAddr, client: SocketAddr) -> io::Result<Option<Acceptor>> {
    let socket = open()?;
    let nobody = match server.ip().to_canonical() {
        IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        IpAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let accepted = look_up(&socket, server, client)?.filter(Found::is_owned);
    if let Some(found) = accepted {
        return Ok(Some(found.acceptor()));
    }
    let listener = look_up(&socket, server, nobody)?;
    // A connection that was not accepted goes with its listener: as long as it is there and was not
    // accepted, this listener is its own.
    let accepted = look_up(&socket, server, client)?.filter(Found::is_owned);
    match accepted.or(listener) {
        Some(found) => Ok(Some(found.acceptor())),
        // Where the kernel cannot tell, it finds nothing either.
        None => at(server).map(|_| None),
    }
}

/// The users of all sockets that listen on this TCP address of this machine, or on all addresses.
///
/// # Errors
/// When the kernel does not answer: it was built without this, or a sandbox forbids it.
pub fn at(address: SocketAddr) -> io::Result<Vec<u32>> {
    let wanted = address.ip().to_canonical();
    listeners_of(address.port(), |found| found.is_unspecified() || found.to_canonical() == wanted)
}

/// The users of all sockets that listen on this TCP port, on addresses that `is_one` takes.
fn listeners_of(port: u16, is_one: impl Fn(IpAddr) -> bool) -> io::Result<Vec<u32>> {
    let socket = open()?;
    let mut users = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let request = request(family, DUMP, 1 << LISTEN);
        sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut buffer = [0; 32 << 10];
        let mut is_done = false;
        for _ in 0..PACKETS_MAX {
            let (_, count) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
            if read(&buffer[..count], port, &is_one, &mut users)? {
                is_done = true;
                break;
            }
        }
        if !is_done {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    Ok(users)
}

/// A socket to ask the kernel with.
fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG))?)
}

/// A socket that the kernel found.
struct Found {
    state: u8,
    user: u32,
    /// 0: no process has it. Its user is unknown then.
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

/// The socket of this connection at its server's end; without one, that which would take the connection.
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
    // `INET_DIAG_NOCOOKIE`.
    put(48, &[0xff; 8]);
    sendto(socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut buffer = [0; 4 << 10];
    let (_, count) = recv(socket, &mut buffer[..], RecvFlags::empty())?;
    match found(&buffer[..count]) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// The socket in an answer.
fn found(packet: &[u8]) -> io::Result<Found> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let (header, body) = packet.split_at_checked(HEADER).ok_or_else(invalid)?;
    match u16::from_ne_bytes([header[4], header[5]]) {
        ERROR => Err(said(body)),
        BY_FAMILY => {
            let body: &[u8; ANSWER] = body.first_chunk().ok_or_else(invalid)?;
            Ok(Found { state: body[1], user: number(body, 64), inode: number(body, 68) })
        }
        _ => Err(invalid()),
    }
}

/// The error in an answer.
fn said(body: &[u8]) -> io::Error {
    let errno = body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
    io::Error::from_raw_os_error(errno.saturating_neg())
}

fn number(body: &[u8; ANSWER], at: usize) -> u32 {
    u32::from_ne_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]])
}

/// Asks for TCP sockets of a family in some states.
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

/// Adds the users of this port's sockets. Whether it was the last packet.
fn read(
    mut packet: &[u8],
    port: u16,
    is_one: &impl Fn(IpAddr) -> bool,
    users: &mut Vec<u32>,
) -> io::Result<bool> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    while !packet.is_empty() {
        let length = packet.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes) as usize);
        let length = length.filter(|&length| length >= HEADER && length <= packet.len());
        let (message, rest) = packet.split_at(length.ok_or_else(invalid)?);
        let body = &message[HEADER..];
        match u16::from_ne_bytes([message[4], message[5]]) {
            DONE => return Ok(true),
            ERROR => return Err(said(body)),
            BY_FAMILY => {
                let body: &[u8; ANSWER] = body.first_chunk().ok_or_else(invalid)?;
                // Family, state, timer and retransmissions; then the socket's own port, the other's
                // and the socket's own address.
                if u16::from_be_bytes([body[4], body[5]]) == port && is_one(own_address(body)) {
                    users.push(number(body, 64));
                }
            }
            _ => {}
        }
        // Messages begin at multiples of four.
        let padding = (4 - length.unwrap_or_default() % 4) % 4;
        packet = rest.get(padding..).unwrap_or_default();
    }
    Ok(false)
}

fn own_address(body: &[u8; ANSWER]) -> IpAddr {
    let bytes: [u8; 16] = *body[8..].first_chunk().expect("an answer is longer");
    if i32::from(body[0]) == libc::AF_INET {
        IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])
    } else {
        IpAddr::from(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn listeners(port: u16) -> Vec<u32> {
        at(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap()
    }

    #[test]
    fn those_who_listen_on_a_port_are_found_with_their_user() {
        let own = rustix::process::geteuid().as_raw();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listeners(port), [own]);
        // A socket that is bound and does not listen serves nobody.
        let kept = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let kept = kept.unwrap();
        rustix::net::bind(&kept, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let bound = SocketAddr::try_from(rustix::net::getsockname(&kept).unwrap()).unwrap();
        assert_eq!(listeners(bound.port()), Vec::<u32>::new());
        if let Ok(everywhere) = TcpListener::bind("[::]:0") {
            let port = everywhere.local_addr().unwrap().port();
            assert_eq!(listeners(port), [own]);
        }
        drop(listener);
        assert_eq!(listeners(port), Vec::<u32>::new());
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
            drop(accepted);
            assert_eq!(found(), None, "{place}: it is nobody's");
        }
    }

    #[test]
    fn listeners_of_other_addresses_are_not_those_of_an_address() {
        let own = rustix::process::geteuid().as_raw();
        let users = |text: &str| at(text.parse().unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(users(&format!("127.0.0.2:{port}")), [own]);
        assert_eq!(users(&format!("[::ffff:127.0.0.2]:{port}")), [own]);
        assert_eq!(users(&format!("127.0.0.1:{port}")), Vec::<u32>::new());
        assert_eq!(users(&format!("[::1]:{port}")), Vec::<u32>::new());
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = everywhere.local_addr().unwrap().port();
        assert_eq!(users(&format!("127.0.0.1:{port}")), [own]);
    }

    #[test]
    fn an_answer_that_is_cut_is_an_error() {
        let mut users = Vec::new();
        for length in 1..HEADER {
            assert!(read(&vec![1; length], 1, &|_| true, &mut users).is_err());
            assert!(found(&vec![1; length]).is_err());
        }
        assert!(found(&request(libc::AF_INET, LOOK_UP, 0)).is_err(), "its body is too short");
        let mut short = request(libc::AF_INET, DUMP, 1 << LISTEN).to_vec();
        assert!(read(&short, 1, &|_| true, &mut users).is_err());
        short[4..6].copy_from_slice(&DONE.to_ne_bytes());
        assert!(read(&short, 1, &|_| true, &mut users).unwrap());
        assert!(users.is_empty());
    }
}
