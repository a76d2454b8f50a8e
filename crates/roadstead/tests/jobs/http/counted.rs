//! Every request is counted and can be found, including requests that are rejected before they reach a pool.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use super::{CLOSE, connect, read_until, serve, serve_pool, status, talk};
use crate::daemon::{Daemon, read_log, until};
use crate::http_server::{Answer, Server};
use crate::shards::Gate;

/// Checks that the access log contains the request that was rejected for this reason, and that `/why` explains it.
#[track_caller]
fn is_found(folder: &Path, daemon: &Daemon, cause: &str) {
    let find = || {
        let text = fs::read_to_string(folder.join("access.log")).unwrap_or_default();
        // The last line may still be incomplete.
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let mut lines = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.find(|line| line["cause"] == cause)
    };
    until("it is logged", || find().is_some());
    let id = find().unwrap()["id"].as_str().unwrap().to_owned();
    let why = daemon.page(&format!("/why/{id}"));
    assert!(why.contains(&format!("refused: {cause}")), "{why}");
    let log = read_log(folder);
    assert!(log.contains(&format!("cause=\"{cause}\"")) && !log.contains("request=0"), "{log}");
}

#[test]
fn rejected_requests_have_ids_by_which_the_log_and_why_know_them() {
    let log = "[access_log]\nto = \"file:access.log\"\n";
    let server = Server::start(&[]);
    let listener = format!("per_address = {{ requests = 1, requests_burst = 1 }}\n{log}");
    let (folder, daemon) = serve(&server, &listener, "");
    until("one is over the rate", || {
        status(&talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"))) == "429"
    });
    is_found(folder.path(), &daemon, "rate");

    let (gate, port) = Gate::start();
    let listener = format!("connections_max = 1\n{log}");
    let (folder, daemon) = serve_pool(&listener, &format!("servers = [\"127.0.0.1:{port}\"]"));
    let mut first = connect(&daemon);
    first.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    until("its server has it", || gate.held() == 1);
    assert_eq!(status(&talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"))), "503");
    is_found(folder.path(), &daemon, "connections");
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
    let ends =
        |labels: &[&str]| daemon.metric("roadstead_listener_requests_finished_total", labels);
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
        daemon.metric("roadstead_http_messages_rejected_total", &["side=\"request\"", &reason])
    };
    assert_eq!((count("path-separator"), count("path-control")), (2, 1));
}

/// A server that is down is tried repeatedly. These attempts do not count as deaths.
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
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 1);
}

/// The time in which a client sends its body is not attributed to the server.
#[test]
fn a_server_is_not_ejected_for_a_slow_upload() {
    let (server, other) = (Server::start(&[]), Server::start(&[]));
    for server in [&server, &other] {
        server.answer("/", Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()));
    }
    let pool = format!(
        "servers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\nhealth_check = {{ max_fails = 1, unhealthy_latency = \"1500ms\" }}",
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

/// Returns the entry of the server on this port in `/status`.
fn place(daemon: &Daemon, port: u16) -> Value {
    let status = daemon.status();
    let places = status["pools"][0]["places"].as_array().unwrap();
    let name = format!("127.0.0.1:{port}");
    places.iter().find(|place| place["name"] == *name).unwrap().clone()
}

#[test]
fn status_counts_what_each_server_answered_and_failed() {
    let (bad, good) = (Server::start(&[]), Server::start(&[]));
    bad.answer("/cut", Answer::Reset);
    for server in [&bad, &good] {
        let response = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec();
        server.answer("/500", Answer::Bytes(response));
    }
    let pool = format!(
        "servers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\nhealth_check = {{ max_fails = 2, fail_duration = \"1h\" }}",
        bad.port, good.port
    );
    let (_folder, daemon) = serve_pool("", &pool);
    let get = |path: &str| talk(&daemon, format!("GET {path} HTTP/1.1\r\n{CLOSE}"));
    for _ in 0..2 {
        assert_eq!(status(&get("/500")), "500");
    }
    // The bad server gets every second request until it is ejected. The other one answers all.
    until("it is ejected", || {
        assert_eq!(status(&get("/cut")), "200");
        place(&daemon, bad.port)["health"] == "ejected"
    });
    let (bad, good) = (place(&daemon, bad.port), place(&daemon, good.port));
    let count = |place: &Value, name: &str| place[name].as_u64().unwrap();
    assert_eq!(count(&bad, "requests"), 3, "{bad}");
    assert_eq!(bad["responses"]["5xx"], 1, "{bad}");
    assert_eq!((count(&bad, "failures"), count(&bad, "retries")), (2, 2), "{bad}");
    assert_eq!((count(&bad, "ejections"), &bad["health_cause"]), (1, &"failures in a row".into()));
    assert!(bad["health_since_ms"].is_u64() && bad["ejected_for_ms"].is_u64(), "{bad}");
    assert_eq!(bad["last_failure"]["cause"], "died", "{bad}");
    assert!(bad["last_failure"]["ms_ago"].is_u64(), "{bad}");
    assert_eq!(good["responses"]["5xx"], 1, "{good}");
    assert_eq!(count(&good, "requests"), 1 + good["responses"]["2xx"].as_u64().unwrap());
    assert_eq!((count(&good, "failures"), count(&good, "ejections")), (0, 0), "{good}");
    assert!(good["last_failure"].is_null(), "{good}");
}
