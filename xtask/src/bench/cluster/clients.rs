//! The clients of a proxy, and the server behind it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::clients::{connect, on_threads};
use crate::bench::ground::Ground;
use crate::bench::server::Server;
use crate::shell::{Failure, command};

/// Connections, each with a client of its own, which is bound.
pub(super) const CONNECTIONS: usize = 4;

/// Starts the server of all proxies.
pub(super) fn origin(ground: &Ground) -> Result<Server, Failure> {
    ground.start(command(ground.example("http_origin"), ["0"]), "origin")
}

/// Clients that send one request each, at a rate, over one connection.
pub(super) struct Clients {
    pub(super) address: String,
    rate: u32,
    window: Duration,
    next: u64,
}

impl Clients {
    pub(super) const fn new(address: String, rate: u32, window: Duration) -> Self {
        Self { address, rate, window, next: 0 }
    }

    /// Sends requests for the window. `bound` is called with the number of each client that was answered.
    pub(super) fn run(&mut self, mut bound: impl FnMut(u64)) -> Result<(), Failure> {
        let mut run = || -> io::Result<()> {
            let mut stream = connect(&self.address)?;
            let begun = Instant::now();
            let count = u64::from(self.rate) * self.window.as_secs().max(1);
            for number in 0..count {
                let due = Duration::from_micros(number * 1_000_000 / u64::from(self.rate));
                thread::sleep(due.saturating_sub(begun.elapsed()));
                once(&mut stream, self.next)?;
                bound(self.next);
                self.next += 1;
            }
            Ok(())
        };
        run().map_err(Failure::at("a client"))
    }
}

/// Sends a request of a client and reads its answer of one byte.
fn once(stream: &mut TcpStream, client: u64) -> io::Result<()> {
    let request = format!("GET /1 HTTP/1.1\r\nHost: a\r\nX-Client: {client:032}\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let (mut answer, mut part) = (Vec::new(), [0; 1024]);
    loop {
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => answer.extend_from_slice(&part[..count]),
        }
        let Some(end) = answer.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned()));
        }
        if answer.len() == end + 5 {
            return Ok(());
        }
    }
}

/// Sends requests of the same clients as fast as they are answered. Returns the number of requests.
pub(super) fn saturate(address: &str, window: Duration) -> Result<f64, Failure> {
    let answered = AtomicU32::new(0);
    let until = Instant::now() + window;
    on_threads(CONNECTIONS, |client| {
        let mut stream = connect(address)?;
        while Instant::now() < until {
            once(&mut stream, client as u64)?;
            answered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })?;
    Ok(f64::from(answered.into_inner()))
}
