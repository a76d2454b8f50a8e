//! Listeners of datagrams. They have no connection whose end could be seen.

use std::net::UdpSocket;

use rustix::process::Signal;

use crate::daemon::{Daemon, folder, until, worker_program};

/// Starts a listener of datagrams with one pool.
fn serve(folder: &std::path::Path, pool: &str) -> (Daemon, UdpSocket) {
    let configuration = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"datagrams\"\npool = \"main\"\n[pool.main]\n{pool}\n"
    );
    let daemon = Daemon::serve(folder, &configuration);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(daemon.address()).unwrap();
    (daemon, client)
}

fn reply(client: &UdpSocket) -> String {
    let mut bytes = vec![0; 70_000];
    let count = client.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

#[test]
fn what_was_taken_is_answered_while_the_daemon_drains() {
    let folder = folder();
    let pool = format!("{}workers = 1\n", worker_program(&["--echo", "--misbehave", "slow=300"]));
    let (mut daemon, client) = serve(folder.path(), &pool);
    client.send(b"taken").unwrap();
    until("it is with a worker", || daemon.metric("roadstead_workers", &["busy"]) == 1);
    daemon.signal(Signal::TERM);
    until("it drains", || daemon.metric("roadstead_draining", &[]) == 1);
    assert_eq!(reply(&client).trim_end(), "taken");
    assert!(daemon.wait().success());
}

#[test]
fn an_answer_in_place_of_another_that_no_datagram_holds_is_refused_in_words() {
    let folder = folder();
    std::fs::write(folder.path().join("sorry.txt"), "x".repeat(70_000)).unwrap();
    let fallback = folder.path().join("sorry.txt").display().to_string();
    let pool = format!("program = [\"/nonexistent\"]\nfallback = {{ file = \"{fallback}\" }}\n");
    let (daemon, client) = serve(folder.path(), &pool);
    client.send(b"a").unwrap();
    let told = reply(&client);
    assert!(told.starts_with("!down the answer in its place has more than 65507 bytes"), "{told}");
    drop(daemon);
}

/// An error reply could be a request to another daemon, and the two could answer each other without end.
#[test]
fn what_begins_as_an_error_is_told_no_error() {
    let folder = folder();
    let (daemon, client) = serve(folder.path(), "program = [\"/nonexistent\"]\n");
    client.send(b"!down No worker can be started at the moment.").unwrap();
    client.send(b"a").unwrap();
    assert!(reply(&client).starts_with("!down "), "of the second one");
    until("both ended", || daemon.metric("roadstead_requests_finished_total", &["\"down\""]) == 2);
    client.set_nonblocking(true).unwrap();
    assert!(client.recv(&mut [0; 100]).is_err(), "there is no other");
}

#[test]
fn over_the_rate_of_its_address_a_datagram_gets_nothing() {
    let folder = folder();
    let configuration = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"datagrams\"\npool = \"main\"\nper_address = {{ requests = 1, requests_burst = 1 }}\n\
         [pool.main]\n{}",
        worker_program(&["--echo"])
    );
    let daemon = Daemon::serve(folder.path(), &configuration);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(daemon.address()).unwrap();
    (0..20).for_each(|_| assert_eq!(client.send(b"a").unwrap(), 1));
    let ended = |cause: &str| daemon.metric("roadstead_requests_finished_total", &[cause]);
    until("all ended", || ended("\"ok\"") + ended("\"rate\"") == 20);
    assert!(ended("\"rate\"") > 0);
    client.set_nonblocking(true).unwrap();
    let mut bytes = [0; 100];
    while let Ok(count) = client.recv(&mut bytes) {
        assert!(
            !bytes[..count].starts_with(b"!"),
            "{:?}",
            bytes[..count].escape_ascii().to_string()
        );
    }
}
