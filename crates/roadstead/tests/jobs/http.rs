//! HTTP through the daemon, with correct and faulty clients and servers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use crate::daemon::{Daemon, folder, until};
use crate::http_server::{Answer, Server};

pub(crate) mod balance;
mod checks;
mod counted;
mod drain;
mod ends;
mod faulty;
mod handed;
mod hosted;
mod idle;
mod isolation;
mod long;
mod names;
mod orders;
mod programs;
mod reload;
mod retried;
mod rfc;
mod routes;
mod rules;
mod schedules;
mod server_sockets;
mod slots;
mod slow;
mod smuggling;
mod sticky;
mod tunnels;
mod twice;
mod who_asked;

fn serve(server: &Server, listener: &str, pool: &str) -> (tempfile::TempDir, Daemon) {
    let servers = format!("servers = [\"127.0.0.1:{}\"]\n{pool}", server.port);
    serve_pool(listener, &servers)
}

fn serve_pool(listener: &str, pool: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
         pool = \"main\"\n{listener}\n[pool.main]\n{pool}\n"
    );
    let daemon = Daemon::serve(folder.path(), &text);
    (folder, daemon)
}

/// Sends these bytes and returns everything until the connection ends. The last request closes the connection.
fn talk(daemon: &Daemon, bytes: impl AsRef<[u8]>) -> String {
    let mut client = connect(daemon);
    client.write_all(bytes.as_ref()).unwrap();
    rest(&mut client)
}

fn connect(daemon: &Daemon) -> TcpStream {
    let client = TcpStream::connect(daemon.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    client
}

fn rest(client: &mut TcpStream) -> String {
    let mut said = Vec::new();
    // A reset also ends the response. The bytes received before it count.
    let _ = client.read_to_end(&mut said);
    without_added(&String::from_utf8_lossy(&said))
}

/// Removes the lines that are added to every head, which `rfc.rs` tests.
pub(crate) fn without_added(said: &str) -> String {
    let is_added = |line: &str| {
        line.starts_with("Date: ") && line.ends_with(" GMT\r\n")
            || matches!(line, "Via: 1.1 roadstead\r\n" | "Via: 1.0 roadstead\r\n")
    };
    said.split_inclusive('\n').filter(|line| !is_added(line)).collect()
}

/// Reads until this has come.
fn read_until(client: &mut impl Read, end: &str) -> String {
    let (mut said, mut bytes) = (Vec::new(), [0; 4096]);
    while !said.ends_with(end.as_bytes()) {
        match client.read(&mut bytes) {
            Ok(count @ 1..) => said.extend_from_slice(&bytes[..count]),
            other => panic!("{other:?} after {}", String::from_utf8_lossy(&said)),
        }
    }
    without_added(&String::from_utf8(said).unwrap())
}

const CLOSE: &str = "Host: a\r\nConnection: close\r\n\r\n";

fn status(reply: &str) -> &str {
    reply.get(9..12).unwrap_or_default()
}

#[test]
fn requests_one_behind_the_other_are_answered_in_their_order() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    let said = talk(
        &daemon,
        format!(
            "GET /a HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
             HEAD /c HTTP/1.1\r\nHost: a\r\n\r\nPOST /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n{CLOSE}\
             5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nX: y\r\n\r\n"
        ),
    );
    let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let expected = format!(
        "{empty}HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc{empty}\
         HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nhello world"
    );
    assert_eq!(said, expected);
    let heads: Vec<String> = server.seen().into_iter().map(|seen| seen.head).collect();
    assert!(heads[0].contains("X-Forwarded-For: 127.0.0.1\r\n"), "{heads:?}");
    assert!(!heads[3].contains("Connection"), "{heads:?}");
}

#[test]
fn bodies_larger_than_all_buffers_pass_both_ways_unchanged() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "body_max = \"64MiB\"", "");
    let body: Vec<u8> =
        (0..20_000_000_u32).map(|place| place.to_le_bytes()[place as usize % 3]).collect();
    let mut client = connect(&daemon);
    let mut writer = client.try_clone().unwrap();
    let sent = body.clone();
    let sending = std::thread::spawn(move || {
        let head = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n{CLOSE}", sent.len());
        writer.write_all(head.as_bytes()).unwrap();
        writer.write_all(&sent).unwrap();
    });
    let mut said = Vec::new();
    client.read_to_end(&mut said).unwrap();
    sending.join().unwrap();
    let end = said.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(said[end..] == body[..], "{} of {} bytes", said.len() - end, body.len());
}

