//! Clients that send requests at a steady rate over persistent connections, and count failures.
//!
//! They behave as HTTP clients do: a connection that was closed while it was idle is replaced before it is used, and a
//! GET on a reused connection that ended before any byte of the response is sent again on a new connection (RFC 9112
//! §9.3.1). A POST is not sent again.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// A response that takes longer is counted as failed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The requests to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Requests per second of all clients together.
    pub(super) rate: u32,
    /// The number of clients. Each has one connection and one request at a time.
    pub(super) clients: u32,
    pub(super) duration: Duration,
    /// The percentage of POSTs.
    pub(super) posts: u32,
    /// The number of pieces in which the body of a POST is sent.
    pub(super) pieces: u32,
    /// The size of one piece in bytes, and the time before the next.
    pub(super) piece: (usize, Duration),
}

/// The results of the requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) requests: u64,
    /// The number of failed requests by what the client saw: a status, `reset`, `timeout`, `connect`.
    pub(super) failed: BTreeMap<String, u64>,
}

impl Tally {
    pub(super) fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        for (why, count) in other.failed {
            *self.failed.entry(why).or_default() += count;
        }
    }
}

impl Load {
    /// Sends all requests to this address.
    pub(super) fn run(&self, to: SocketAddr) -> Tally {
        let begun = Instant::now();
        let between = Duration::from_secs(1) * self.clients / self.rate.max(1);
        let clients: Vec<_> = (0..self.clients)
            .map(|number| {
                let load = *self;
                let first = begun + between * number / self.clients;
                thread::Builder::new()
                    .stack_size(128 << 10)
                    .spawn(move || load.client(to, number, first, between))
            })
            .collect();
        let mut sum = Tally::default();
        for client in clients.into_iter().flatten() {
            sum.add(client.join().unwrap_or_default());
        }
        sum
    }

    fn client(&self, to: SocketAddr, number: u32, first: Instant, between: Duration) -> Tally {
        let (mut tally, mut connection, mut due) = (Tally::default(), None, first);
        let end = first + self.duration;
        for round in 0_u32.. {
            if due >= end {
                break;
            }
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let is_post = (number + round * 7) % 100 < self.posts;
            tally.requests += 1;
            if let Err(why) = self.request(to, &mut connection, is_post) {
                connection = None;
                *tally.failed.entry(why).or_default() += 1;
            }
            due += between;
        }
        tally
    }

    fn request(
        &self,
        to: SocketAddr,
        connection: &mut Option<TcpStream>,
        is_post: bool,
    ) -> Result<(), String> {
        connection.take_if(|stream| !is_open(stream));
        let is_reused = connection.is_some();
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => connect(to)?,
        };
        let mut answered = self.exchange(&mut stream, is_post);
        if matches!(answered, Err(Fault::Unanswered)) && is_reused && !is_post {
            stream = connect(to)?;
            answered = self.exchange(&mut stream, is_post);
        }
        match answered {
            Ok((status, keep)) => {
                *connection = keep.then_some(stream);
                if (200..300).contains(&status) { Ok(()) } else { Err(status.to_string()) }
            }
            Err(Fault::Timeout) => Err("timeout".to_owned()),
            Err(Fault::Unanswered | Fault::Cut) => Err("reset".to_owned()),
        }
    }

    fn exchange(&self, stream: &mut TcpStream, is_post: bool) -> Result<(u16, bool), Fault> {
        let sent = if is_post { self.post(stream) } else { get(stream) };
        match read_response(stream) {
            // If sending failed, the response contains the reason, if there is a response.
            Err(Fault::Unanswered) if matches!(&sent, Err(error) if is_late(error)) => {
                Err(Fault::Timeout)
            }
            answered => answered,
        }
    }

    fn post(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let (bytes, gap) = self.piece;
        let length = bytes * self.pieces as usize;
        write!(stream, "POST / HTTP/1.1\r\nHost: trial\r\nContent-Length: {length}\r\n\r\n")?;
        let piece = vec![b'p'; bytes];
        for number in 0..self.pieces {
            if number > 0 {
                thread::sleep(gap);
            }
            stream.write_all(&piece)?;
        }
        Ok(())
    }
}

