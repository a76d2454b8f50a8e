//! Several daemons that share the bindings of their clients over NATS servers.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::balance::ctl;
use crate::client::Client;
use crate::daemon::{Daemon, folder, until};
use crate::http_server::{Answer, Server};
use crate::nats::Nats;

/// Variables with the secret.
pub(crate) const SECRET: &[(&str, &str)] = &[("CLUSTER_SECRET", "0123456789abcdef")];

/// A daemon with the servers of these ports, and clients that are known by a header.
pub(crate) fn configuration(machine: &str, nats: &[String], ports: &[u16]) -> String {
    let servers: Vec<_> = ports.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
    format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n\
         [cluster]\nnats = {nats:?}\nsecret = \"env:CLUSTER_SECRET\"\nmachine = \"{machine}\"\n\
         [listener.web]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"web\"\n\
         [pool.web]\nservers = [{}]\n\
         sticky = {{ key = \"header:x-client\", lifetime = \"60s\", shared = true }}\n",
        servers.join(", ")
    )
}

pub(crate) fn serve(folder: &Path, machine: &str, nats: &Nats, ports: &[u16]) -> Daemon {
    Daemon::serve_with(folder, &configuration(machine, &nats.urls(), ports), SECRET)
}

/// The name of the server that answers this client.
fn server_of(daemon: &Daemon, client: usize) -> String {
    server_at(&daemon.listeners["web"], client)
}

/// The name of the server that answers this client at an address.
pub(crate) fn server_at(address: &str, client: usize) -> String {
    let mut connection = Client::connect(address);
    connection.send(format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX-Client: {client}\r\nConnection: close\r\n\r\n"
    ));
    connection.rest().pop().unwrap()
}