#[test]
fn each_framing_of_a_reply_reaches_each_version() {
    let chunks =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\n";
    let server = Server::start(&[
        ("/chunks", Answer::Bytes(chunks.to_vec())),
        ("/end", Answer::Last(b"HTTP/1.0 200 OK\r\n\r\nhello".to_vec())),
    ]);
    let (_folder, daemon) = serve(&server, "", "");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    assert_eq!(talk(&daemon, format!("GET /chunks HTTP/1.1\r\n{CLOSE}")), chunked);
    assert_eq!(talk(&daemon, format!("GET /end HTTP/1.1\r\n{CLOSE}")), chunked);
    let plain = "HTTP/1.1 200 OK\r\n\r\nhello";
    assert_eq!(talk(&daemon, "GET /chunks HTTP/1.0\r\n\r\n"), plain);
    assert_eq!(talk(&daemon, "GET /end HTTP/1.0\r\n\r\n"), plain);
}

#[test]
fn another_protocol_begins_after_the_101_and_not_before() {
    let server = Server::start(&[("/ws", Answer::Switch)]);
    let (_folder, daemon) = serve(&server, "", "");
    let mut client = connect(&daemon);
    let ask = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    client.write_all(ask.as_bytes()).unwrap();
    assert!(read_until(&mut client, "\r\n\r\n").starts_with("HTTP/1.1 101 "));
    client.write_all(b"hello").unwrap();
    assert_eq!(read_until(&mut client, "HELLO"), "HELLO");

    // The server declines the upgrade: the bytes sent ahead are the next request, and not a tunnel.
    let no = "GET /no HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    let said = talk(&daemon, format!("{no}GET /next HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 2, "{said}");
    assert_eq!(server.heads("/next").len(), 1);
}

#[test]
fn early_heads_and_a_continue_reach_the_client() {
    let hints = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
    let flood = [b"HTTP/1.1 100 Continue\r\n\r\n".repeat(9), hints.to_vec()].concat();
    let server = Server::start(&[
        ("/hints", Answer::Bytes(hints.to_vec())),
        ("/flood", Answer::Bytes(flood)),
    ]);
    let (_folder, daemon) = serve(&server, "", "");
    let said = talk(&daemon, format!("GET /hints HTTP/1.1\r\n{CLOSE}"));
    assert!(said.starts_with("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 "), "{said}");
    // An HTTP/1.0 client does not support interim responses.
    assert!(talk(&daemon, "GET /hints HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 204 "));
    let said = talk(&daemon, format!("GET /flood HTTP/1.1\r\n{CLOSE}"));
    assert!(said.contains("HTTP/1.1 502 "), "{said}");
}

