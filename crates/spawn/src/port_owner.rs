//! Who listens on a TCP port: asked of the kernel (sock_diag(7)), so that a program that is told a port is not
//! mistaken for somebody else who took it first.
//!
//! The answer costs as much as there are listening sockets, not connections. It never blocks.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Once;

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

/// Who listens on a port that is kept for a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PortOwner {
    /// The program, a process that it started, or root; also where the kernel does not tell.
    Program,
    /// Nobody.
    Nobody,
    /// Another user.
    Other(u32),
}

/// The users of all sockets that listen on this TCP port, on any address.
///
/// # Errors
/// When the kernel does not answer: it was built without this, or a sandbox forbids it.
pub(crate) fn listeners(port: u16) -> io::Result<Vec<u32>> {
    listeners_of(port, |_| true)
}

/// The users of all sockets that listen on this TCP address of this machine, or on all addresses.
///
/// # Errors
/// When the kernel does not answer: it was built without this, or a sandbox forbids it.
pub fn listeners_at(address: SocketAddr) -> io::Result<Vec<u32>> {
    let wanted = address.ip().to_canonical();
    listeners_of(address.port(), |found| found.is_unspecified() || found.to_canonical() == wanted)
}

/// The users of all sockets that listen on this TCP port, on addresses that `is_one` takes.
fn listeners_of(port: u16, is_one: impl Fn(IpAddr) -> bool) -> io::Result<Vec<u32>> {
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
            ERROR => {
                let errno = body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                return Err(io::Error::from_raw_os_error(errno.saturating_neg()));
            }
            BY_FAMILY => {
                let body: &[u8; ANSWER] = body.first_chunk().ok_or_else(invalid)?;
                // Family, state, timer and retransmissions; then the socket's own port, the other's
                // and the socket's own address.
                if u16::from_be_bytes([body[4], body[5]]) == port && is_one(own_address(body)) {
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

fn own_address(body: &[u8; ANSWER]) -> IpAddr {
    let bytes: [u8; 16] = *body[8..].first_chunk().expect("an answer is longer");
    if i32::from(body[0]) == libc::AF_INET {
        IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])
    } else {
        IpAddr::from(bytes)
    }
}

/// Who listens on a TCP port that is kept for the running program `pid`.
#[must_use]
pub fn port_owner(port: u16, pid: u32) -> PortOwner {
    static UNAVAILABLE: Once = Once::new();
    match listeners(port) {
        Ok(users) => judge(&users, |user| is_of(pid, user)),
        Err(error) => {
            UNAVAILABLE.call_once(|| {
                tracing::warn!(
                    "the kernel does not say who listens on a port ({error}): another local user can take one \
                     that is kept for a program"
                );
            });
            PortOwner::Program
        }
    }
}

/// Who listens on a port, by the users of the listening sockets. While the program itself listens, nobody
/// else can take the port; while nobody does, whoever accepted a connection before is unknown.
fn judge(listeners: &[u32], is_allowed: impl Fn(u32) -> bool) -> PortOwner {
    match listeners.iter().find(|&&user| user != 0 && !is_allowed(user)) {
        Some(&user) => PortOwner::Other(user),
        None if listeners.is_empty() => PortOwner::Nobody,
        None => PortOwner::Program,
    }
}

/// Whether a process, or one that descends from it, runs as a user: `runuser` and `su` start a program as
/// somebody else. A process that has ended runs as nobody.
fn is_of(pid: u32, user: u32) -> bool {
    if users(pid).is_some_and(|users| users.contains(&user)) {
        return true;
    }
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    let pids = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let parents: HashMap<u32, u32> = pids.filter_map(|it| Some((it, parent(it)?))).collect();
    let descends = |mut child: u32| {
        // A number can be used again while this is read: the chain is bounded, not trusted to end.
        for _ in 0..parents.len() {
            match parents.get(&child) {
                Some(&parent) if parent == pid => return true,
                Some(&parent) => child = parent,
                None => return false,
            }
        }
        false
    };
    parents.keys().any(|&it| descends(it) && users(it).is_some_and(|users| users.contains(&user)))
}

/// The real, effective, saved and file system user of a process.
fn users(pid: u32) -> Option<Vec<u32>> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    numbers.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
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
    fn listeners_of_other_addresses_are_not_those_of_an_address() {
        let own = rustix::process::geteuid().as_raw();
        let at = |text: &str| listeners_at(text.parse().unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(at(&format!("127.0.0.2:{port}")), [own]);
        assert_eq!(at(&format!("[::ffff:127.0.0.2]:{port}")), [own]);
        assert_eq!(at(&format!("127.0.0.1:{port}")), Vec::<u32>::new());
        assert_eq!(at(&format!("[::1]:{port}")), Vec::<u32>::new());
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = everywhere.local_addr().unwrap().port();
        assert_eq!(at(&format!("127.0.0.1:{port}")), [own]);
    }

    #[test]
    fn a_port_without_listener_does_not_belong_to_the_program() {
        assert_eq!(judge(&[], |_| true), PortOwner::Nobody);
        assert_eq!(judge(&[7], |user| user == 7), PortOwner::Program);
        assert_eq!(judge(&[0], |_| false), PortOwner::Program);
        assert_eq!(judge(&[7, 8], |user| user == 7), PortOwner::Other(8));
    }

    #[test]
    fn a_process_stands_for_the_users_of_its_descendants() {
        let own = std::process::id();
        let user = rustix::process::geteuid().as_raw();
        assert!(is_of(own, user));
        assert!(!is_of(own, 60_003), "nothing runs as this user");
        if user != 0 {
            return;
        }
        use std::os::unix::process::CommandExt;
        let mut child = std::process::Command::new("/bin/cat");
        let child = child.uid(60_003).gid(60_003).stdin(std::process::Stdio::piped()).spawn();
        let mut child = child.unwrap();
        assert!(is_of(own, 60_003));
        assert!(!is_of(child.id(), 0), "not those of its ancestors");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!is_of(child.id(), 60_003), "it has ended");
    }

    #[test]
    fn an_answer_that_is_cut_is_an_error() {
        let mut users = Vec::new();
        for length in 1..HEADER {
            assert!(read(&vec![1; length], 1, &|_| true, &mut users).is_err());
        }
        let mut short = request(2).to_vec();
        assert!(read(&short, 1, &|_| true, &mut users).is_err());
        short[4..6].copy_from_slice(&DONE.to_ne_bytes());
        assert!(read(&short, 1, &|_| true, &mut users).unwrap());
        assert!(users.is_empty());
    }
}
