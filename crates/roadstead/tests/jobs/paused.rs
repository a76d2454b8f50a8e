//! Clients of message protocols are paused while the queue of their pool is full. Others are rejected.

use std::net::UdpSocket;

use rustix::process::Signal;

use crate::client::Client;
use crate::daemon::{Daemon, folder, one_pool, until, worker_program};

/// A pool of the echoing worker, or of a worker that never answers.
fn echo(how: &[&str], pool: &str) -> String {
    let arguments: Vec<&str> = [&["--echo"], how].concat();
    format!("{}{pool}", worker_program(&arguments))
}

fn paused(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_paused_clients", &[])
}

fn full(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_requests_finished_total", &["cause=\"full\""])
}

#[test]
fn five_hundred_clients_of_few_programs_are_all_answered_in_their_order() {
    for shards in [1, 3] {
        let folder = folder();
        let queue = "queue = { max_requests = 100, timeout = \"60s\" }\nalignment = \"off\"\n";
        let pool = echo(&[], &format!("workers = 3\npipeline = 4\n{queue}"));
        let configuration = format!("[daemon]\nshards = {shards}\n{}", one_pool("", &pool));
        let daemon = Daemon::serve(folder.path(), &configuration);
        let mut clients: Vec<Client> = (0..500).map(|_| daemon.connect()).collect();
        for (who, client) in clients.iter_mut().enumerate() {
            client.send((0..200).map(|line| format!("{who} {line}\n")).collect::<String>());
            client.finish();
        }
        for (who, client) in clients.iter_mut().enumerate() {
            let expected: Vec<String> = (0..200).map(|line| format!("{who} {line}")).collect();
            let replies = client.rest();
            let rejected = replies.iter().filter(|reply| reply.starts_with('!')).count();
            assert_eq!((rejected, replies == expected), (0, true), "client {who}: {replies:?}");
        }
        assert_eq!((full(&daemon), paused(&daemon)), (0, 0), "on {shards} shards");
    }
}

#[test]
fn clients_are_paused_until_the_pool_that_their_replies_go_on_to_has_room() {
    let folder = folder();
    let pool = echo(&[], "workers = 4\npipeline = 4\nthen = \"slow\"\nalignment = \"off\"\n");
    let slow = echo(
        &["--misbehave", "slow=1"],
        "workers = 1\nqueue = { max_requests = 20, timeout = \"60s\" }\n",
    );
    let configuration = format!("{}[pool.slow]\n{slow}", one_pool("", &pool));
    let daemon = Daemon::serve(folder.path(), &configuration);
    let mut clients: Vec<Client> = (0..20).map(|_| daemon.connect()).collect();
    for client in &mut clients {
        client.send((0..50).map(|line| format!("{line}\n")).collect::<String>());
    }
    for client in &mut clients {
        (0..50).for_each(|line| assert_eq!(client.line(), line.to_string()));
    }
    assert_eq!(full(&daemon), 0);
}

#[test]
fn datagrams_and_http_are_rejected_while_other_clients_are_paused() {
    let folder = folder();
    let pool = echo(
        &["--misbehave", "never"],
        "workers = 1\nqueue = { max_requests = 4, timeout = \"20s\" }\nresponse_timeout = \"30s\"\n",
    );
    let others = ["datagrams", "http"].map(|protocol| {
        format!("[listener.{protocol}]\nlisten = \"127.0.0.1:0\"\nprotocol = \"{protocol}\"\npool = \"main\"\n")
    });
    let configuration = format!("{}{}", one_pool("", &pool), others.concat());
    let daemon = Daemon::serve(folder.path(), &configuration);
    until("it is ready", || daemon.metric("roadstead_workers", &["idle"]) == 1);
    let mut client = daemon.connect();
    client.send("1\n2\n3\n4\n5\n6\n7\n");
    until("it is paused", || paused(&daemon) == 1);
    // A quarter of the queue is reserved for clients that cannot be paused.
    assert_eq!(daemon.metric("roadstead_queue_length", &[]), 3);
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.connect(&daemon.listeners["datagrams"]).unwrap();
    datagrams.send(b"a").unwrap();
    until("it waits", || daemon.metric("roadstead_queue_length", &[]) == 4);
    datagrams.send(b"b").unwrap();
    let mut reply = [0; 100];
    let count = datagrams.recv(&mut reply).unwrap();
    assert!(reply[..count].starts_with(b"!full "), "{:?}", reply[..count].escape_ascii());
    let web = &daemon.listeners["http"];
    assert_eq!(roadstead::ask::request(web, "POST", "/", b"c").unwrap().status, 503);
    // A client that disconnects does not wait.
    drop(client);
    until("nobody is paused", || paused(&daemon) == 0);
}

#[test]
fn a_pool_with_a_fallback_answers_with_it_and_pauses_nobody() {
    let folder = folder();
    let pool = echo(
        &["--misbehave", "never"],
        "workers = 1\nqueue = { max_requests = 2, timeout = \"20s\" }\nfallback = { line = \"busy\" }\n\
         response_timeout = \"300ms\"\n",
    );
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    until("it is ready", || daemon.metric("roadstead_workers", &["idle"]) == 1);
    let mut client = daemon.connect();
    client.send("1\n2\n3\n4\n");
    client.finish();
    let replies = client.rest();
    assert_eq!(replies.len(), 4);
    assert_eq!(replies[3], "busy", "{replies:?}");
}

#[test]
fn what_a_paused_client_has_sent_is_answered_when_the_daemon_ends() {
    let folder = folder();
    let pool = echo(
        &["--misbehave", "slow=30"],
        "workers = 1\nqueue = { max_requests = 2, timeout = \"20s\" }\n",
    );
    let mut daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut client = daemon.connect();
    client.send((0..40).map(|line| format!("{line}\n")).collect::<String>());
    until("it is paused", || paused(&daemon) == 1);
    daemon.signal(Signal::TERM);
    let replies = client.rest();
    assert_eq!(replies.len(), 40);
    let answered = replies.iter().take_while(|reply| !reply.starts_with('!')).count();
    assert!(replies[answered..].iter().all(|reply| reply.starts_with("!draining ")), "{replies:?}");
    assert!((0..answered).all(|line| replies[line] == line.to_string()), "{replies:?}");
    assert!(daemon.wait().success());
}

#[test]
fn a_paused_client_reads_on_when_its_listener_goes_to_another_pool() {
    let folder = folder();
    let stuck = echo(
        &["--misbehave", "never"],
        "workers = 1\nqueue = { max_requests = 1, timeout = \"1s\" }\nresponse_timeout = \"1s\"\n",
    );
    let other = format!("[pool.other]\n{}", echo(&[], "workers = 1\n"));
    let before = format!("{}{other}", one_pool("", &stuck));
    let daemon = Daemon::serve(folder.path(), &before);
    until("it is ready", || daemon.metric("roadstead_workers", &["idle"]) == 2);
    let mut client = daemon.connect();
    client.send("1\n2\n3\n4\n");
    until("it is paused", || paused(&daemon) == 1);
    Daemon::rewrite(folder.path(), &before.replacen("pool = \"main\"", "pool = \"other\"", 1));
    daemon.reload().unwrap();
    let replies: Vec<String> = (0..4).map(|_| client.line()).collect();
    assert!(replies[..2].iter().all(|reply| reply.starts_with('!')), "{replies:?}");
    assert_eq!(replies[2..], ["3", "4"]);
}
