//! Request smuggling: requests that contain another one, at every position of a connection, through the daemon to
//! common servers.
//!
//! Either the daemon rejects them, or the server sees exactly the requests in our access log: the log of each server is
//! compared with ours, and both with what the client received. So no request is ever read as the beginning of another
//! request.

mod attempts;
mod servers;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::Shutdown;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::{connect, read_until, rest};
use crate::daemon::{Daemon, folder, until};
use crate::http_server::{Answer, Server};
use attempts::attempts;
use servers::{Real, apache, nginx, python};

/// The position of an attempt.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// As the first request of its connection.
    First,
    /// On a reused connection, after the first reply has arrived.
    Second,
    /// After another request whose reply has not arrived.
    Behind,
    /// As the body of a POST with a length.
    Body,
    /// As the body of a POST in chunks.
    Chunk,
    /// As the body of a request with `Expect: 100-continue` that does not wait.
    Expected,
    /// After an upgrade request that the server declines.
    Upgrade,
}

impl Place {
    const ALL: [Self; 7] = [
        Self::First,
        Self::Second,
        Self::Behind,
        Self::Body,
        Self::Chunk,
        Self::Expected,
        Self::Upgrade,
    ];

    /// Returns the bytes before and after the attempt.
    fn around(self, number: usize, length: usize) -> (String, &'static str) {
        let head = |line: &str, fields: &str| {
            let (method, name) = line.split_once(' ').expect("a method and a name");
            format!("{method} /{number}/{name} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
        };
        match self {
            Self::First => (String::new(), ""),
            Self::Second | Self::Behind => (head("GET before", ""), ""),
            Self::Body => (head("POST outer", &format!("Content-Length: {length}\r\n")), ""),
            Self::Chunk => {
                let head = head("POST outer", "Transfer-Encoding: chunked\r\n");
                (format!("{head}{length:x}\r\n"), "\r\n0\r\n\r\n")
            }
            Self::Expected => {
                let fields = format!("Expect: 100-continue\r\nContent-Length: {length}\r\n");
                (head("POST outer", &fields), "")
            }
            Self::Upgrade => (head("GET before", "Connection: upgrade\r\nUpgrade: h2c\r\n"), ""),
        }
    }
}

/// An attempt, its position, and the response.
struct Tried {
    number: usize,
    place: Place,
    attempt: String,
    said: String,
}

/// Each character is a byte.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|one| u8::try_from(u32::from(one)).expect("below 256")).collect()
}

fn try_one(daemon: &Daemon, number: usize, place: Place, attempt: String) -> Tried {
    let (before, behind) = place.around(number, bytes(&attempt).len());
    let last = format!("GET /{number}/last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut client = connect(daemon);
    let (mut sent, mut said) = (before, String::new());
    if matches!(place, Place::Second) {
        client.write_all(sent.as_bytes()).unwrap();
        said = read_until(&mut client, "ok");
        sent.clear();
    }
    sent = sent + &attempt + behind + &last;
    // The daemon may have rejected the request and closed the connection.
    let _ = client.write_all(&bytes(&sent));
    let _ = client.shutdown(Shutdown::Write);
    said += &rest(&mut client);
    Tried { number, place, attempt, said }
}

/// Tries all attempts, several concurrently.
fn try_all(daemon: &Daemon) -> Vec<Tried> {
    let kinds: Vec<(Place, usize, usize)> = Place::ALL
        .iter()
        .flat_map(|place| {
            let lines = if matches!(place, Place::First) { 3 } else { 1 };
            (0..attempts(0, lines).len()).map(move |kind| (*place, lines, kind))
        })
        .collect();
    let (next, tried) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(place, lines, kind)) = kinds.get(number) else { return };
                    let attempt = attempts(number, lines).swap_remove(kind);
                    let one = try_one(daemon, number, place, attempt);
                    tried.lock().unwrap().push(one);
                }
            });
        }
    });
    tried.into_inner().unwrap()
}

/// Returns the number of an attempt, its method and its path; `None` if the line is not a request of this test.
fn key(line: &str) -> Option<(usize, String)> {
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let path = target.strip_prefix("http://a").unwrap_or(target);
    let number = path.strip_prefix('/')?.split('/').next()?.parse().ok()?;
    Some((number, format!("{method} {path}")))
}

/// A line of our log: a request that a worker received.
#[derive(Debug)]
struct Given {
    asked: String,
    /// The client received the answer.
    answered: bool,
    /// The maximum number of times that a server may have received it.
    most: usize,
}

