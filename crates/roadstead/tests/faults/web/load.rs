//! An HTTP load and its results: of ten requests, seven read, two have an effect, and one is slow.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::server::body_of;
use crate::daemon::PATIENCE;

/// Connections, each with one request at a time.
const CLIENTS: u64 = 24;
/// The number of the next client; no two loads of this process have the same ids.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The time from an answer to the next request.
const PACE: Duration = Duration::from_millis(4);
const SENT: usize = 4096;

/// The results of all requests.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) answered: u64,
    /// Redirected.
    pub(super) redirected: u64,
    /// Requests with an unknown effect.
    pub(super) effects_unknown: u64,
    /// Sent to a server that did not answer in time.
    pub(super) late: u64,
    /// Replies that began and did not finish.
    pub(super) cut: u64,
    /// The 99th percentile of the response times, in ms.
    pub(super) p99_ms: u128,
    /// Requests that failed although they could have been sent to another server.
    pub(super) needless: Vec<(u64, String)>,
    /// Bodies of other requests, and effects that happened twice or not at all.
    pub(super) wrong: Vec<String>,
    /// Requests per server, by its port.
    pub(super) shares: BTreeMap<u16, u64>,
    took: Vec<Duration>,
    acknowledged: Vec<u64>,
}

pub(super) struct Load {
    clients: Vec<JoinHandle<Verdict>>,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
}

/// The received part of a reply.
struct Reply {
    status: u16,
    body: Vec<u8>,
    is_whole: bool,
}

impl Load {
    pub(super) fn start(address: &str) -> Self {
        Self::start_with(address, CLIENTS)
    }

    pub(super) fn start_with(address: &str, clients: u64) -> Self {
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let clients = (0..clients).map(|_| {
            let client = NEXT.fetch_add(1, Ordering::Relaxed);
            let (address, stop, asked) =
                (address.to_owned(), Arc::clone(&stop), Arc::clone(&asked));
            thread::spawn(move || ask_on(&address, client * 1_000_000, &stop, &asked))
        });
        Self { clients: clients.collect(), stop, asked }
    }

    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Stops the load and compares what clients received with what servers did.
    pub(super) fn end(self, done: &Path) -> Verdict {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Verdict::default();
        for client in self.clients {
            all.add(client.join().unwrap());
        }
        all.took.sort_unstable();
        all.p99_ms = all.took.get(all.took.len() * 99 / 100).map_or(0, Duration::as_millis);
        let mut times: BTreeMap<u64, u32> = BTreeMap::new();
        let done = fs::read_to_string(done).unwrap_or_default();
        for line in done.lines() {
            let mut words = line.split(' ');
            let (kind, id) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
            *all.shares.entry(words.next().unwrap().parse().unwrap()).or_default() += 1;
            if kind == "write" {
                *times.entry(id).or_default() += 1;
            }
        }
        let twice = times.iter().filter(|(_, times)| **times > 1);
        all.wrong.extend(twice.map(|(id, times)| format!("{id} took effect {times} times")));
        let lost = all.acknowledged.iter().filter(|id| !times.contains_key(id));
        all.wrong.extend(lost.map(|id| format!("{id} was acknowledged and took no effect")));
        (all.took, all.acknowledged) = (Vec::new(), Vec::new());
        all
    }
}

impl Verdict {
    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.redirected += other.redirected;
        self.effects_unknown += other.effects_unknown;
        self.late += other.late;
        self.cut += other.cut;
        self.needless.extend(other.needless);
        self.wrong.extend(other.wrong);
        self.took.extend(other.took);
        self.acknowledged.extend(other.acknowledged);
    }

    fn judge(&mut self, id: u64, kind: &str, took: Duration, reply: Option<&Reply>) {
        let sent = if kind == "write" { SENT } else { 0 };
        let right = body_of(id, 1024 + sent);
        match reply {
            Some(reply) if reply.status == 200 && !right.starts_with(&reply.body) => {
                let body = reply.body[..reply.body.len().min(40)].escape_ascii();
                self.wrong.push(format!("{id} got {body}"));
            }
            Some(Reply { status: 200, is_whole: true, body }) if body.len() == right.len() => {
                self.answered += 1;
                self.took.push(took);
                if kind == "write" {
                    self.acknowledged.push(id);
                }
            }
            Some(Reply { status: 200, is_whole: true, .. }) => {
                self.wrong.push(format!("{id} got a part of its body as the whole"));
            }
            Some(Reply { status: 200, .. }) => self.cut += 1,
            Some(Reply { status: 302, is_whole: true, .. }) => self.redirected += 1,
            Some(Reply { status: 504, .. }) => self.late += 1,
            Some(Reply { status: 502, .. }) if kind == "write" => self.effects_unknown += 1,
            other => {
                let status = other.map(|reply| reply.status);
                self.needless.push((id, format!("{kind}: {status:?} after {took:?}")));
            }
        }
    }
}

/// Sends one request after the other. A closed connection is reopened.
fn ask_on(address: &str, first: u64, stop: &AtomicBool, asked: &AtomicU64) -> Verdict {
    let mut verdict = Verdict::default();
    let mut connection: Option<BufReader<TcpStream>> = None;
    for id in first.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let kind = match id % 10 {
            0..=6 => "read",
            7 | 8 => "write",
            _ => "slow",
        };
        let stream = connection.get_or_insert_with(|| {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_nodelay(true).unwrap();
            BufReader::new(stream)
        });
        let begun = Instant::now();
        let reply = ask(stream, id, kind);
        asked.fetch_add(1, Ordering::Relaxed);
        verdict.judge(id, kind, begun.elapsed(), reply.as_ref().map(|(reply, _)| reply));
        if !reply.is_some_and(|(reply, closes)| reply.is_whole && !closes) {
            connection = None;
        }
        thread::park_timeout(PACE);
    }
    verdict
}

/// Returns the reply, if there is one, and whether the connection ends after it.
fn ask(stream: &mut BufReader<TcpStream>, id: u64, kind: &str) -> Option<(Reply, bool)> {
    let (method, body) =
        if kind == "write" { ("POST", vec![b'x'; SENT]) } else { ("GET", Vec::new()) };
    let head = format!(
        "{method} /{id}/{kind} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.get_mut().write_all(&[head.as_bytes(), &body].concat()).ok()?;
    let (mut line, mut status, mut length, mut closes) = (String::new(), None, 0, false);
    loop {
        line.clear();
        stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let text = line.trim_end().to_ascii_lowercase();
        if let Some(said) = text.strip_prefix("http/1.1 ") {
            status = said.get(..3)?.parse().ok();
        } else if let Some(said) = text.strip_prefix("content-length: ") {
            length = said.parse().ok()?;
        } else if text == "connection: close" {
            closes = true;
        } else if text.is_empty() {
            break;
        }
    }
    let mut body = Vec::new();
    // A reset also ends the reply. The bytes received before it count.
    let _ = stream.take(length).read_to_end(&mut body);
    let is_whole = body.len() as u64 == length;
    Some((Reply { status: status?, body, is_whole }, closes))
}
