//! Long replies that are forwarded without parsing, and events during the forwarding.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::{CLOSE, connect, read_until, rest, serve, serve_pool, status, talk};
use crate::daemon::{Daemon, until};
use crate::http_server::{Answer, Server};

const LONG: usize = 8 << 20;
const GET: &str = "GET /long HTTP/1.1\r\nHost: a\r\n\r\n";

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place * 7 + place / 251).to_le_bytes()[0]).collect()
}

/// A reply that has a date is forwarded byte by byte if no `Via` is added.
const DATE: &str = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
const AS_IT_IS: &str = "via = \"off\"\n";

fn long_reply(length: usize, sent: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{DATE}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), &body(sent)].concat()
}

/// Returns the bytes that the daemon holds in memory.
pub(super) fn memory(daemon: &Daemon) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
fn long_replies_of_every_framing_arrive_whole_one_behind_the_other() {
    let chunk = [b"400000\r\n", &body(4 << 20)[..], b"\r\n5\r\nhello\r\n0\r\n\r\n"].concat();
    let head = format!("HTTP/1.1 200 OK\r\n{DATE}Transfer-Encoding: chunked\r\n\r\n");
    let chunks = [head.as_bytes(), &chunk[..]].concat();
    let until_end = [b"HTTP/1.0 200 OK\r\n\r\n", &body(LONG)[..]].concat();
    let server = Server::start(&[
        ("/long", Answer::Bytes(long_reply(LONG, LONG))),
        ("/chunks", Answer::Bytes(chunks.clone())),
        ("/end", Answer::Last(until_end)),
    ]);
    let (_folder, daemon) = serve(&server, AS_IT_IS, "");
    let mut client = connect(&daemon);
    for round in 0..3 {
        for (path, expected) in [("/long", &long_reply(LONG, LONG)), ("/chunks", &chunks)] {
            write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            let mut said = vec![0; expected.len()];
            client.read_exact(&mut said).unwrap();
            assert!(said == *expected, "{path}, round {round}");
        }
        write!(client, "POST /{round} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nmine")
            .unwrap();
        assert!(read_until(&mut client, "mine").ends_with("\r\n\r\nmine"));
    }
    let mut client = connect(&daemon);
    client.write_all(b"GET /end HTTP/1.0\r\n\r\n").unwrap();
    let mut said = Vec::new();
    client.read_to_end(&mut said).unwrap();
    assert!(said.ends_with(&body(LONG)), "{} bytes", said.len());
}

