//! The clients of `xtask bench http`: persistent connections, controlled by commands on standard input.
//!
//! ```text
//!   http_load ADDRESS PATH CONNECTIONS [COOKIE]
//!                                           → "connected" after each connection got a reply
//!   run ACTIVE MILLISECONDS                 → "begun", then "done REQUESTS P50 P99" in µs
//!   count ACTIVE REQUESTS                   → "begun", then "done REQUESTS P50 P99"
//!   pace ACTIVE RATE MILLISECONDS           → "begun", then "done REQUESTS P50 P99 LATE"
//! ```
//!
//! `run` and `count` keep one request in flight on each active connection. `pace` sends on an absolute schedule,
//! independent of the replies, and measures from the time when a request was due. LATE is the delay with which the
//! median request was sent. Active connections are spread over all connections. A reply that is not a 200, or a
//! connection that ends, stops the load with an error. With a COOKIE all requests carry it: its value is sixteen zeros,
//! or the value that a reply set on the same connection.

use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

struct Client {
    socket: TcpStream,
    /// When the request in flight was due.
    due: Option<Instant>,
    /// The received part of the head; empty after it was parsed.
    head: Vec<u8>,
    /// The remaining bytes of the reply, after its head was parsed.
    left: Option<usize>,
    /// The requests of this client, if they differ from the common ones.
    request: Option<Box<[u8]>>,
}

struct Load {
    poll: rustix::fd::OwnedFd,
    clients: Vec<Client>,
    request: Request,
    room: Vec<u8>,
    reports: Vec<epoll::Event>,
    latencies: Vec<u32>,
    late: Vec<u32>,
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let (address, path, connections, cookie) = match &words[..] {
        [_, address, path, connections] => (address, path, connections, None),
        [_, address, path, connections, cookie] => (address, path, connections, Some(cookie)),
        _ => return Err(io::Error::other("usage: http_load ADDRESS PATH CONNECTIONS [COOKIE]")),
    };
    let connections: usize = connections.parse().map_err(io::Error::other)?;
    let mut load = Load {
        poll: epoll::create(CreateFlags::CLOEXEC)?,
        clients: Vec::new(),
        request: Request::new(address, path, cookie.map(String::as_str)),
        room: vec![0; 256 << 10],
        reports: Vec::with_capacity(1024),
        latencies: Vec::new(),
        late: Vec::new(),
    };
    for place in 0..connections {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        epoll::add(&load.poll, &socket, EventData::new_u64(place as u64), EventFlags::IN)?;
        let (due, head, left, request) = (None, Vec::new(), None, None);
        load.clients.push(Client { socket, due, head, left, request });
        // The first requests are sent one after the other. With concurrent ones, a proxy would open more server
        // connections than it needs.
        load.send(place, Instant::now())?;
        while load.clients[place].due.is_some() {
            load.wait(None)?;
        }
    }
    say("connected")?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let number = |place: usize| -> io::Result<u64> {
            let word: &&str = words.get(place).ok_or_else(|| io::Error::other("a number lacks"))?;
            word.parse().map_err(io::Error::other)
        };
        let active = usize::try_from(number(1)?).map_err(io::Error::other)?;
        load.latencies.clear();
        load.late.clear();
        say("begun")?;
        match words.first() {
            Some(&"run") => load.run(active, Duration::from_millis(number(2)?))?,
            Some(&"count") => load.count(active, number(2)?)?,
            Some(&"pace") => {
                load.pace(active, number(2)?, Duration::from_millis(number(3)?))?;
            }
            _ => return Err(io::Error::other(format!("what is {line}?"))),
        }
        load.drain()?;
    }
    Ok(())
}

fn say(text: &str) -> io::Result<()> {
    println!("{text}");
    io::stdout().flush()
}

impl Load {
    /// The indices of the active connections.
    fn places(&self, active: usize) -> Vec<usize> {
        let step = (self.clients.len() / active).max(1);
        (0..self.clients.len()).step_by(step).take(active).collect()
    }

    fn run(&mut self, active: usize, window: Duration) -> io::Result<()> {
        let end = Instant::now() + window;
        for place in self.places(active) {
            self.send(place, Instant::now())?;
        }
        loop {
            let now = Instant::now();
            if now >= end {
                return self.report();
            }
            for place in self.wait(Some(end - now))? {
                self.send(place, Instant::now())?;
            }
        }
    }

    fn count(&mut self, active: usize, requests: u64) -> io::Result<()> {
        let mut sent = 0;
        for place in self.places(active) {
            if sent < requests {
                self.send(place, Instant::now())?;
                sent += 1;
            }
        }
        while (self.latencies.len() as u64) < requests {
            for place in self.wait(None)? {
                if sent < requests {
                    self.send(place, Instant::now())?;
                    sent += 1;
                }
            }
        }
        self.report()
    }

