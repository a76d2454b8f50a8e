//! Clients of HTTP at a drain: whatever they had begun to say is answered, and has its line.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use super::{connect, read_until, rest, status};
use crate::daemon::{Daemon, folder, until, worker_program};
use crate::shards::Gate;

/// A listener before a server and, under `/p/`, before a program, with an access log.
fn configuration(shards: u32, port: u16) -> String {
    format!(
        "[daemon]\nshards = {shards}\n[access_log]\nto = \"file:access.log\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"http\"\npool = \"main\"\nroute = [{{ path = \"/p/\", pool = \"program\" }}]\n\
         [pool.main]\nservers = [\"127.0.0.1:{port}\"]\n[pool.program]\n{}",
        worker_program(&["--echo"])
    )
}

/// What the log says of each request: its first line, its status, what ended it.
fn logged(folder: &Path) -> Vec<(String, u64, String)> {
    let text = fs::read_to_string(folder.join("access.log")).unwrap_or_default();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let word = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        (word("request"), line["status"].as_u64().unwrap(), word("cause"))
    };
    let mut lines: Vec<_> = text.lines().map(line).collect();
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

fn begun_at_a_drain(shards: u32) {
    let (gate, port) = Gate::start();
    let folder = folder();
    let mut daemon = Daemon::serve(folder.path(), &configuration(shards, port));
    // It keeps the daemon from ending until all is seen.
    let mut served = say(&daemon, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    until("its server has it", || gate.held() == 1);
    let mut gathered: Vec<TcpStream> = (0..4)
        .map(|_| say(&daemon, "POST /p/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf"))
        .collect();
    let mut later = say(&daemon, "GET /later HTTP/1.1\r\nHost:");
    let mut never = say(&daemon, "GET /never HTTP/1.1\r\nHost:");
    let mut idle = connect(&daemon);
    daemon.signal(Signal::TERM);
    // Each shard refuses from the turn on in which it closes its listener.
    for client in &mut gathered {
        refused(&read_until(client, ".\n"));
    }
    until("no connection is accepted", || TcpStream::connect(daemon.address()).is_err());
    later.write_all(b" a\r\n\r\n").unwrap();
    idle.write_all(b"GET /idle HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    refused(&rest(&mut later));
    refused(&rest(&mut idle));
    gate.let_go();
    assert!(read_until(&mut served, "ok").starts_with("HTTP/1.1 200 OK\r\n"));
    refused(&rest(&mut never));
    assert!(daemon.wait().success());
    let post = ("POST /p/ HTTP/1.1".to_owned(), 503, "draining".to_owned());
    let mut due = vec![post; 4];
    // Of a head that is not whole its first line is known.
    for line in ["GET /never HTTP/1.1", "GET /idle HTTP/1.1", "GET /later HTTP/1.1"] {
        due.push((line.to_owned(), 503, "draining".to_owned()));
    }
    due.push(("GET /slow HTTP/1.1".to_owned(), 200, "ok".to_owned()));
    due.sort();
    assert_eq!(logged(folder.path()), due);
}

#[test]
fn what_was_begun_at_a_drain_is_answered_and_logged() {
    begun_at_a_drain(1);
}

#[test]
fn what_was_begun_at_a_drain_of_two_shards_is_answered_and_logged() {
    begun_at_a_drain(2);
}