#[test]
fn a_long_reply_that_is_cut_ends_its_connection_and_harms_no_other() {
    let evil = [&long_reply(LONG, LONG)[..], b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"];
    let server = Server::start(&[
        ("/long", Answer::Last(long_reply(LONG, LONG / 2))),
        ("/evil", Answer::Bytes(evil.concat())),
    ]);
    let (_folder, daemon) = serve(&server, AS_IT_IS, "");
    for _ in 0..5 {
        let mut client = connect(&daemon);
        client.write_all(GET.as_bytes()).unwrap();
        let mut said = Vec::new();
        // A reset is also accepted.
        let _ = client.read_to_end(&mut said);
        assert!(long_reply(LONG, LONG / 2).starts_with(&said), "{} bytes", said.len());
        let mut client = connect(&daemon);
        write!(client, "GET /evil HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut said = vec![0; long_reply(LONG, LONG).len()];
        client.read_exact(&mut said).unwrap();
        let post = format!("POST /fine HTTP/1.1\r\nContent-Length: 4\r\n{CLOSE}mine");
        assert!(talk(&daemon, &post).ends_with("\r\n\r\nmine"));
        client.write_all(post.as_bytes()).unwrap();
        assert!(rest(&mut client).ends_with("\r\n\r\nmine"));
    }
}

#[test]
fn a_reply_that_only_the_end_delimits_does_not_look_whole_when_it_is_cut() {
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let until_end = b"HTTP/1.0 200 OK\r\n\r\n";
    let server = Server::start(&[
        ("/ended", Answer::Last(chunks.into())),
        ("/broken", Answer::Bytes(format!("{chunks}no chunk\r\n").into())),
        ("/reset", Answer::Cut([&until_end[..], b"hello"].concat())),
        ("/unseen", Answer::Cut([&until_end[..], &body(LONG)].concat())),
        ("/whole", Answer::Last([&until_end[..], b"hello"].concat())),
    ]);
    let (_folder, daemon) = serve(&server, "", "");
    for path in ["/ended", "/broken", "/reset", "/unseen", "/whole"] {
        let mut client = connect(&daemon);
        write!(client, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let end = client.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
        if path == "/whole" {
            assert!(end.is_ok(), "{end:?}");
        } else {
            assert_eq!(end, Err(ErrorKind::ConnectionReset), "{path}");
        }
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_long_reply_takes_it_along() {
    let server = Server::start(&[("/long", Answer::Bytes(long_reply(LONG, LONG)))]);
    let (_folder, daemon) = serve(&server, "", "upstream.max_concurrent = 1");
    for _ in 0..5 {
        let mut client = connect(&daemon);
        client.write_all(GET.as_bytes()).unwrap();
        client.read_exact(&mut [0; 300_000]).unwrap();
        client.shutdown(Shutdown::Both).unwrap();
        // The one slot is free again.
        assert_eq!(status(&talk(&daemon, format!("GET /fine HTTP/1.1\r\n{CLOSE}"))), "200");
    }
}

#[test]
fn slow_readers_of_long_replies_cost_no_more_memory_than_their_limit() {
    let chunks = [
        format!("HTTP/1.1 200 OK\r\n{DATE}Transfer-Encoding: chunked\r\n\r\n").into_bytes(),
        [b"4000\r\n", &body(0x4000)[..], b"\r\n"].concat().repeat(LONG / 0x4000),
        b"0\r\n\r\n".to_vec(),
    ];
    let replies = [("/long", long_reply(LONG, LONG)), ("/chunks", chunks.concat())];
    let answers = replies.clone().map(|(path, reply)| (path, Answer::Bytes(reply)));
    let server = Server::start(&answers);
    // The timeouts are long, so that the duration of the others does not matter.
    let listener = format!("send_max = \"256KiB\"\nsend_timeout = \"1h\"\n{AS_IT_IS}");
    let (_folder, daemon) = serve(&server, &listener, "");
    let before = memory(&daemon);
    let clients: Vec<_> = (0..32)
        .map(|number| {
            let (path, reply) = &replies[number % 2];
            let mut client = connect(&daemon);
            write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            let mut first = vec![0; 1000];
            client.read_exact(&mut first).unwrap();
            (client, first, reply)
        })
        .collect();
    // Other clients are served meanwhile.
    for _ in 0..20 {
        assert_eq!(status(&talk(&daemon, format!("GET /fine HTTP/1.1\r\n{CLOSE}"))), "200");
        let grown = memory(&daemon).saturating_sub(before);
        assert!(grown < 32 * (256 << 10) * 2, "{grown} bytes");
    }
    for (mut client, mut said, reply) in clients {
        let first = said.len();
        said.resize(reply.len(), 0);
        client.read_exact(&mut said[first..]).unwrap();
        assert!(said == *reply);
    }
}

#[test]
fn a_client_that_takes_nothing_is_cut_and_one_whose_server_says_nothing_is_not() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (go_on, waits) = channel::<()>();
    // It sends the first client half, and the rest on request; it sends the second everything.
    let serving = std::thread::spawn(move || {
        let reply = long_reply(LONG, LONG);
        let (mut first, _) = listener.accept().unwrap();
        read_until(&mut first, "\r\n\r\n");
        first.write_all(&reply[..LONG / 2]).unwrap();
        let (mut second, _) = listener.accept().unwrap();
        read_until(&mut second, "\r\n\r\n");
        // Its client's connection is cut in the middle.
        let _ = second.write_all(&long_reply(LONG * 8, LONG * 8));
        waits.recv().unwrap();
        first.write_all(&reply[LONG / 2..]).unwrap();
        let _ = first.read(&mut [0]);
    });
    let pool = format!("servers = [\"127.0.0.1:{port}\"]");
    let (_folder, daemon) = serve_pool(&format!("send_timeout = \"300ms\"\n{AS_IT_IS}"), &pool);
    let mut patient = connect(&daemon);
    patient.write_all(GET.as_bytes()).unwrap();
    let mut said = vec![0; LONG / 2];
    patient.read_exact(&mut said).unwrap();
    let mut lazy = connect(&daemon);
    lazy.write_all(GET.as_bytes()).unwrap();
    until("the lazy one to be cut", || {
        daemon.metric("roadstead_connections_closed_total", &["main", "\"stalled\""]) == 1
    });
    go_on.send(()).unwrap();
    let reply = long_reply(LONG, LONG);
    said.resize(reply.len(), 0);
    patient.read_exact(&mut said[LONG / 2..]).unwrap();
    assert!(said == reply);
    drop((patient, lazy));
    drop(daemon);
    serving.join().unwrap();
}

/// Reads 40 kB every 100 ms for longer than two `send_timeout`, and then the rest. If the connection ends before,
/// returns the longest time between two reads.
fn read_slowly(daemon: &Daemon, reply: &[u8]) -> Result<(), Duration> {
    let mut client = connect(daemon);
    // The small buffer makes its acknowledgements come in small steps.
    rustix::net::sockopt::set_socket_recv_buffer_size(&client, 16 << 10).unwrap();
    client.write_all(GET.as_bytes()).unwrap();
    let mut said = vec![0; reply.len()];
    let (mut read_at, mut longest) = (Instant::now(), Duration::ZERO);
    let parts = said.split_at_mut(25 * 40_000);
    for part in parts.0.chunks_mut(40_000).chain([parts.1]) {
        until("a tenth of a second passes", || read_at.elapsed() > Duration::from_millis(100));
        longest = longest.max(read_at.elapsed());
        client.read_exact(part).map_err(|_| longest)?;
        read_at = Instant::now();
    }
    assert!(said == *reply);
    Ok(())
}

#[test]
fn a_client_that_reads_out_of_a_full_send_buffer_is_not_cut() {
    let reply = long_reply(2 * LONG, 2 * LONG);
    let server = Server::start(&[("/long", Answer::Bytes(reply.clone()))]);
    let (_folder, daemon) = serve(&server, &format!("send_timeout = \"1s\"\n{AS_IT_IS}"), "");
    // The kernel has more than a megabyte to send before it accepts more.
    while let Err(longest) = read_slowly(&daemon, &reply) {
        assert!(longest > Duration::from_millis(400), "it was cut though it read");
    }
}
