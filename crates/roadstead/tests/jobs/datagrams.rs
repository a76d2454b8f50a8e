//! Listeners of datagrams, where there is no connection that could tell of an end.

use std::net::UdpSocket;

use rustix::process::Signal;

use crate::daemon::{Daemon, folder, until, worker_program};

/// A listener of datagrams before one pool.
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
    let sorry = folder.path().join("sorry.txt").display().to_string();
    let pool = format!("program = [\"/nonexistent\"]\nsorry = {{ file = \"{sorry}\" }}\n");
    let (daemon, client) = serve(folder.path(), &pool);
    client.send(b"a").unwrap();
    let told = reply(&client);
    assert!(told.starts_with("!down the answer in its place has more than 65507 bytes"), "{told}");
    drop(daemon);
}
