//! Servers that answer a request twice: the second reply must not reach another client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::*;
use crate::daemon::read_log;

/// A server that answers each request with its path, and a second time after a while.
struct Twice {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Twice {
    fn start(late: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || while answer_twice(&socket, late).is_some() {});
            }
        });
        Self { port, connections }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

fn answer_twice(mut socket: &TcpStream, late: Duration) -> Option<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let path = head.split(' ').nth(1)?;
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}", path.len());
    socket.write_all(reply.as_bytes()).ok()?;
    let begun = Instant::now();
    while let Some(left) = late.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
    socket.write_all(reply.as_bytes()).ok()
}

/// Returns the body of the reply to a request of a new client whose connection stays open.
fn ask(daemon: &Daemon, path: &str) -> String {
    let mut client = connect(daemon);
    write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let (mut reply, mut byte) = (Vec::new(), [0]);
    while !reply.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).unwrap();
        reply.push(byte[0]);
    }
    let head = String::from_utf8(reply).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.expect("a length").parse().unwrap()];
    client.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

fn found(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_unsolicited_replies_total", &["main"])
}

#[test]
fn a_server_that_answers_twice_gets_one_request_on_each_connection() {
    for shards in [1, 2] {
        for late in [0, 2, 20] {
            let server = Twice::start(Duration::from_millis(late));
            let folder = folder();
            let text = format!(
                "[daemon]\nshards = {shards}\n[admin]\nlisten = \"127.0.0.1:0\"\n\
                 [listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
                 [pool.main]\nservers = [\"127.0.0.1:{}\"]\n",
                server.port
            );
            let daemon = Daemon::serve(folder.path(), &text);
            // No other client sends a request before the second reply has arrived.
            assert_eq!(ask(&daemon, "/first"), "/first");
            until("the second reply is found", || found(&daemon) >= 1);
            let before = server.connections();
            for round in 0..40 {
                let path = format!("/{round}");
                assert_eq!(ask(&daemon, &path), path, "{late} ms late, {shards} shards");
            }
            assert_eq!(server.connections() - before, 40, "no connection is reused");
            let log = read_log(folder.path());
            let told = log.matches("sent bytes that no request asked for").count();
            assert_eq!(told, 1, "{log}");
            assert!(log.contains(&format!("127.0.0.1:{}", server.port)), "{log}");
        }
    }
}

#[test]
fn a_server_that_says_that_a_connection_was_idle_for_too_long_is_still_trusted() {
    let farewell = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_folder, daemon) =
        serve_pool("", &format!("servers = [\"{}\"]", listener.local_addr().unwrap()));
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/a";
    let asking = |daemon: &Daemon, socket: &mut TcpStream| {
        let mut client = connect(daemon);
        client.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        read_until(socket, "\r\n\r\n");
        socket.write_all(reply.as_bytes()).unwrap();
        read_until(&mut client, "/a");
    };
    let mut first = connect(&daemon);
    first.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let (mut socket, _) = listener.accept().unwrap();
    read_until(&mut socket, "\r\n\r\n");
    socket.write_all(reply.as_bytes()).unwrap();
    read_until(&mut first, "/a");
    socket.write_all(farewell.as_bytes()).unwrap();
    assert_eq!(rest(&mut socket), "", "the idle connection is closed");
    // The next connection is reused.
    first.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let (mut socket, _) = listener.accept().unwrap();
    read_until(&mut socket, "\r\n\r\n");
    socket.write_all(reply.as_bytes()).unwrap();
    read_until(&mut first, "/a");
    for _ in 0..3 {
        asking(&daemon, &mut socket);
    }
    assert_eq!(found(&daemon), 0);
}

#[test]
fn a_body_in_chunks_that_comes_at_once_goes_on_with_a_length() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    let head = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = connect(&daemon);
    for (body, data, length) in [
        ("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n", "hello world", Some("11")),
        ("0\r\n\r\n", "", Some("0")),
        ("2\r\nab\r\n0\r\nX: dropped\r\n\r\n", "ab", Some("2")),
        // Only chunks can carry a trailer.
        ("2\r\nab\r\n0\r\nServer-Timing: a\r\n\r\n", "ab", None),
    ] {
        // In one piece.
        client.write_all(format!("{head}{body}").as_bytes()).unwrap();
        read_until(&mut client, &format!("\r\n\r\n{data}"));
        let seen = server.seen().pop().unwrap();
        let value = seen.head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        assert_eq!((value, seen.body), (length, data.into()), "{}", seen.head);
        assert_eq!(seen.head.contains("Transfer-Encoding: chunked\r\n"), length.is_none());
    }
    // A body that does not arrive together is forwarded in chunks.
    client.write_all(format!("{head}2\r\nab\r\n").as_bytes()).unwrap();
    until("its head has gone on", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
    client.write_all(b"0\r\n\r\n").unwrap();
    read_until(&mut client, "\r\n\r\nab");
    assert!(server.seen().pop().unwrap().head.contains("Transfer-Encoding: chunked\r\n"));
}

/// Answers each head with its path. It does not skip the body of the request before, and so reads it as another
/// request. Returns the path.
fn answer_skipping_bodies(socket: &mut TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let path = String::from_utf8(head).ok()?.split(' ').nth(1)?.to_owned();
    let status = if path == "/missing" { "404 Not Found" } else { "200 OK" };
    let reply = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{path}", path.len());
    socket.write_all(reply.as_bytes()).ok()?;
    Some(path)
}

/// A request of a client has a body that its server does not read, and that looks like a request. Other clients still
/// get their own replies.
fn an_unread_body_is_no_request(method: &str, path: &'static str, status: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        // The server reads on only when the next connection exists: it answers the supposed request while another
        // client waits.
        let (mut first, _) = listener.accept().unwrap();
        assert_eq!(answer_skipping_bodies(&mut first).as_deref(), Some(path));
        let (mut second, _) = listener.accept().unwrap();
        assert_eq!(answer_skipping_bodies(&mut second).as_deref(), Some("/clean"));
        assert_eq!(answer_skipping_bodies(&mut second).as_deref(), Some("/again"), "it is kept");
    });
    let (_folder, daemon) = serve_pool("", &format!("servers = [\"127.0.0.1:{port}\"]"));
    let mut client = connect(&daemon);
    let inner = "GET /evil HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = inner.len();
    write!(
        client,
        "{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{inner}"
    )
    .unwrap();
    let expected = format!("HTTP/1.1 {status} ");
    let mut reply = vec![0; expected.len()];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(String::from_utf8_lossy(&reply), expected);
    assert_eq!(ask(&daemon, "/clean"), "/clean");
    assert_eq!(ask(&daemon, "/again"), "/again");
    server.join().unwrap();
}

#[test]
fn a_body_that_a_server_may_not_read_does_not_choose_what_another_client_is_answered() {
    an_unread_body_is_no_request("GET", "/own", "200");
}

#[test]
fn a_body_behind_a_request_that_failed_does_not_choose_what_another_client_is_answered() {
    an_unread_body_is_no_request("POST", "/missing", "404");
}
