//! Every request is counted and can be found, also one that is rejected before a pool has it.

use std::fs;
use std::io::Write;

use serde_json::Value;

use super::{CLOSE, connect, read_until, serve, serve_pool, status, talk};
use crate::daemon::until;
use crate::http_server::{Answer, Server};

#[test]
fn rejected_requests_have_ids_by_which_the_log_and_why_know_them() {
    let server = Server::start(&[]);
    let listener = "connections_max = 2\nper_address = { requests = 1, requests_burst = 1 }\n\
                    read = \"1h\"\n[access_log]\nto = \"file:access.log\"\n";
    let (folder, daemon) = serve(&server, listener, "");
    let mut first = connect(&daemon);
    let mut second = connect(&daemon);
    first.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    read_until(&mut first, "\r\n\r\n");
    // More than any rate lets through while they are sent.
    for _ in 0..50 {
        second.write_all(b"GET /rate HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    }
    until("one is over the rate", || daemon.metric("roadstead_ends_total", &["\"rate\""]) > 0);
    let said = talk(&daemon, format!("GET /full HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(status(&said), "503", "{said}");
    let lines = || {
        let text = fs::read_to_string(folder.path().join("access.log")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.collect::<Vec<_>>()
    };
    for cause in ["rate", "connections"] {
        let find = || lines().into_iter().find(|line| line["cause"] == cause);
        until("it is logged", || find().is_some());
        let id = find().unwrap()["id"].as_str().unwrap().to_owned();
        assert_ne!(id, "0");
        let why = daemon.page(&format!("/why/{id}"));
        assert!(why.contains(&format!("refused: {cause}")), "{why}");
    }
    let log = crate::daemon::read_log(folder.path());
    assert!(log.contains("cause=\"rate\"") && !log.contains("request=0"), "{log}");
}

#[test]
fn finished_requests_are_counted_by_listener() {
    let server = Server::start(&[]);
    let other = "[listener.other]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
                 deny = [\"127.0.0.1\"]\n";
    let (_folder, daemon) = serve(&server, other, "");
    for _ in 0..3 {
        assert_eq!(status(&talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"))), "200");
    }
    let mut client = std::net::TcpStream::connect(&daemon.listeners["other"]).unwrap();
    client.write_all(format!("GET / HTTP/1.1\r\n{CLOSE}").as_bytes()).unwrap();
    assert_eq!(status(&super::rest(&mut client)), "403");
    let ends = |labels: &[&str]| daemon.metric("roadstead_listener_ends_total", labels);
    assert_eq!(ends(&["listener=\"main\"", "cause=\"ok\""]), 3);
    assert_eq!(ends(&["listener=\"other\"", "cause=\"denied\"", "verdict=\"refused\""]), 1);
    assert_eq!(ends(&[]), 4);
}

#[test]
fn rejected_paths_are_counted_by_their_reason() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "route = [{ prefix = \"/a\", pool = \"main\" }]\n", "");
    for path in ["/a/%2f", "/a/%2F", "/a/%00"] {
        assert_eq!(status(&talk(&daemon, format!("GET {path} HTTP/1.1\r\n{CLOSE}"))), "400");
    }
    let count = |reason: &str| {
        let reason = format!("reason=\"{reason}\"");
        daemon.metric("roadstead_http_rejects_total", &["side=\"request\"", &reason])
    };
    assert_eq!((count("path-separator"), count("path-control")), (2, 1));
}

/// A server that is down is tried again and again; that is no death each time.
#[test]
fn a_killed_server_is_counted_as_one_death() {
    let (server, other) = (Server::start(&[]), Server::start(&[]));
    let pool = format!("servers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]", server.port, other.port);
    let (_folder, daemon) = serve_pool("", &pool);
    for _ in 0..4 {
        assert_eq!(status(&talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"))), "200");
    }
    assert_eq!((server.seen().len(), other.seen().len()), (2, 2));
    server.kill();
    until("it was tried again", || {
        assert_eq!(status(&talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"))), "200");
        daemon.metric("roadstead_worker_start_failures_total", &[]) > 1
    });
    assert_eq!(daemon.metric("roadstead_worker_deaths_total", &[]), 1);
}

/// The time in which a client sends its body is not the server's.
#[test]
fn a_server_is_not_ejected_for_a_slow_upload() {
    let (server, other) = (Server::start(&[]), Server::start(&[]));
    for server in [&server, &other] {
        server.answer("/", Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()));
    }
    let pool = format!(
        "servers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\nhealth = {{ errors = 1, slow = \"1500ms\" }}",
        server.port, other.port
    );
    let (_folder, daemon) = serve_pool("", &pool);
    let mut client = connect(&daemon);
    client.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na").unwrap();
    let begun = std::time::Instant::now();
    until("it is slow", || begun.elapsed() > std::time::Duration::from_millis(1600));
    client.write_all(b"b").unwrap();
    assert_eq!(status(&read_until(&mut client, "\r\n\r\n")), "200");
    assert_eq!(daemon.metric("roadstead_worker_ejections_total", &[]), 0);
}
