//! HTTP clients during a drain: requests on open connections are served, each with its line in the access log.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use super::{connect, read_until, rest, status};
use crate::daemon::{Daemon, folder, until};
use crate::shards::Gate;

/// Returns a configuration with an access log, a server and, under `/p/`, a program.
fn configuration(shards: u32, port: u16) -> String {
    format!(
        "[daemon]\nshards = {shards}\n[access_log]\nto = \"file:access.log\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"http\"\npool = \"main\"\nroute = [{{ prefix = \"/p\", pool = \"program\" }}]\n\
         [pool.main]\nservers = [\"127.0.0.1:{port}\"]\n[pool.program]\n\
         program = [\"sed\", \"-u\", \"s/^/got /\"]\n"
    )
}

/// Returns what the log contains for each request: its first line, its status, and its cause of end.
fn logged(folder: &Path) -> Vec<(String, u64, String)> {
    let text = fs::read_to_string(folder.join("access.log")).unwrap_or_default();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let word = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        (word("request"), line["status"].as_u64().unwrap(), word("cause"))
    };
    // The last line may still be incomplete.
    let mut lines: Vec<_> =
        text.split_inclusive('\n').filter(|it| it.ends_with('\n')).map(line).collect();
    lines.sort();
    lines
}

fn say(daemon: &Daemon, text: &str) -> TcpStream {
    let mut client = connect(daemon);
    client.write_all(text.as_bytes()).unwrap();
    client
}

#[track_caller]
fn refused(said: &str) {
    assert_eq!(status(said), "503", "{said}");
    assert!(said.contains("\r\nConnection: close\r\n"), "{said}");
    assert!(said.contains("\r\n\r\ndraining: "), "{said}");
}

#[track_caller]
fn served_last(said: &str) {
    assert_eq!(status(said), "200", "{said}");
    assert!(said.contains("\r\nConnection: close\r\n"), "{said}");
}

/// Requests that arrive on open connections are served, each with `Connection: close`.
fn requests_during_a_drain(shards: u32) {
    let (gate, port) = Gate::start();
    let folder = folder();
    let times = "[daemon]\ndrain_timeout = \"1h\"\ndrain_keepalive_timeout = \"1h\"\n";
    let configuration = configuration(shards, port).replacen("[daemon]\n", times, 1);
    let mut daemon = Daemon::serve(folder.path(), &configuration);
    let mut held = say(&daemon, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    until("its server has it", || gate.held() == 1);
    let mut half: Vec<TcpStream> = (0..4)
        .map(|_| say(&daemon, "POST /p/ HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nhalf"))
        .collect();
    let mut begun = say(&daemon, "GET /p/begun HTTP/1.1\r\nHost:");
    let mut reused = say(&daemon, "GET /p/first HTTP/1.1\r\nHost: a\r\n\r\n");
    let first = read_until(&mut reused, "\"body\":\"\"}");
    assert!(!first.contains("Connection: close"), "{first}");
    let mut unused = connect(&daemon);
    daemon.signal(Signal::TERM);
    until("no connection is accepted", || TcpStream::connect(daemon.address()).is_err());
    for client in &mut half {
        client.write_all(b"half").unwrap();
        served_last(&rest(client));
    }
    begun.write_all(b" a\r\n\r\n").unwrap();
    reused.write_all(b"GET /p/second HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    unused.write_all(b"GET /p/only HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    for client in [&mut begun, &mut reused, &mut unused] {
        served_last(&rest(client));
    }
    gate.let_go();
    served_last(&rest(&mut held));
    assert!(daemon.wait().success());
    let line = |request: &str| (request.to_owned(), 200, "ok".to_owned());
    let mut due = vec![line("POST /p/ HTTP/1.1"); 4];
    for path in ["/slow", "/p/begun", "/p/first", "/p/second", "/p/only"] {
        due.push(line(&format!("GET {path} HTTP/1.1")));
    }
    due.sort();
    assert_eq!(logged(folder.path()), due);
}

#[test]
fn requests_on_open_connections_are_served_during_a_drain() {
    requests_during_a_drain(1);
}

#[test]
fn requests_on_open_connections_are_served_during_a_drain_of_two_shards() {
    requests_during_a_drain(2);
}

#[test]
fn idle_connections_are_closed_during_a_drain_and_do_not_delay_it() {
    for shards in [1, 2] {
        let (_gate, port) = Gate::start();
        let folder = folder();
        let times = "[daemon]\ndrain_timeout = \"1h\"\ndrain_keepalive_timeout = \"0s\"\n";
        let configuration = configuration(shards, port).replacen("[daemon]\n", times, 1);
        let mut daemon = Daemon::serve(folder.path(), &configuration);
        let mut idle = say(&daemon, "GET /p/ HTTP/1.1\r\nHost: a\r\n\r\n");
        read_until(&mut idle, "\"body\":\"\"}");
        let mut unused = connect(&daemon);
        daemon.signal(Signal::TERM);
        assert_eq!(rest(&mut idle), "");
        assert_eq!(rest(&mut unused), "");
        assert!(daemon.wait().success());
    }
}

/// Requests that are incomplete when the drain timeout expires are rejected.
fn incomplete_at_the_deadline(shards: u32) {
    let (_gate, port) = Gate::start();
    let folder = folder();
    let times = "[daemon]\ndrain_timeout = \"200ms\"\n";
    let configuration = configuration(shards, port).replacen("[daemon]\n", times, 1);
    let mut daemon = Daemon::serve(folder.path(), &configuration);
    let mut head = say(&daemon, "GET /never HTTP/1.1\r\nHost:");
    let mut body = say(&daemon, "POST /p/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    until("both are accepted", || daemon.metric("roadstead_connections_total", &[]) == 2);
    daemon.signal(Signal::TERM);
    refused(&rest(&mut head));
    refused(&rest(&mut body));
    daemon.wait();
    let line = |request: &str| (request.to_owned(), 503, "draining".to_owned());
    // For an incomplete head, only its first line is known.
    let due = [line("GET /never HTTP/1.1"), line("POST /p/ HTTP/1.1")];
    assert_eq!(logged(folder.path()), due);
}

#[test]
fn incomplete_requests_are_rejected_at_the_deadline_of_a_drain() {
    incomplete_at_the_deadline(1);
}

#[test]
fn incomplete_requests_are_rejected_at_the_deadline_of_a_drain_of_two_shards() {
    incomplete_at_the_deadline(2);
}
