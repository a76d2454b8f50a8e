//! Access control and limits by client address. The clients use many addresses of 127.0.0.0/8.

use std::io::{Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::time::Instant;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use crate::client::Client;
use crate::daemon::{Daemon, PATIENCE, folder, one_pool, until, worker_program};
use crate::http_server::Server;
use crate::shards::Gate;

fn echo(listener: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let pool = format!("{}workers = 2\n", worker_program(&["--echo"]));
    let daemon = Daemon::serve(folder.path(), &one_pool(listener, &pool));
    (folder, daemon)
}

/// Connects from 127.0.0.`host`.
pub(crate) fn stream_from(host: u8, to: &str) -> TcpStream {
    // Close-on-exec, so that daemons of other tests do not inherit the socket.
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let stream = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    bind(&stream, &SocketAddrV4::new([127, 0, 0, host].into(), 0)).unwrap();
    let SocketAddr::V4(to) = to.parse().unwrap() else { panic!("{to} is not IPv4") };
    connect(&stream, &to).unwrap();
    TcpStream::from(stream)
}

fn from(host: u8, daemon: &Daemon) -> Client {
    Client::new(stream_from(host, daemon.address()))
}

fn refused(daemon: &Daemon, reason: &str) -> u64 {
    let reason = format!("reason=\"{reason}\"");
    daemon.metric("roadstead_connections_rejected_total", &[&reason])
}

#[test]
fn only_allowed_addresses_are_served_and_the_others_are_told_why() {
    let (_folder, daemon) = echo("allow = [\"127.0.0.0/29\", \"::1\"]\ndeny = [\"127.0.0.5\"]\n");
    for host in 1..8 {
        let mut client = from(host, &daemon);
        if host == 5 {
            assert!(client.line().starts_with("!denied "));
            assert_eq!(client.line(), "");
        } else {
            assert_eq!(client.ask("a"), "a");
        }
    }
    assert!(from(8, &daemon).line().starts_with("!denied "));
    assert_eq!(refused(&daemon, "denied"), 2);
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["cause=\"denied\""]), 2);
}

#[test]
fn connections_are_counted_by_address_and_an_end_makes_room() {
    let (_folder, daemon) = echo("per_address = { connections = 2 }\n");
    let mut clients = [from(1, &daemon), from(1, &daemon), from(2, &daemon)];
    for client in &mut clients {
        assert_eq!(client.ask("a"), "a");
    }
    assert!(from(1, &daemon).line().starts_with("!crowded "));
    assert_eq!(from(2, &daemon).ask("b"), "b");
    drop(clients);
    until("the connections have ended", || {
        daemon.metric("roadstead_connections", &["listener=\"main\""]) == 0
    });
    assert_eq!(from(1, &daemon).ask("c"), "c");
    assert!(daemon.metric("roadstead_tracked_addresses", &[]) <= 2);
    assert_eq!(refused(&daemon, "crowded"), 1);
}

#[test]
fn neighbours_share_what_one_address_may_where_that_is_set() {
    let (_folder, daemon) = echo("per_address = { connections = 1, ipv4_bits = 31 }\n");
    let mut first = from(2, &daemon);
    assert_eq!(first.ask("a"), "a");
    assert!(from(3, &daemon).line().starts_with("!crowded "));
    assert_eq!(from(4, &daemon).ask("a"), "a");
}

#[test]
fn an_address_that_asks_too_often_is_refused_in_its_turn_and_others_are_served() {
    let (_folder, daemon) = echo("per_address = { requests = 1, requests_burst = 5 }\n");
    // All lines arrive together.
    let mut greedy = from(1, &daemon);
    greedy.send("a\n".repeat(40));
    let lines: Vec<String> = (0..40).map(|_| greedy.line()).collect();
    assert_eq!(lines[..5], ["a"; 5]);
    let answered = lines.iter().filter(|line| *line == "a").count();
    assert!(lines[5..].iter().filter(|line| line.starts_with("!rate ")).count() == 40 - answered);
    assert!(answered < 40, "{lines:?}");
    assert_eq!(from(2, &daemon).ask("b"), "b");
    let rate = daemon
        .metric("roadstead_requests_finished_total", &["cause=\"rate\"", "verdict=\"refused\""]);
    assert_eq!(rate, 40 - answered as u64);
}

