//! Slow clients with fast servers, and slow servers with fast clients: a timeout runs against the side that is expected
//! to act.

use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

use super::{CLOSE, connect, read_until, rest, serve, serve_pool, status};
use crate::daemon::{Daemon, becomes, until};
use crate::http_server::{Answer, Server};

const DEADLINE: &str = "response_timeout = \"2s\"";
/// After this time the response timeout has expired, however slow the machine is.
const BEYOND: Duration = Duration::from_secs(3);

/// Sends a head, and the rest when the response timeout of its pool has long expired.
fn say_slowly(daemon: &Daemon, path: &str, body: &str) -> String {
    let mut client = connect(daemon);
    write!(client, "POST {path} HTTP/1.1\r\nContent-Length: {}\r\n{CLOSE}", body.len()).unwrap();
    until("it is with its server", || daemon.metric("roadstead_workers", &["\"busy\""]) == 1);
    assert!(!becomes(BEYOND, || daemon.metric("roadstead_requests_in_flight", &[]) == 0));
    client.write_all(body.as_bytes()).unwrap();
    rest(&mut client)
}

#[test]
fn a_slow_client_is_not_taken_for_a_slow_server() {
    let server = Server::start(&[("/silence", Answer::Silence)]);
    let pool = format!("{DEADLINE}\nhealth_check = {{ max_fails = 1, fail_duration = \"1h\" }}");
    let (_folder, daemon) = serve(&server, "request_read_timeout = \"60s\"", &pool);
    let said = say_slowly(&daemon, "/a", "hello");
    assert!(said.ends_with("\r\n\r\nhello"), "{said}");
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["deadline"]), 0);
    // From then on the server is expected to act.
    assert_eq!(status(&say_slowly(&daemon, "/silence", "hello")), "504");
}

#[test]
fn a_server_that_does_not_say_that_a_body_may_come_is_late_and_not_its_client() {
    let server = Server::start(&[]);
    // The client need not send before `100 Continue`: its own timeout does not run.
    let (_folder, daemon) = serve(&server, "request_read_timeout = \"300ms\"", DEADLINE);
    let mut client = connect(&daemon);
    let head = "POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n";
    write!(client, "{head}{CLOSE}").unwrap();
    // This server reads a body before it answers.
    assert_eq!(status(&rest(&mut client)), "504");
}

#[test]
fn a_client_that_was_told_to_send_and_does_not_is_late() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let pool =
        format!("servers = [\"{}\"]\nresponse_timeout = \"60s\"", server.local_addr().unwrap());
    let (_folder, daemon) = serve_pool("request_read_timeout = \"300ms\"", &pool);
    let mut client = connect(&daemon);
    let head = "POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n";
    write!(client, "{head}{CLOSE}").unwrap();
    let (mut server, _) = server.accept().unwrap();
    read_until(&mut server, "\r\n\r\n");
    server.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    assert_eq!(read_until(&mut client, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(status(&rest(&mut client)), "408");
}

#[test]
fn a_body_that_trickles_is_ended_though_each_piece_comes_in_time() {
    let server = Server::start(&[]);
    let listener = "request_read_timeout = \"500ms\"\nbody_rate_min = \"1KiB\"";
    let (_folder, daemon) = serve(&server, listener, "upstream.max_concurrent = 1");
    let mut client = connect(&daemon);
    let mut writer = client.try_clone().unwrap();
    write!(client, "POST /a HTTP/1.1\r\nContent-Length: 100000\r\n{CLOSE}").unwrap();
    let trickling = std::thread::spawn(move || {
        while writer.write_all(b"x").is_ok() {
            std::thread::park_timeout(Duration::from_millis(20));
        }
    });
    assert_eq!(status(&rest(&mut client)), "408");
    client.shutdown(std::net::Shutdown::Both).unwrap();
    trickling.join().unwrap();
    // Its slot is free again.
    let post = format!("POST /b HTTP/1.1\r\nContent-Length: 4\r\n{CLOSE}mine");
    let mut client = connect(&daemon);
    client.write_all(post.as_bytes()).unwrap();
    assert!(rest(&mut client).ends_with("\r\n\r\nmine"));
}

#[test]
fn a_tunnel_in_which_nobody_speaks_is_ended_and_one_in_which_somebody_does_is_not() {
    let server = Server::start(&[("/ws", Answer::Switch)]);
    // The idle timeout of clients is a different one.
    for idle in ["100ms", "off", "1h"] {
        let listener = format!("idle_timeout = \"{idle}\"\ntunnel_timeout = \"4s\"");
        let (_folder, daemon) = serve(&server, &listener, "upstream.max_concurrent = 1");
        let ask = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
        let mut client = daemon.stopped(|| {
            let mut client = connect(&daemon);
            client.write_all(ask.as_bytes()).unwrap();
            client
        });
        read_until(&mut client, "\r\n\r\n");
        client.write_all(b"hello").unwrap();
        assert_eq!(read_until(&mut client, "HELLO"), "HELLO");
        assert_eq!(rest(&mut client), "", "{idle}");
        let idle = ["\"idle\""];
        until("it is counted", || daemon.metric("roadstead_requests_finished_total", &idle) == 1);
        until("its server is free", || daemon.metric("roadstead_workers", &["\"busy\""]) == 0);
    }
}

const ONE_MINUTE: &str = "request_read_timeout = \"60s\"\nsend_timeout = \"60s\"";
const TOTAL: &str = "request_timeout = \"1s\"";

fn ends(daemon: &Daemon, cause: &str) -> u64 {
    daemon.metric("roadstead_requests_finished_total", &[&format!("cause=\"{cause}\"")])
}

#[test]
fn a_request_that_takes_too_long_in_all_is_blamed_on_who_had_the_next_word() {
    let long =
        [&b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n"[..], &vec![b'x'; 50_000_000]];
    let server = Server::start(&[
        ("/silence", Answer::Silence),
        ("/ws", Answer::Switch),
        ("/long", Answer::Bytes(long.concat())),
    ]);
    let (_folder, daemon) = serve(&server, ONE_MINUTE, TOTAL);
    // A client that does not send everything.
    let mut client = connect(&daemon);
    write!(client, "POST /a HTTP/1.1\r\nContent-Length: 5\r\n{CLOSE}ab").unwrap();
    assert_eq!(status(&rest(&mut client)), "408");
    assert_eq!((ends(&daemon, "incomplete"), ends(&daemon, "deadline")), (1, 0));
    // A client that does not read its response.
    let mut client = connect(&daemon);
    write!(client, "GET /long HTTP/1.1\r\n{CLOSE}").unwrap();
    until("it is cut", || ends(&daemon, "stalled") == 1);
    assert_eq!(ends(&daemon, "deadline"), 0);
    drop(client);
    // A tunnel, in which neither side is expected to act.
    let mut client = connect(&daemon);
    write!(client, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        .unwrap();
    read_until(&mut client, "\r\n\r\n");
    assert_eq!(rest(&mut client), "");
    assert_eq!((ends(&daemon, "overtime"), ends(&daemon, "deadline")), (1, 0));
    // A server that sends nothing.
    let mut client = connect(&daemon);
    write!(client, "POST /silence HTTP/1.1\r\nContent-Length: 0\r\n{CLOSE}").unwrap();
    assert_eq!(status(&rest(&mut client)), "504");
    assert_eq!(ends(&daemon, "deadline"), 1);
}