pub(crate) fn cluster(daemon: &Daemon, verb: &str) -> Value {
    let (is_done, text) = ctl(daemon, &["cluster", verb]);
    assert!(is_done, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_client_keeps_its_server_when_the_daemon_that_bound_it_is_killed() {
    let Some(nats) = Nats::start(3) else { return };
    let servers = named_servers(4);
    let ports: Vec<_> = servers.iter().map(|server| server.port).collect();
    let folders = [folder(), folder(), folder()];
    let mut one = serve(folders[0].path(), "one", &nats, &ports);
    let two = serve(folders[1].path(), "two", &nats, &ports);
    let bound: BTreeMap<usize, String> =
        (0..40).map(|client| (client, server_of(&one, client))).collect();
    for (client, server) in &bound {
        assert_eq!(server_of(&one, *client), *server, "it is bound");
    }
    until("the other daemon knows all clients", || {
        cluster(&two, "status")["pools"][0]["keys"] == 40
    });
    until("both have heard each other", || {
        let status = cluster(&one, "status");
        status["pools"][0]["machines"][0]["name"] == "two"
            && status["pools"][0]["proof_age_seconds"].is_number()
    });
    let report = cluster(&one, "check");
    assert_eq!((&report["compared"], &report["differing"]), (&1.into(), &0.into()), "{report}");
    one.kill();
    for (client, server) in &bound {
        assert_eq!(server_of(&two, *client), *server, "client {client}");
    }
    assert_eq!(two.metric("roadstead_cluster_in_sync", &["pool=\"web\""]), 1);
    // A daemon that starts has the bindings before it serves.
    let three = serve(folders[2].path(), "three", &nats, &ports);
    for (client, server) in &bound {
        assert_eq!(server_of(&three, *client), *server, "client {client}");
    }
}

/// Servers that answer with their names.
pub(crate) fn named_servers(count: usize) -> Vec<Server> {
    let answer = |name: usize| {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nserver-{name}");
        Server::start(&[("/", Answer::Bytes(text.into_bytes()))])
    };
    (0..count).map(answer).collect()
}

#[test]
fn a_daemon_that_stood_still_serves_with_the_bindings_that_were_made_meanwhile() {
    let Some(nats) = Nats::start(3) else { return };
    let servers = named_servers(4);
    let ports: Vec<_> = servers.iter().map(|server| server.port).collect();
    let folders = [folder(), folder()];
    let one = serve(folders[0].path(), "one", &nats, &ports);
    // The second daemon does not have the first server, so its clients are bound again here.
    let two = serve(folders[1].path(), "two", &nats, &ports[1..]);
    let mut first = 0;
    for is_connection_closed in [false, true] {
        let clients = first..first + 40;
        let stale: Vec<String> = clients.clone().map(|client| server_of(&one, client)).collect();
        assert!(stale.iter().any(|server| server == "server-0"), "{stale:?}");
        until("the other daemon knows all clients", || {
            cluster(&two, "status")["pools"][0]["keys"] == first + 40
        });
        let before = nats.connections();
        let bound: Vec<String> = one.stopped(|| {
            if is_connection_closed {
                until("the server has closed the connection", || nats.connections() < before);
            }
            (first..first + 60).map(|client| server_of(&two, client)).collect()
        });
        assert!(bound.iter().all(|server| server != "server-0"), "{bound:?}");
        // Until the changes arrive, the daemon serves from its own table.
        until("the bindings of the other daemon", || {
            (first..).zip(&bound).all(|(client, server)| server_of(&one, client) == *server)
        });
        for (client, server) in (first..).zip(&bound) {
            assert_eq!(server_of(&two, client), *server, "client {client}");
        }
        first += 60;
    }
    until("both have the same", || {
        let report = cluster(&one, "check");
        (&report["compared"], &report["differing"]) == (&1.into(), &0.into())
    });
}

#[test]
fn a_daemon_serves_and_binds_clients_while_no_nats_server_can_be_reached() {
    let server = Server::start(&[]);
    server.answer("/", Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".to_vec()));
    let nats = ["nats://127.0.0.1:1".to_owned()];
    let text = configuration("one", &nats, &[server.port])
        .replace("[cluster]\n", "[cluster]\nstart_timeout = \"100ms\"\n");
    let folder = folder();
    let daemon = Daemon::serve_with(folder.path(), &text, SECRET);
    for client in 0..10 {
        assert_eq!(server_of(&daemon, client), "a");
    }
    until("the bindings wait", || cluster(&daemon, "status")["pools"][0]["waiting"] == 10);
    let status = cluster(&daemon, "status");
    assert!(status["server"].is_null(), "{status}");
    let trouble = status["trouble"].as_str().unwrap();
    assert!(trouble.contains("cannot connect to nats://127.0.0.1:1: "), "{trouble}");
    assert!(trouble.contains("check that these NATS servers run"), "{trouble}");
    let report = cluster(&daemon, "check");
    assert!(report["not_compared"][0].as_str().unwrap().contains("no connection"), "{report}");
    assert!(daemon.stop().success());
}

#[test]
fn the_status_says_what_to_do_if_the_servers_reject_the_daemon() {
    let Some(mut nats) = Nats::prepare(1) else { return };
    nats.lines = "authorization { user: somebody, password: secret }\n".to_owned();
    nats.run_all();
    let text = configuration("one", &nats.urls(), &[1])
        .replace("[cluster]\n", "[cluster]\nstart_timeout = \"100ms\"\n");
    let folder = folder();
    let daemon = Daemon::serve_with(folder.path(), &text, SECRET);
    let trouble = || cluster(&daemon, "status")["trouble"].to_string();
    until("the reason is shown", || trouble().contains("authorization violation"));
    assert!(trouble().contains("; set `credentials` of `[cluster]` to "), "{}", trouble());
}

#[test]
fn a_daemon_without_a_cluster_says_how_to_get_one() {
    let folder = folder();
    let text = configuration("one", &["nats://127.0.0.1:1".to_owned()], &[1]);
    let (before, rest) = text.split_once("[cluster]").unwrap();
    let listener = &rest[rest.find("[listener").unwrap()..];
    let text = format!("{before}{}", listener.replace(", shared = true", ""));
    let daemon = Daemon::serve(folder.path(), &text);
    for verb in ["status", "check"] {
        let (is_done, text) = ctl(&daemon, &["cluster", verb]);
        assert!(!is_done && text.contains("has no section `[cluster]`"), "{text}");
        assert!(text.contains("help: add `[cluster]` with `nats` and `secret`"), "{text}");
    }
}