    fn pace(&mut self, active: usize, rate: u64, window: Duration) -> io::Result<()> {
        let mut free = self.places(active);
        let (begun, gap) = (Instant::now(), Duration::from_nanos(1_000_000_000 / rate.max(1)));
        let mut next = begun;
        loop {
            let now = Instant::now();
            if now >= begun + window {
                return self.report();
            }
            while next <= now
                && let Some(place) = free.pop()
            {
                self.send(place, next)?;
                self.late.push(micros(now - next));
                next += gap;
            }
            let pause = if free.is_empty() { gap } else { next.saturating_duration_since(now) };
            let back = self.wait(Some(pause))?;
            // The connection that was used last waits longest, so that all are used in turn.
            free.splice(0..0, back);
        }
    }

    fn report(&mut self) -> io::Result<()> {
        let done = self.latencies.len();
        let [p50, p99] = [50, 99].map(|percent| percentile(&mut self.latencies, percent));
        let late = percentile(&mut self.late, 50);
        say(&format!("done {done} {p50} {p99} {late}"))
    }

    fn send(&mut self, place: usize, due: Instant) -> io::Result<()> {
        let client = &mut self.clients[place];
        client.due = Some(due);
        // A request is far smaller than the free buffer of an idle socket.
        let request = client.request.as_deref().unwrap_or(&self.request.bytes);
        let sent = client.socket.write(request)?;
        if sent == request.len() { Ok(()) } else { Err(io::Error::other("a short write")) }
    }

    /// Receives the replies that were in flight when the time was over.
    fn drain(&mut self) -> io::Result<()> {
        while self.clients.iter().any(|client| client.due.is_some()) {
            self.wait(None)?;
        }
        Ok(())
    }

    /// Waits, receives, and returns the connections whose reply is complete.
    fn wait(&mut self, patience: Option<Duration>) -> io::Result<Vec<usize>> {
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        self.reports.clear();
        match epoll::wait(&self.poll, spare_capacity(&mut self.reports), patience.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut whole = Vec::new();
        let now = Instant::now();
        for report in &self.reports {
            let place = usize::try_from(report.data.u64()).map_err(io::Error::other)?;
            let client = &mut self.clients[place];
            let count = match client.socket.read(&mut self.room) {
                Ok(0) => return Err(io::Error::other("the server ended a connection")),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            if client.take(&self.room[..count], &self.request)? {
                let due = client.due.take().ok_or_else(|| io::Error::other("not asked for"))?;
                self.latencies.push(micros(now.saturating_duration_since(due)));
                whole.push(place);
            }
        }
        Ok(whole)
    }
}

/// The request to send.
struct Request {
    bytes: Vec<u8>,
    /// `COOKIE=`, and the position of its value.
    cookie: Option<(String, usize)>,
}

const NO_COOKIE: &str = "0000000000000000";

impl Request {
    fn new(address: &str, path: &str, cookie: Option<&str>) -> Self {
        let mut text = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n");
        let cookie = cookie.map(|name| {
            text.push_str(&format!("Cookie: {name}="));
            let place = text.len();
            text.push_str(&format!("{NO_COOKIE}\r\n"));
            (format!("{name}="), place)
        });
        text.push_str("\r\n");
        Self { bytes: text.into_bytes(), cookie }
    }

    /// Returns the requests of a client whose reply had this head, if the reply sets the cookie.
    fn with_cookie_of(&self, head: &str) -> Option<Box<[u8]>> {
        let (name, place) = self.cookie.as_ref()?;
        let set =
            head.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")?.strip_prefix(name))?;
        let value = set.split(';').next().unwrap_or_default().as_bytes();
        let (before, after) = (&self.bytes[..*place], &self.bytes[place + NO_COOKIE.len()..]);
        Some([before, value, after].concat().into())
    }
}

impl Client {
    /// Reads bytes of a reply. Returns `true` when it is complete.
    fn take(&mut self, bytes: &[u8], request: &Request) -> io::Result<bool> {
        let mut bytes = bytes;
        if self.left.is_none() {
            self.head.extend_from_slice(bytes);
            let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") else {
                return Ok(false);
            };
            let text = String::from_utf8_lossy(&self.head[..end]);
            if let Some(own) = request.with_cookie_of(&text) {
                self.request = Some(own);
            }
            let text = text.to_ascii_lowercase();
            if !text.starts_with("http/1.1 200") {
                return Err(io::Error::other(text));
            }
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.and_then(|length| length.parse().ok());
            self.left = Some(length.ok_or_else(|| io::Error::other("no length"))?);
            bytes = &bytes[bytes.len() - (self.head.len() - end - 4)..];
            self.head.clear();
        }
        let left = self.left.unwrap_or(0);
        let Some(left) = left.checked_sub(bytes.len()) else {
            return Err(io::Error::other("more than was asked for"));
        };
        self.left = (left > 0).then_some(left);
        Ok(left == 0)
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

fn percentile(values: &mut [u32], percent: usize) -> u32 {
    values.sort_unstable();
    let place = values.len() * percent / 100;
    values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or(0)
}
