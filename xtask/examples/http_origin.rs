//! The server behind the proxies of `xtask bench http`. It is cheap, so that the cost of the proxies dominates.
//!
//! `GET /SIZE` is answered with this number of bytes. `GET /accepted` is answered with the number of connections
//! accepted so far, without those that send this request: it shows whether a proxy keeps its connections. One thread,
//! epoll, level-triggered. Bytes that the kernel does not accept are sent when the socket is writable.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::rc::Rc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

/// Replies by the size of their body.
type Replies = BTreeMap<usize, Rc<[u8]>>;

struct Connection {
    socket: TcpStream,
    /// Received bytes of an incomplete head.
    rest: Vec<u8>,
    /// Replies that were not sent completely, and the position in the first one.
    waiting: Vec<Rc<[u8]>>,
    sent: usize,
    armed: bool,
}

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    rustix::net::listen(&listener, 4096)?;
    listener.set_nonblocking(true)?;
    rustix::net::sockopt::set_tcp_nodelay(&listener, true)?;
    println!("ready {{\"listeners\":{{\"main\":\"{}\"}}}}", listener.local_addr()?);
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let data = |fd: i32| EventData::new_u64(fd.unsigned_abs().into());
    epoll::add(&poll, &listener, data(listener.as_raw_fd()), EventFlags::IN)?;
    let mut connections: BTreeMap<u64, Connection> = BTreeMap::new();
    let mut replies = Replies::new();
    let (mut reports, mut room) = (Vec::with_capacity(1024), vec![0; 64 << 10]);
    let mut accepted = 0;
    loop {
        reports.clear();
        match epoll::wait(&poll, spare_capacity(&mut reports), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for report in &reports {
            let id = report.data.u64();
            if id == u64::from(listener.as_raw_fd().unsigned_abs()) {
                while let Ok((socket, _)) = listener.accept() {
                    accepted += 1;
                    socket.set_nonblocking(true)?;
                    let id = u64::from(socket.as_raw_fd().unsigned_abs());
                    epoll::add(&poll, &socket, data(socket.as_raw_fd()), EventFlags::IN)?;
                    let connection = Connection {
                        socket,
                        rest: Vec::new(),
                        waiting: Vec::new(),
                        sent: 0,
                        armed: false,
                    };
                    connections.insert(id, connection);
                }
                continue;
            }
            let Some(connection) = connections.get_mut(&id) else { continue };
            let alive = connection.step(&mut room, &mut replies, &mut accepted);
            let wants = !connection.waiting.is_empty();
            if !alive {
                connections.remove(&id);
            } else if wants != connection.armed {
                connection.armed = wants;
                let flags = if wants { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
                epoll::modify(&poll, &connection.socket, EventData::new_u64(id), flags)?;
            }
        }
    }
}

impl Connection {
    fn step(&mut self, room: &mut [u8], replies: &mut Replies, accepted: &mut u64) -> bool {
        if self.armed && !self.flush() {
            return false;
        }
        match self.socket.read(room) {
            Ok(0) => false,
            Ok(count) => self.take(&room[..count], replies, accepted) && self.flush(),
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    fn take(&mut self, bytes: &[u8], replies: &mut Replies, accepted: &mut u64) -> bool {
        let whole;
        let mut bytes = if self.rest.is_empty() {
            bytes
        } else {
            self.rest.extend_from_slice(bytes);
            whole = std::mem::take(&mut self.rest);
            &whole
        };
        while let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let digits = bytes.get(5..).unwrap_or_default();
            if digits.starts_with(b"accepted ") {
                *accepted -= 1;
                self.waiting.push(reply(accepted.to_string().as_bytes()));
            } else {
                let length = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(0);
                let Ok(size) = String::from_utf8_lossy(&digits[..length]).parse() else {
                    return false;
                };
                let reply = replies.entry(size).or_insert_with(|| reply(&letters(size)));
                self.waiting.push(Rc::clone(reply));
            }
            bytes = &bytes[end + 4..];
        }
        self.rest.extend_from_slice(bytes);
        true
    }

    fn flush(&mut self) -> bool {
        while let Some(first) = self.waiting.first() {
            match self.socket.write(&first[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
            if self.sent == first.len() {
                self.waiting.remove(0);
                self.sent = 0;
            }
        }
        true
    }
}

fn reply(body: &[u8]) -> Rc<[u8]> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat().into()
}

fn letters(size: usize) -> Vec<u8> {
    (0..size).map(|place| b'a' + u8::try_from(place % 26).unwrap_or(0)).collect()
}