fn given(log: &Path) -> BTreeMap<usize, Vec<Given>> {
    let mut all: BTreeMap<usize, Vec<Given>> = BTreeMap::new();
    for line in fs::read_to_string(log).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["dropped"].is_null(), "{line}");
        if line["worker"].is_null() || line["worker_end"] == "none" {
            continue;
        }
        let request = line["request"].as_str().unwrap();
        let (number, asked) = key(request).unwrap_or_else(|| panic!("{request} went on"));
        let answered = line["client_end"] == "ok" && line["worker_end"] == "ok";
        let most = usize::try_from(line["retries"].as_u64().unwrap()).unwrap() + 1;
        all.entry(number).or_default().push(Given { asked, answered, most });
    }
    all
}

/// Whether all of `some` is in `all`, in the same order.
fn is_within<'a>(some: &[&'a str], all: &[&'a str]) -> bool {
    let mut rest = all.iter();
    some.iter().all(|one| rest.any(|it| it == one))
}

fn saw(said: &str) -> Vec<String> {
    let lines = said.split("\r\n").filter_map(|line| line.strip_prefix("X-Saw: "));
    lines.map(|line| key(line).map_or_else(|| line.to_owned(), |(_, asked)| asked)).collect()
}

fn through(real: Real) {
    let folder = folder();
    let text = format!(
        "[access_log]\nto = \"file:access.log\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
         half_close = \"keep\"\n[pool.main]\nservers = [\"127.0.0.1:{}\"]\n",
        real.port
    );
    let daemon = Daemon::serve(folder.path(), &text);
    let tried = try_all(&daemon);
    let told: usize = tried.iter().map(|one| saw(&one.said).len()).sum();
    until("each reply to be in the log of its server", || real.log().len() >= told);
    assert!(daemon.stop().success());
    let ours = given(&folder.path().join("access.log"));
    let mut theirs: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for line in real.stop() {
        match key(&line) {
            Some((number, asked)) => theirs.entry(number).or_default().push(asked),
            // A connection that ended without a request.
            None => assert!(line.is_empty() || line == "-", "it saw {line}"),
        }
    }
    let mut passed = 0;
    for Tried { number, place, attempt, said } in &tried {
        let (ours, theirs) = (ours.get(number), theirs.get(number));
        let (ours, theirs) = (ours.map_or(&[][..], |it| it), theirs.map_or(&[][..], |it| it));
        let shown = format!(
            "{place:?} {}\nours {ours:?}\ntheirs {theirs:?}\nsaid {said}",
            attempt.escape_debug()
        );
        for asked in ours.iter().map(|it| &it.asked).chain(theirs) {
            let of = || ours.iter().filter(|it| it.asked == *asked);
            let seen = theirs.iter().filter(|it| *it == asked).count();
            let (least, most) =
                (of().filter(|it| it.answered).count(), of().map(|it| it.most).sum());
            assert!((least..=most).contains(&seen), "{asked} was seen {seen} times: {shown}");
        }
        let all: Vec<&str> = ours.iter().map(|it| it.asked.as_str()).collect();
        let answered: Vec<&str> =
            ours.iter().filter(|it| it.answered).map(|it| it.asked.as_str()).collect();
        let saw = saw(said);
        let saw: Vec<&str> = saw.iter().map(String::as_str).collect();
        assert!(is_within(&answered, &saw) && is_within(&saw, &all), "replies {saw:?}: {shown}");
        passed += usize::from(!saw.is_empty());
    }
    assert!(passed > tried.len() / 3, "{passed} of {} went on", tried.len());
    assert!(passed < tried.len(), "none was refused");
}

#[test]
fn nothing_is_smuggled_to_nginx() {
    through(nginx());
}

#[test]
fn nothing_is_smuggled_to_apache() {
    through(apache());
}

#[test]
fn nothing_is_smuggled_to_python() {
    through(python());
}

#[test]
fn behind_a_101_nothing_is_a_request() {
    let server = Server::start(&[("/ws", Answer::Switch)]);
    let folder = folder();
    let text = format!(
        "[access_log]\nto = \"file:access.log\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
         [pool.main]\nservers = [\"127.0.0.1:{}\"]\n",
        server.port
    );
    let daemon = Daemon::serve(folder.path(), &text);
    let ask = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    let all = attempts(0, 1);
    for attempt in &all {
        let mut client = connect(&daemon);
        // Sent before there is a 101: the bytes wait for it.
        client.write_all(&[ask.as_bytes(), &bytes(attempt)].concat()).unwrap();
        let mut said = [0; 4];
        client.peek(&mut said).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let said = rest(&mut client);
        let (head, said) = said.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let capitals = bytes(attempt).to_ascii_uppercase();
        assert_eq!(said, String::from_utf8_lossy(&capitals), "{}", attempt.escape_debug());
    }
    assert_eq!(server.seen().len(), all.len(), "nothing but what asked for the tunnels");
    assert!(daemon.stop().success());
    let log = fs::read_to_string(folder.path().join("access.log")).unwrap();
    assert_eq!(log.lines().count(), all.len());
    assert!(log.lines().all(|line| line.contains("\"request\":\"GET /ws HTTP/1.1\"")), "{log}");
}