enum Fault {
    Timeout,
    /// The connection ended before any byte of the response.
    Unanswered,
    /// The connection ended within the response.
    Cut,
}

fn connect(to: SocketAddr) -> Result<TcpStream, String> {
    let stream = TcpStream::connect_timeout(&to, TIMEOUT).map_err(|_| "connect".to_owned())?;
    let set = stream.set_read_timeout(Some(TIMEOUT)).and_then(|()| stream.set_nodelay(true));
    set.and_then(|()| stream.set_write_timeout(Some(TIMEOUT))).map_err(|_| "connect".to_owned())?;
    Ok(stream)
}

/// Returns whether an idle connection is still open and has received no unsolicited bytes.
fn is_open(stream: &TcpStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let seen = stream.peek(&mut [0; 1]);
    let _ = stream.set_nonblocking(false);
    matches!(seen, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn get(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: trial\r\n\r\n")
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Returns the status, and whether the connection can be reused.
fn read_response(stream: &mut TcpStream) -> Result<(u16, bool), Fault> {
    let (mut said, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(whole) = response(&said, false) {
            return Ok(whole);
        }
        match stream.read(&mut bytes) {
            Ok(0) => return response(&said, true).ok_or_else(|| end_of(&said)),
            Ok(count) => said.extend_from_slice(&bytes[..count]),
            Err(error) if is_late(&error) => return Err(Fault::Timeout),
            Err(_) => return Err(end_of(&said)),
        }
    }
}

fn end_of(said: &[u8]) -> Fault {
    if said.is_empty() { Fault::Unanswered } else { Fault::Cut }
}

/// Parses a response when it is complete. Without a length it ends with its connection.
fn response(said: &[u8], is_end: bool) -> Option<(u16, bool)> {
    let end = said.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&said[..end]).to_ascii_lowercase();
    let status: u16 = head.get(9..12)?.parse().ok()?;
    if status < 200 {
        return response(&said[end..], is_end);
    }
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let closes = field("connection:") == Some("close");
    match field("content-length:").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => (said.len() - end >= length).then_some((status, !closes)),
        None => is_end.then_some((status, false)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::{Capacity, Server};
    use super::*;

    fn load(posts: u32) -> Load {
        Load {
            rate: 1000,
            clients: 10,
            duration: Duration::from_millis(100),
            posts,
            pieces: 2,
            piece: (10, Duration::ZERO),
        }
    }

    fn to(server: &Server) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], server.port))
    }

    #[test]
    fn what_a_client_sees_is_counted() {
        let capacity = Capacity { work: Duration::ZERO, at_once: 100 };
        let mut server = Server::start(capacity).unwrap();
        assert_eq!(load(50).run(to(&server)).failures(), 0);
        server.fail(100);
        let tally = load(0).run(to(&server));
        assert!(tally.requests > 0);
        assert_eq!(tally.failed.get("500"), Some(&tally.requests));
        server.kill();
        let tally = load(0).run(to(&server));
        assert_eq!(tally.failed.get("connect"), Some(&tally.requests));
        server.fail(0);
        server.revive().unwrap();
        assert_eq!(load(0).run(to(&server)).failures(), 0);
    }

    #[test]
    fn a_response_is_whole_with_its_length_or_its_end() {
        let of = |said: &str, is_end| response(said.as_bytes(), is_end);
        let with = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(of(with, false), None);
        assert_eq!(of(&format!("{with}ab"), false), Some((200, true)));
        assert_eq!(of(&format!("{with}a"), true), None);
        let closing = "HTTP/1.1 503 No\r\nConnection: close\r\n\r\nno";
        assert_eq!(of(closing, false), None);
        assert_eq!(of(closing, true), Some((503, false)));
        assert_eq!(of("HTTP/1.1 100 Continue\r\n\r\n", true), None);
    }
}
