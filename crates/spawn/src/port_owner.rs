//! Who listens on a TCP port: asked of the kernel (sock_diag(7)), so that a program that is told a port is not
//! mistaken for somebody else who took it first.
//!
//! The answer costs as much as there are listening sockets, not connections. It never blocks.

use std::io;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`, `NLMSG_DONE` and `NLMSG_ERROR`.
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `1 << TCP_LISTEN`.
const LISTENING: u32 = 1 << 10;

/// Bytes of a message's header, of a request, and of an answer.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const ANSWER: usize = 72;

/// Packets that are read for one answer, at most.
const PACKETS_MAX: usize = 1000;

/// The users of all sockets that listen on this TCP port, on any address.
///
/// # Errors
/// When the kernel does not answer: it was built without this, or a sandbox forbids it.
pub(crate) fn listeners(port: u16) -> io::Result<Vec<u32>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG))?;
    let mut users = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let request = request(u8::try_from(family).expect("families are small"));
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&socket, &request, SendFlags::empty(), &kernel)?;
        let mut buffer = [0; 32 << 10];
        let mut is_done = false;
        for _ in 0..PACKETS_MAX {
            let (_, count) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
            if read(&buffer[..count], port, &mut users)? {
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

/// Asks for all listening TCP sockets of a family.
fn request(family: u8) -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    let length = u32::try_from(REQUEST).expect("it is small");
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    request[HEADER] = family;
    request[HEADER + 1] = u8::try_from(libc::IPPROTO_TCP).expect("protocols are small");
    request[HEADER + 4..HEADER + 8].copy_from_slice(&LISTENING.to_ne_bytes());
    request
}

/// Adds the users of this port's sockets. Whether it was the last packet.
fn read(mut packet: &[u8], port: u16, users: &mut Vec<u32>) -> io::Result<bool> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    while !packet.is_empty() {
        let length = packet.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes) as usize);
        let length = length.filter(|&length| length >= HEADER && length <= packet.len());
        let (message, rest) = packet.split_at(length.ok_or_else(invalid)?);
        let body = &message[HEADER..];
        match u16::from_ne_bytes([message[4], message[5]]) {
            DONE => return Ok(true),
            ERROR => {
                let errno = body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                return Err(io::Error::from_raw_os_error(errno.saturating_neg()));
            }
            BY_FAMILY => {
                let body: &[u8; ANSWER] = body.first_chunk().ok_or_else(invalid)?;
                // Family, state, timer and retransmissions; then the socket's own port.
                if u16::from_be_bytes([body[4], body[5]]) == port {
                    users.push(u32::from_ne_bytes([body[64], body[65], body[66], body[67]]));
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn those_who_listen_on_a_port_are_found_with_their_user() {
        let own = rustix::process::geteuid().as_raw();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listeners(port).unwrap(), [own]);
        // A socket that is bound and does not listen serves nobody.
        let kept = crate::Port::keep().unwrap();
        assert_eq!(listeners(kept.number()).unwrap(), Vec::<u32>::new());
        if let Ok(everywhere) = TcpListener::bind("[::]:0") {
            let port = everywhere.local_addr().unwrap().port();
            assert_eq!(listeners(port).unwrap(), [own]);
        }
        drop(listener);
        assert_eq!(listeners(port).unwrap(), Vec::<u32>::new());
    }

    #[test]
    fn an_answer_that_is_cut_is_an_error() {
        let mut users = Vec::new();
        for length in 1..HEADER {
            assert!(read(&vec![1; length], 1, &mut users).is_err());
        }
        let mut short = request(2).to_vec();
        assert!(read(&short, 1, &mut users).is_err());
        short[4..6].copy_from_slice(&DONE.to_ne_bytes());
        assert!(read(&short, 1, &mut users).unwrap());
        assert!(users.is_empty());
    }
}
