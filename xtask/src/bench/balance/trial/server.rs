//! A server with a limited capacity that can be killed, can hang and can return errors.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The body of a response.
const BODY: [u8; 128] = [b'x'; 128];
/// How often a hanging request checks whether it may continue.
const LOOK: Duration = Duration::from_millis(5);

/// How long a request takes, and how many requests a server processes concurrently. Further requests wait in the
/// server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    pub(super) work: Duration,
    pub(super) at_once: u32,
}

#[derive(Debug)]
struct State {
    capacity: Capacity,
    is_up: AtomicBool,
    hangs: AtomicBool,
    /// The percentage of requests that are answered with 500.
    errors: AtomicU32,
    requests: AtomicU32,
    busy: Mutex<u32>,
    freed: Condvar,
    open: Mutex<Vec<TcpStream>>,
}

/// One server. It keeps its port while it exists.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) port: u16,
    state: Arc<State>,
    acceptor: Option<thread::JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(capacity: Capacity) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State {
            capacity,
            is_up: AtomicBool::new(true),
            hangs: AtomicBool::new(false),
            errors: AtomicU32::new(0),
            requests: AtomicU32::new(0),
            busy: Mutex::new(0),
            freed: Condvar::new(),
            open: Mutex::new(Vec::new()),
        });
        let acceptor = Some(accept(listener, Arc::clone(&state)));
        Ok(Self { port, state, acceptor })
    }

    /// Closes its socket and all connections, as the kernel does for a killed process.
    pub(super) fn kill(&mut self) {
        self.state.is_up.store(false, Ordering::Relaxed);
        // Wakes the accepting thread, which then sees that the server is down.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        for stream in lock(&self.state.open).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn revive(&mut self) -> std::io::Result<()> {
        if self.acceptor.is_none() {
            let listener = TcpListener::bind(("127.0.0.1", self.port))?;
            self.state.is_up.store(true, Ordering::Relaxed);
            self.acceptor = Some(accept(listener, Arc::clone(&self.state)));
        }
        Ok(())
    }

    /// Stops answering, or answers again.
    pub(super) fn hang(&self, hangs: bool) {
        self.state.hangs.store(hangs, Ordering::Relaxed);
    }

    /// Answers this percentage of requests with 500.
    pub(super) fn fail(&self, percent: u32) {
        self.state.errors.store(percent, Ordering::Relaxed);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.hang(false);
        self.kill();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: TcpListener, state: Arc<State>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            if !state.is_up.load(Ordering::Relaxed) {
                return;
            }
            let Ok(kept) = stream.try_clone() else { continue };
            lock(&state.open).push(kept);
            let state = Arc::clone(&state);
            // Errors of a connection are ignored, because the client sees and counts them.
            thread::spawn(move || state.serve(stream).unwrap_or_default());
        }
    })
}

impl State {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(path) = read_request(&mut reader)? {
            while self.hangs.load(Ordering::Relaxed) && self.is_up.load(Ordering::Relaxed) {
                thread::sleep(LOOK);
            }
            let (status, body) = match path.as_str() {
                "/health" => ("200 OK", &BODY[..2]),
                _ => (self.work(), &BODY[..]),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), body].concat())?;
        }
        Ok(())
    }

    /// Processes a request when the capacity allows it.
    fn work(&self) -> &'static str {
        let full = |busy: &mut u32| *busy >= self.capacity.at_once;
        let wait = self.freed.wait_while(lock(&self.busy), full);
        *wait.unwrap_or_else(PoisonError::into_inner) += 1;
        thread::sleep(self.capacity.work);
        *lock(&self.busy) -= 1;
        self.freed.notify_one();
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        // Failures are spread evenly, and are the same in every run.
        let fails = number.wrapping_mul(37) % 100 < self.errors.load(Ordering::Relaxed);
        if fails { "500 Internal Server Error" } else { "200 OK" }
    }
}

/// Reads a request with its body. Returns its path.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let text = line.trim_end().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let taken = std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok((taken == length).then_some(path))
}