#[test]
fn an_address_that_connects_too_often_is_refused_for_as_long_as_it_does() {
    let (_folder, daemon) = echo("per_address = { connects = 1, connects_burst = 5 }\n");
    let begun = Instant::now();
    let mut served = 0;
    for _ in 0..60 {
        let mut client = from(1, &daemon);
        // Sending to a rejected connection may fail.
        let _ = client.stream().write_all(b"a\n");
        served += u64::from(client.line() == "a");
    }
    assert!((5..=5 + begun.elapsed().as_secs() + 1).contains(&served), "{served}");
    assert_eq!(refused(&daemon, "rate"), 60 - served);
    assert_eq!(from(2, &daemon).ask("b"), "b");
}

#[test]
fn the_connection_as_a_request_is_limited_like_any_other() {
    let listener = "per_address = { requests = 1, requests_burst = 2 }\n";
    let folder = folder();
    let pool = format!("{}workers = 2\n", worker_program(&["--echo"]));
    let text = one_pool(listener, &pool).replace("\"lines\"", "\"connect\"");
    let daemon = Daemon::serve(folder.path(), &text);
    let said: Vec<String> = (0..20).map(|_| from(1, &daemon).rest().concat()).collect();
    assert!(said[0].starts_with("127.0.0.1:") && said[1].starts_with("127.0.0.1:"), "{said:?}");
    assert!(said.iter().any(|said| said.starts_with("!rate ")), "{said:?}");
}

#[test]
fn http_clients_read_403_and_429_and_when_to_come_again() {
    let server = Server::start(&[]);
    let folder = folder();
    let text = one_pool(
        "deny = [\"127.0.0.9\"]\nper_address = { requests = 1, requests_burst = 2, connections = 3 }\n",
        &format!("servers = [\"127.0.0.1:{}\"]\n", server.port),
    )
    .replace("\"lines\"", "\"http\"");
    let daemon = Daemon::serve(folder.path(), &text);
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut client = from(9, &daemon);
    client.send(request);
    let denied = client.rest();
    assert_eq!(denied[0], "HTTP/1.1 403 Forbidden\r", "{denied:?}");
    assert!(denied.contains(&"Connection: close\r".to_owned()), "{denied:?}");

    let mut client = from(1, &daemon);
    for _ in 0..40 {
        client.send(request);
    }
    client.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    let said = client.rest();
    let refused = said.iter().filter(|line| line.starts_with("HTTP/1.1 429 ")).count();
    let again = said.iter().filter(|line| *line == "Retry-After: 1\r").count();
    let served = said.iter().filter(|line| line.starts_with("HTTP/1.1 200 ")).count();
    assert!(served >= 2 && refused > 0 && again == refused, "{said:?}");
    assert_eq!(server.seen().len(), served, "{said:?}");

    let open: Vec<Client> = (0..3).map(|_| from(3, &daemon)).collect();
    let mut client = from(3, &daemon);
    client.send(request);
    let crowded = client.rest();
    assert_eq!(crowded[0], "HTTP/1.1 429 Too Many Requests\r", "{crowded:?}");
    drop(open);
}

