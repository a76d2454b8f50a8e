//! Nothing that one client sends changes the bytes of another client's request or reply.
//!
//! Each round plays random histories of dirty clients: messages that are well formed, malformed, cut at any byte,
//! pipelined; then closed, reset, half-closed or left open. Clean clients follow. What they receive, and what the
//! server receives from them, is compared byte by byte with the result of a fresh daemon. The seed is printed;
//! `ROADSTEAD_SEED` replays it, and `ROADSTEAD_FAULTS=full` plays ten times as many rounds.

#[allow(dead_code, reason = "only numbers are drawn here, no times")]
#[path = "../../../simulate/src/chance.rs"]
mod chance;
mod http;
mod messages;
mod recorder;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use chance::Chance;

use crate::daemon::PATIENCE;

/// The maximum number of open dirty connections.
const OPEN_MAX: usize = 12;

/// A request of a clean client.
pub(crate) struct Clean {
    bytes: Vec<u8>,
    /// It may arrive in two pieces. What the server receives must not depend on that.
    is_split: bool,
}

/// The result of a clean request.
#[derive(Clone, PartialEq, Eq)]
struct Seen {
    reply: Vec<u8>,
    at_server: Vec<Vec<u8>>,
}

/// A daemon, and the messages of its clients.
pub(crate) struct Stage<'a> {
    address: String,
    /// The messages of dirty clients.
    scripts: &'a [Vec<u8>],
    clean: &'a [Clean],
    /// Takes the clean requests that the server received since the last call.
    received: &'a dyn Fn() -> Vec<Vec<u8>>,
    /// Whether this is the whole reply to this request.
    is_whole: fn(&[u8], &[u8]) -> bool,
}

#[derive(Clone, Copy)]
enum End {
    Closed,
    Reset,
    HalfClosed,
    LeftOpen,
}

const ENDS: [End; 4] = [End::Closed, End::Reset, End::HalfClosed, End::LeftOpen];

/// Returns `usual` rounds, or ten times as many.
fn rounds(usual: usize) -> usize {
    let is_full = std::env::var("ROADSTEAD_FAULTS").as_deref() == Ok("full");
    if is_full { usual * 10 } else { usual }
}

fn seed() -> u64 {
    let given = std::env::var("ROADSTEAD_SEED").ok();
    let seed = given.map_or(1, |seed| seed.parse().expect("ROADSTEAD_SEED is a number"));
    println!("ROADSTEAD_SEED={seed}");
    seed
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    stream
}

/// Returns the bytes of a dirty client: some scripts, perhaps with one byte changed, perhaps cut.
fn dirt(chance: &mut Chance, scripts: &[Vec<u8>]) -> Vec<u8> {
    let count = chance.between(1, 3);
    let picked = (0..count).map(|_| scripts[chance.below(scripts.len())].clone());
    let mut bytes = picked.collect::<Vec<_>>().concat();
    let place = chance.below(bytes.len());
    match chance.below(10) {
        0 => bytes[place] ^= 1 << chance.below(8),
        1 => drop(bytes.remove(place)),
        2 => bytes.insert(place, b"\r\n\0 :;,0"[chance.below(8)]),
        _ => {}
    }
    if chance.in_1000(600) {
        bytes.truncate(chance.below(bytes.len() + 1));
    }
    bytes
}

/// The bytes in one to three pieces.
fn pieces(chance: &mut Chance, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut cuts: Vec<usize> =
        (0..chance.below(3)).map(|_| chance.below(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| bytes[cut[0]..cut[1]].to_vec()).collect()
}

fn end(stream: TcpStream, end: End, open: &mut VecDeque<TcpStream>) {
    match end {
        End::Closed => return,
        End::Reset => {
            rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
            return;
        }
        End::HalfClosed => drop(stream.shutdown(Shutdown::Write)),
        End::LeftOpen => {}
    }
    open.push_back(stream);
    if open.len() > OPEN_MAX {
        open.pop_front();
    }
}

/// Replaces each date, complete or not, because it changes every second.
fn mask_dates(bytes: &mut [u8]) {
    const FIELD: &[u8] = b"\r\nDate: ";
    const LENGTH: usize = "Sun, 06 Nov 1994 08:49:37 GMT".len();
    let places = bytes.windows(FIELD.len()).enumerate().filter(|(_, part)| *part == FIELD);
    let places: Vec<usize> = places.map(|(place, _)| place + FIELD.len()).collect();
    for place in places {
        let end = (place + LENGTH).min(bytes.len());
        bytes[place..end].fill(b'x');
    }
}

/// Reads while the received bytes may be the beginning of the expected reply, and then to the end of the connection.
fn read_reply(stream: &mut TcpStream, expected: &[u8]) -> Vec<u8> {
    let (mut reply, mut bytes) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        if expected == reply {
            // Nothing may follow.
            let _ = stream.shutdown(Shutdown::Write);
        } else if !expected.starts_with(&reply) {
            return reply;
        }
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return reply,
            Ok(count) => reply.extend_from_slice(&bytes[..count]),
        }
        mask_dates(&mut reply);
    }
}

