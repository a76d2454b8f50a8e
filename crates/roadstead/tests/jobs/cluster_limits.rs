//! Limits per address that machines share approximately.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::daemon::{Daemon, folder, until};
use crate::nats::Nats;

/// Variables with the secret.
const SECRET: &[(&str, &str)] = &[("CLUSTER_SECRET", "0123456789abcdef")];

fn start(machine: &str, folder: &std::path::Path, nats: &[String], limits: &str) -> Daemon {
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n\
         [cluster]\nnats = {nats:?}\nsecret = \"env:CLUSTER_SECRET\"\nmachine = \"{machine}\"\n\
         [listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"main\"\n\
         per_address = {{ {limits}, shared = true }}\n\
         [pool.main]\nprogram = [\"cat\"]\n"
    );
    Daemon::serve_with(folder, &text, SECRET)
}

fn reports(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_cluster_limit_reports_received_total", &[])
}

/// Whether a new connection gets a reply; otherwise it was rejected.
fn is_admitted(stream: &mut TcpStream) -> bool {
    let _ = stream.write_all(b"hello\n");
    let mut reply = [0; 6];
    stream.read_exact(&mut reply).is_ok_and(|()| reply == *b"hello\n")
}

#[test]
fn connections_on_one_machine_count_on_the_other_and_no_longer_when_they_are_closed() {
    let Some(nats) = Nats::start(1) else { return };
    let folders = [folder(), folder()];
    let one = start("one", folders[0].path(), &nats.urls(), "connections = 3");
    let two = start("two", folders[1].path(), &nats.urls(), "connections = 3");
    let connect = |daemon: &Daemon| TcpStream::connect(daemon.address()).unwrap();
    let mut open: Vec<_> = (0..3).map(|_| connect(&one)).collect();
    assert!(open.iter_mut().all(is_admitted));
    until("the other machine knows it", || reports(&two) > 0 && !is_admitted(&mut connect(&two)));
    open.pop();
    until("one more is admitted", || is_admitted(&mut connect(&two)));
    drop(open);
    until("three are admitted", || {
        let mut three: Vec<_> = (0..3).map(|_| connect(&two)).collect();
        three.iter_mut().all(is_admitted)
    });
}

#[test]
fn requests_on_one_machine_count_on_the_other() {
    let Some(nats) = Nats::start(1) else { return };
    let folders = [folder(), folder()];
    // One request per second, so that nothing is given back during the test.
    let limits = "requests = 1, requests_burst = 40";
    let one = start("one", folders[0].path(), &nats.urls(), limits);
    let two = start("two", folders[1].path(), &nats.urls(), limits);
    let mut client = TcpStream::connect(one.address()).unwrap();
    for _ in 0..40 {
        assert!(is_admitted(&mut client));
    }
    drop(client);
    // A connection causes a report. All requests are in the first two.
    for count in 1..=3 {
        drop(TcpStream::connect(one.address()).unwrap());
        until("a report", || reports(&two) >= count);
    }
    let mut admitted = 0;
    until("the second machine limits", || {
        let mut client = TcpStream::connect(two.address()).unwrap();
        let is_admitted = is_admitted(&mut client);
        admitted += u32::from(is_admitted);
        !is_admitted
    });
    assert!(admitted < 40, "fewer than its own limit allows: {admitted}");
}