/// A response before any request is "unsolicited" for HTTP clients.
#[test]
fn a_rejected_http_connection_is_answered_after_its_request() {
    let (gate, port) = Gate::start();
    let folder = folder();
    let pool =
        format!("servers = [\"127.0.0.1:{port}\"]\n[access_log]\nto = \"file:access.log\"\n");
    let listener = "connections_max = 1\nrequest_read_timeout = \"1h\"\n";
    let text = one_pool(listener, &pool).replace("\"lines\"", "\"http\"");
    let daemon = Daemon::serve(folder.path(), &text);
    let mut first = from(1, &daemon);
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until("its server has it", || gate.held() == 1);
    let mut slow = stream_from(3, daemon.address());
    let mut head = stream_from(4, daemon.address());
    let mut long = stream_from(5, daemon.address());
    until("all are rejected", || refused(&daemon, "connections") == 3);
    let is_silent = |client: &mut TcpStream| {
        client.set_nonblocking(true).unwrap();
        let read = client.read(&mut [0; 1]);
        client.set_nonblocking(false).unwrap();
        matches!(read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    slow.write_all(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n").unwrap();
    // An answer to `head` shows that the bytes above were read before it.
    head.write_all(b"HEAD /b HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let said = rest(&mut head);
    assert!(said.starts_with("HTTP/1.1 503 ") && said.ends_with("\r\n\r\n"), "{said}");
    assert!(is_silent(&mut slow));
    slow.write_all(b"\r\nabc").unwrap();
    let said = rest(&mut slow);
    assert!(said.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{said}");
    assert!(said.contains("\r\nConnection: close\r\n") && said.contains("connections: "), "{said}");
    long.write_all(format!("GET /{} HTTP/1.1\r\n", "a".repeat(20_000)).as_bytes()).unwrap();
    assert!(rest(&mut long).starts_with("HTTP/1.1 503 "));
    let ended = daemon.metric("roadstead_requests_finished_total", &["cause=\"connections\""]);
    assert_eq!(ended, 3, "only requests are counted as such");
    gate.let_go();
    assert_eq!(first.line(), "HTTP/1.1 200 OK\r");
    drop(first);
    assert!(daemon.stop().success());
    let log = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    assert!(log.contains("HEAD /b HTTP/1.1") && log.contains("POST /a HTTP/1.1"), "{log}");
}

#[test]
fn a_rejected_http_connection_without_a_request_is_reset() {
    let server = Server::start(&[]);
    let folder = folder();
    let pool = format!("servers = [\"127.0.0.1:{}\"]\n", server.port);
    let listener = "deny = [\"127.0.0.2\"]\nrequest_read_timeout = \"50ms\"\n";
    let text = one_pool(listener, &pool).replace("\"lines\"", "\"http\"");
    let daemon = Daemon::serve(folder.path(), &text);
    let mut silent = stream_from(2, daemon.address());
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    let error = silent.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(refused(&daemon, "denied"), 1);
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["cause=\"denied\""]), 0);
}

fn rest(client: &mut TcpStream) -> String {
    let mut said = Vec::new();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = client.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn datagrams_are_limited_by_their_senders_address() {
    let listener = "deny = [\"127.0.0.9\"]\nper_address = { requests = 1, requests_burst = 3 }\n";
    let folder = folder();
    let pool = format!("{}workers = 2\n", worker_program(&["--echo"]));
    let text = one_pool(listener, &pool).replace("\"lines\"", "\"datagrams\"");
    let daemon = Daemon::serve(folder.path(), &text);
    let sender = |host: u8| {
        let socket = UdpSocket::bind((std::net::Ipv4Addr::new(127, 0, 0, host), 0)).unwrap();
        socket.connect(daemon.address()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let ask = |socket: &UdpSocket| {
        socket.send(b"a").unwrap();
        let mut bytes = [0; 100];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    sender(9).send(b"a").unwrap();
    let greedy = sender(1);
    let said: Vec<String> = (0..3).map(|_| ask(&greedy)).collect();
    assert_eq!(said, ["a"; 3]);
    // Above the rate limit nothing is sent.
    for _ in 0..30 {
        greedy.send(b"a").unwrap();
    }
    until("the rate is exceeded", || refused(&daemon, "rate") > 0);
    assert_eq!(ask(&sender(2)), "a");
    assert_eq!(refused(&daemon, "denied"), 1);
}