impl Stage<'_> {
    /// Returns the result of each clean request without other requests.
    fn reference(&self) -> Vec<Seen> {
        self.clean
            .iter()
            .map(|clean| {
                let mut stream = connect(&self.address);
                stream.write_all(&clean.bytes).unwrap();
                let (mut reply, mut bytes) = (Vec::new(), [0; 4096]);
                while !(self.is_whole)(&clean.bytes, &reply) {
                    let count = stream.read(&mut bytes).unwrap();
                    assert!(count > 0, "{}", clean.bytes.escape_ascii());
                    reply.extend_from_slice(&bytes[..count]);
                }
                mask_dates(&mut reply);
                Seen { reply, at_server: (self.received)() }
            })
            .collect()
    }

    /// Sends the rest of a clean request, and compares the result.
    fn compare(
        &self,
        stream: &mut TcpStream,
        (clean, rest): (usize, &[u8]),
        expected: &Seen,
    ) -> Result<(), String> {
        stream.write_all(rest).map_err(|why| format!("a clean client cannot send: {why}"))?;
        let reply = read_reply(stream, &expected.reply);
        let seen = Seen { reply, at_server: (self.received)() };
        if seen == *expected {
            return Ok(());
        }
        let shown = |seen: &Seen| {
            let at_server = seen.at_server.concat();
            let (reply, at_server) = (seen.reply.escape_ascii(), at_server.escape_ascii());
            format!("reply: {reply}\n  at the server: {at_server}")
        };
        let request = self.clean[clean].bytes.escape_ascii();
        Err(format!("{request}\ngot\n  {}\nexpected\n  {}", shown(&seen), shown(expected)))
    }

    fn ask(&self, chance: &mut Chance, reference: &[Seen]) -> Result<(), String> {
        let clean = chance.below(self.clean.len());
        let mut stream = connect(&self.address);
        self.compare(&mut stream, (clean, &self.clean[clean].bytes), &reference[clean])
    }

    /// One round: some dirty clients, then some clean ones.
    fn round(
        &self,
        chance: &mut Chance,
        open: &mut VecDeque<TcpStream>,
        reference: &[Seen],
    ) -> Result<(), String> {
        let mut dirty: Vec<(TcpStream, VecDeque<Vec<u8>>)> = (0..chance.between(1, 3))
            .map(|_| {
                let bytes = dirt(chance, self.scripts);
                (connect(&self.address), pieces(chance, &bytes).into())
            })
            .collect();
        while dirty.iter().any(|(_, pieces)| !pieces.is_empty()) {
            for (stream, pieces) in &mut dirty {
                // The daemon may have closed the connection, or stopped reading.
                let _ = pieces.pop_front().map(|piece| stream.write_all(&piece));
            }
        }
        let late = chance.in_1000(300);
        if late {
            self.ask(chance, reference)?;
        }
        for (stream, _) in dirty {
            end(stream, chance.pick(&ENDS), open);
        }
        if !late {
            self.ask(chance, reference)?;
        }
        // Several clean clients run concurrently, so that each free object is used by one of them.
        let mut clean: Vec<(TcpStream, usize, usize)> = Vec::new();
        for _ in 0..chance.between(1, 4) {
            let which = chance.below(self.clean.len());
            let Clean { bytes, is_split } = &self.clean[which];
            let cut =
                if *is_split { chance.pick(&[0, 1, bytes.len() / 2, bytes.len() - 1]) } else { 0 };
            let mut stream = connect(&self.address);
            stream.write_all(&bytes[..cut]).unwrap();
            clean.push((stream, which, cut));
        }
        self.ask(chance, reference)?;
        for (mut stream, which, cut) in clean {
            let rest = &self.clean[which].bytes[cut..];
            self.compare(&mut stream, (which, rest), &reference[which])?;
        }
        Ok(())
    }

    /// Plays this number of rounds. Stops at the first difference.
    fn play(&self, rounds: usize, reference: &[Seen]) -> Result<(), String> {
        let (mut chance, mut open) = (Chance::new(seed()), VecDeque::new());
        for round in 0..rounds {
            self.round(&mut chance, &mut open, reference)
                .map_err(|what| format!("round {round}: {what}"))?;
        }
        Ok(())
    }
}
