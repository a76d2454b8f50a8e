//! Idle connections: they are closed after a timeout, and displaced by clients that send requests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::client::Client;
use crate::daemon::{BINARY, Daemon, folder, one_pool, read_log, until, worker_program};
use crate::shards::Gate;

const CLOSED: &str = "roadstead_connections_closed_total";
const REFUSED: &str = "roadstead_connections_rejected_total";

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn http_text(listener: &str, server: u16) -> String {
    format!(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n{listener}\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n[pool.main]\nservers = [\"127.0.0.1:{server}\"]\n\
         upstream.max_concurrent = 100\n"
    )
}

fn http(listener: &str, server: u16) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &http_text(listener, server));
    (folder, daemon)
}

fn echo(listener: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let pool = format!("{}workers = 2\n", worker_program(&["--echo"]));
    let daemon = Daemon::serve(folder.path(), &one_pool(listener, &pool));
    (folder, daemon)
}

/// Opens idle connections, and waits until all are accepted.
fn silent(daemon: &Daemon, count: u64) -> Vec<TcpStream> {
    let accepted = || daemon.metric("roadstead_connections_total", &["main"]);
    let before = accepted();
    let connect = |_| {
        let client = TcpStream::connect(daemon.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client
    };
    let clients = (0..count).map(connect).collect();
    until("they are accepted", || accepted() == before + count);
    clients
}

fn is_closed(client: &mut TcpStream) -> bool {
    client.set_nonblocking(true).unwrap();
    let read = client.read(&mut [0; 64]);
    client.set_nonblocking(false).unwrap();
    matches!(read, Ok(0)) || read.is_err_and(|it| it.kind() != std::io::ErrorKind::WouldBlock)
}

#[test]
fn fifty_silent_connections_do_not_keep_an_honest_client_out() {
    let (_folder, daemon) = echo("connections_max = 50\nfirst_request_timeout = \"off\"\n");
    let mut silent = silent(&daemon, 50);
    assert_eq!(daemon.connect().ask("honest"), "honest");
    assert_eq!(daemon.metric(CLOSED, &["\"displaced\""]), 1);
    assert_eq!(daemon.metric(REFUSED, &[]), 0);
    // The connection that has been idle longest, and no other.
    let closed: Vec<bool> = silent.iter_mut().map(is_closed).collect();
    assert_eq!(closed.iter().position(|closed| *closed), Some(0));
    assert_eq!(closed.iter().filter(|closed| **closed).count(), 1);
}

#[test]
fn fifty_silent_connections_do_not_keep_a_client_of_http_out() {
    let (gate, port) = Gate::start();
    let (_folder, daemon) = http("connections_max = 50\nfirst_request_timeout = \"off\"\n", port);
    let _silent = silent(&daemon, 50);
    // Each displaces an idle connection, and stays while it waits for its reply.
    let mut honest: Vec<TcpStream> = (0..50)
        .map(|count| {
            let mut client = TcpStream::connect(daemon.address()).unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            let taken = || daemon.metric("roadstead_requests_total", &["\"main\""]) == count + 1;
            until("it is with the server", taken);
            client
        })
        .collect();
    assert_eq!(daemon.metric(CLOSED, &["\"displaced\""]), 50);
    // None is idle now: a further connection is rejected, and displaces none.
    let mut refused = TcpStream::connect(daemon.address()).unwrap();
    refused.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut said = String::new();
    refused.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 503 ") && said.contains("connections: "), "{said}");
    (0..50).for_each(|_| gate.let_go());
    for client in &mut honest {
        let mut said = [0; 15];
        client.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 200 OK");
    }
    assert_eq!(daemon.metric(CLOSED, &["\"displaced\""]), 50);
    assert_eq!(daemon.metric(REFUSED, &["\"connections\""]), 1);
}

#[test]
fn a_client_that_was_answered_is_idle_and_makes_place_after_one_that_was_silent_longer() {
    let (_folder, daemon) = echo("connections_max = 2\nfirst_request_timeout = \"off\"\n");
    let mut first = silent(&daemon, 1).remove(0);
    let mut second = daemon.connect();
    assert_eq!(second.ask("a"), "a");
    let mut third = daemon.connect();
    assert_eq!(third.ask("b"), "b");
    assert!(is_closed(&mut first));
    assert_eq!(second.ask("c"), "c");
    // Neither has a request in flight, so one of them is displaced.
    assert_eq!(daemon.connect().ask("d"), "d");
    assert_eq!(daemon.metric(CLOSED, &["\"displaced\""]), 2);
}

#[test]
fn a_client_that_is_refused_by_its_address_displaces_nobody() {
    let listener = "connections_max = 2\nfirst_request_timeout = \"off\"\n\
                    per_address = { connections = 2 }\n";
    let (_folder, daemon) = echo(listener);
    let mut silent = silent(&daemon, 2);
    let lines = daemon.connect().rest();
    assert!(lines[0].starts_with("!crowded "), "{lines:?}");
    assert!(!silent.iter_mut().any(is_closed));
    assert_eq!(daemon.metric(CLOSED, &["\"displaced\""]), 0);
}

#[test]
fn a_client_that_does_not_begin_a_request_in_time_is_closed_and_one_that_did_stays() {
    let (_folder, daemon) = echo("first_request_timeout = \"300ms\"\nidle_timeout = \"off\"\n");
    let mut asks = daemon.connect();
    assert_eq!(asks.ask("a"), "a");
    let mut silent: Client = daemon.connect();
    assert_eq!(silent.rest(), [""; 0]);
    assert_eq!(daemon.metric(CLOSED, &["\"silent\""]), 1);
    assert_eq!(asks.ask("b"), "b", "it has been idle for longer");
}

#[test]
fn empty_lines_are_no_request_of_http_and_a_begun_one_has_the_time_of_read() {
    let (_folder, daemon) = http(
        "first_request_timeout = \"300ms\"\nrequest_read_timeout = \"400ms\"\nidle_timeout = \"off\"\n",
        9,
    );
    let mut silent = TcpStream::connect(daemon.address()).unwrap();
    silent.write_all(b"\r\n").unwrap();
    let mut said = String::new();
    let _ = silent.read_to_string(&mut said);
    assert_eq!((said.as_str(), daemon.metric(CLOSED, &["\"silent\""])), ("", 1));
    let mut slow = TcpStream::connect(daemon.address()).unwrap();
    slow.write_all(b"GET / HT").unwrap();
    slow.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    assert_eq!(daemon.metric(CLOSED, &["\"silent\""]), 1);
}

#[test]
fn empty_lines_are_no_message() {
    let folder = folder();
    let text = "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
                protocol = \"jsonrpc\"\npool = \"main\"\nfirst_request_timeout = \"300ms\"\nidle_timeout = \"off\"\n\
                [pool.main]\nprogram = [\"cat\"]\nframing = \"jsonrpc\"\n";
    let daemon = Daemon::serve(folder.path(), text);
    let mut silent = daemon.connect();
    silent.send("\n \r\n\n");
    assert_eq!(silent.rest(), [""; 0]);
    assert_eq!(daemon.metric(CLOSED, &["\"silent\""]), 1);
}

/// Starts a daemon with this limit of open files.
fn with_files(limit: u32, text: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    std::fs::write(folder.path().join("roadstead.toml"), text).unwrap();
    let mut command = std::process::Command::new("sh");
    let limited = format!("ulimit -n {limit} && exec \"$0\" serve roadstead.toml");
    command.args(["-c", &limited, BINARY]).current_dir(folder.path());
    let daemon = Daemon::start(&mut command, folder.path()).unwrap();
    (folder, daemon)
}

#[test]
fn idle_connections_make_room_when_open_files_are_short() {
    let pool = format!("{}workers = 2\n", worker_program(&["--echo"]));
    let (folder, daemon) = with_files(128, &one_pool("first_request_timeout = \"off\"\n", &pool));
    let mut idle = silent(&daemon, 300);
    for _ in 0..20 {
        assert_eq!(daemon.connect().ask("honest"), "honest");
    }
    let displaced = daemon.metric(CLOSED, &["\"displaced\""]);
    assert!((300 - 128..=320).contains(&displaced), "{displaced}");
    assert_eq!(daemon.metric(REFUSED, &[]), 0);
    assert!(idle.iter_mut().take(100).all(is_closed), "the oldest were closed first");
    let log = read_log(folder.path());
    let said: Vec<_> = log.lines().filter(|line| line.contains("open files are short")).collect();
    assert!(said[0].contains("the limit is 128") && said[0].contains("LimitNOFILE"), "{log}");
    assert!(said.len() < 10, "{log}");
    assert!(log.contains("the limit of 128 open files is too low for 10000 connections"), "{log}");
    assert!(daemon.stop().success());
}

#[test]
fn connections_to_servers_take_the_files_of_idle_clients() {
    let (gate, port) = Gate::start();
    let (_folder, daemon) = with_files(256, &http_text("first_request_timeout = \"off\"\n", port));
    let _idle = silent(&daemon, 150);
    let mut honest: Vec<TcpStream> = (0..80)
        .map(|count| {
            let mut client = TcpStream::connect(daemon.address()).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            client.write_all(GET).unwrap();
            until("it is with the server", || gate.held() == count + 1);
            client
        })
        .collect();
    (0..80).for_each(|_| gate.let_go());
    for client in &mut honest {
        let mut said = [0; 15];
        client.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 200 OK");
    }
    assert!(daemon.metric(CLOSED, &["\"displaced\""]) > 50);
    assert_eq!(daemon.metric(REFUSED, &[]), 0);
}

#[test]
fn connections_to_servers_that_carry_no_request_make_room_for_clients() {
    let (gate, port) = Gate::start();
    let (_folder, daemon) = with_files(128, &http_text("first_request_timeout = \"off\"\n", port));
    let connect = |bytes: &[u8]| {
        let mut client = TcpStream::connect(daemon.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client.write_all(bytes).unwrap();
        client
    };
    let mut clients: Vec<TcpStream> = (0..40).map(|_| connect(GET)).collect();
    until("all are with the server", || gate.held() == 40);
    (0..40).for_each(|_| gate.let_go());
    for client in &mut clients {
        let mut said = [0; 15];
        client.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 200 OK");
    }
    drop(clients);
    let open = || daemon.metric("roadstead_connections", &["main"]);
    until("all have left", || open() == 0);
    // None of these is idle.
    let mut begun: Vec<TcpStream> = (0..75).map(|_| connect(b"GET / HT")).collect();
    until("all are there", || open() == 75);
    assert_eq!(daemon.metric(REFUSED, &[]), 0);
    begun[74].write_all(&GET[8..]).unwrap();
    gate.let_go();
    let mut said = [0; 15];
    begun[74].read_exact(&mut said).unwrap();
    assert_eq!(&said, b"HTTP/1.1 200 OK");
}

#[test]
fn a_server_is_not_blamed_for_open_files_that_are_short() {
    let (gate, port) = Gate::start();
    let (_folder, daemon) = with_files(128, &http_text("", port));
    // A connection is idle until its request was read, and is not displaced from then on.
    let clients: Vec<TcpStream> = (0..120)
        .map(|_| {
            let mut client = TcpStream::connect(daemon.address()).unwrap();
            client.write_all(GET).unwrap();
            client
        })
        .collect();
    let rejected = || daemon.metric(REFUSED, &["\"connections\""]);
    let displaced = || daemon.metric(CLOSED, &["\"displaced\""]);
    // Some may wait to be accepted until a descriptor is free.
    until("files are short", || rejected() + displaced() > 0);
    until("some are served", || gate.held() > 20);
    drop(clients);
    until("all have left", || daemon.metric("roadstead_connections", &["main"]) == 0);
    let mut client = TcpStream::connect(daemon.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client.write_all(GET).unwrap();
    (0..120).for_each(|_| gate.let_go());
    let mut said = [0; 15];
    client.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"HTTP/1.1 200 OK");
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["\"unreached\""]), 0);
}