#[test]
fn what_breaks_a_rule_is_refused_and_nothing_behind_it_is_read() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "body_max = \"1KiB\"", "");
    for (status_wanted, word, request) in [
        (
            "400",
            "length-and-coding",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        ("400", "bare-lf", "GET / HTTP/1.1\nHost: a\n\n"),
        ("501", "coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"),
        ("413", "body-too-long", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n"),
        ("417", "expect", "POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 2\r\n\r\n"),
        ("505", "version", "GET / HTTP/3.0\r\nHost: a\r\n\r\n"),
        (
            "400",
            "chunk-size",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\n",
        ),
    ] {
        let said = talk(&daemon, format!("{request}GET /canary HTTP/1.1\r\n{CLOSE}"));
        assert_eq!(status(&said), status_wanted, "{request}: {said}");
        assert!(said.contains(word) && said.contains("Connection: close"), "{said}");
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{said}");
    }
    assert_eq!(server.heads("/canary"), [""; 0]);
}

#[test]
fn what_is_no_reply_is_repeated_elsewhere_where_it_may_be() {
    let answers = [
        ("/get", Answer::Bytes(b"HTTP/1.1 2OO OK\nContent-Length: -1\n\n".to_vec())),
        ("/half", Answer::Last(b"HTTP/1.1 200 OK\r\nContent-Le".to_vec())),
        ("/post", Answer::Bytes(b"HELLO\r\n\r\n".to_vec())),
    ];
    let (wrong, right) = (Server::start(&answers), Server::start(&[]));
    let servers = format!("servers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]", wrong.port, right.port);
    let (_folder, daemon) = serve_pool("", &servers);
    for path in ["/get", "/half"].repeat(8) {
        assert_eq!(
            status(&talk(&daemon, format!("GET {path} HTTP/1.1\r\n{CLOSE}"))),
            "200",
            "{path}"
        );
    }
    assert!(!wrong.heads("/get").is_empty() && !wrong.heads("/half").is_empty());
    for _ in 0..4 {
        talk(&daemon, format!("POST /post HTTP/1.1\r\nContent-Length: 0\r\n{CLOSE}"));
    }
    let given = wrong.heads("/post").len() + right.heads("/post").len();
    assert_eq!(given, 4, "it may have taken effect: it is not made again");
}

#[test]
fn a_server_that_misbehaves_costs_its_request_and_no_other() {
    let server = Server::start(&[
        ("/reset", Answer::Reset),
        ("/garbage", Answer::Bytes(b"HELLO\r\n\r\n".to_vec())),
        ("/short", Answer::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_vec())),
        ("/long", Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil".to_vec())),
        ("/closes", Answer::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec())),
        ("/silence", Answer::Silence),
    ]);
    let (_folder, daemon) = serve(&server, "", "response_timeout = \"300ms\"");
    // Each round uses two of the twenty retries of the budget.
    for round in 0..5 {
        let get = |path: &str| talk(&daemon, format!("GET {path} HTTP/1.1\r\n{CLOSE}"));
        assert_eq!(status(&get("/garbage")), "502");
        let short = get("/short");
        assert!(short.ends_with("\r\n\r\nabc"), "{short}");
        assert!(get("/long").ends_with("\r\n\r\nok"));
        assert!(get("/closes").ends_with("\r\n\r\nok"));
        let path = format!("/fine/{round}");
        assert_eq!(status(&get(&path)), "200");
        let post = format!("POST /fine HTTP/1.1\r\nContent-Length: 4\r\n{CLOSE}mine");
        assert!(talk(&daemon, post).ends_with("mine"));
    }
    for _ in 0..30 {
        let post = format!("POST /reset HTTP/1.1\r\nContent-Length: 0\r\n{CLOSE}");
        assert_eq!(status(&talk(&daemon, post)), "502");
    }
    let made = server.heads("/reset").len();
    assert_eq!(made, 30, "it may have taken effect: it is not made again");
    talk(&daemon, format!("GET /reset HTTP/1.1\r\n{CLOSE}"));
    let made = server.heads("/reset").len();
    assert_eq!(made, 33, "it is made three times at most, and what was not took no retries");
    let said = talk(&daemon, format!("GET /silence HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(status(&said), "504");
}

#[test]
fn a_server_that_cannot_be_reached_leaves_the_work_to_the_other() {
    let server = Server::start(&[]);
    // The port is bound and closed again, so no process listens there.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let pool = format!("servers = [\"127.0.0.1:{gone}\", \"127.0.0.1:{}\"]", server.port);
    let (_folder, daemon) = serve_pool("", &pool);
    for _ in 0..20 {
        let said = talk(&daemon, format!("POST /a HTTP/1.1\r\nContent-Length: 1\r\n{CLOSE}x"));
        assert_eq!(status(&said), "200", "{said}");
    }
}

#[test]
fn without_any_server_the_client_is_told_to_come_again() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let pool = format!("servers = [\"127.0.0.1:{gone}\"]\nqueue = {{ timeout = \"500ms\" }}");
    let (_folder, daemon) = serve_pool("", &pool);
    let said = talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(status(&said), "503", "{said}");
    assert!(said.contains("Retry-After: "), "{said}");
    assert!(!said.contains("127.0.0.1"), "where servers are is for the log: {said}");
}

#[test]
fn a_head_that_does_not_come_to_its_end_is_answered_408() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "request_read_timeout = \"200ms\"", "");
    let said = talk(&daemon, "GET / HTTP/1.1\r\nHos");
    assert_eq!(status(&said), "408", "{said}");
    let said = talk(&daemon, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    assert_eq!(status(&said), "408", "{said}");
}

#[test]
fn a_drain_finishes_what_is_on_its_way_and_ends() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    let mut idle = connect(&daemon);
    idle.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    read_until(&mut idle, "\r\n\r\n");
    let waiting = std::thread::spawn(move || rest(&mut idle));
    assert_eq!(daemon.stop().code(), Some(0));
    assert_eq!(waiting.join().unwrap(), "", "an idle connection ends");
}

#[test]
fn a_client_that_leaves_takes_its_request_with_it() {
    let server = Server::start(&[("/silence", Answer::Silence)]);
    let (_folder, daemon) = serve(&server, "half_close = \"left\"", "upstream.max_concurrent = 1");
    for _ in 0..3 {
        let mut client = connect(&daemon);
        client.write_all(b"GET /silence HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let before = server.heads("/silence").len();
        until("the request to arrive", || server.heads("/silence").len() >= before.max(1));
        client.shutdown(Shutdown::Both).unwrap();
    }
    // The one slot is free again.
    let said = talk(&daemon, format!("GET /fine HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(status(&said), "200", "{said}");
}
