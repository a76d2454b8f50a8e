//! Hints between machines that the health of a server has changed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cluster::{cluster, configuration as sharing, named_servers, server_at};
use crate::daemon::{Daemon, folder, until};
use crate::http_server::{Answer, Server};
use crate::nats::Nats;

/// Variables with the secret.
const SECRET: &[(&str, &str)] = &[("CLUSTER_SECRET", "0123456789abcdef")];

fn configuration(machine: &str, nats: &[String], server: &str, interval: &str) -> String {
    format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n\
         [cluster]\nnats = {nats:?}\nsecret = \"env:CLUSTER_SECRET\"\nmachine = \"{machine}\"\n\
         [listener.web]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"web\"\n\
         [pool.web]\nservers = [\"{server}\"]\n\
         health_check = {{ check = \"http\", path = \"/\", interval = \"{interval}\", fall = 1, rise = 1 }}\n"
    )
}

fn health(daemon: &Daemon) -> String {
    daemon.status()["pools"][0]["places"][0]["health"].as_str().unwrap().to_owned()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_machine_checks_a_server_when_another_one_finds_it_down_or_up() {
    let Some(nats) = Nats::start(1) else { return };
    let server = Server::start(&[("/", Answer::Bytes(OK.to_vec()))]);
    let name = format!("127.0.0.1:{}", server.port);
    let folders = [folder(), folder()];
    let start = |number: usize, interval: &str| {
        let machine = ["one", "two"][number];
        let text = configuration(machine, &nats.urls(), &name, interval);
        Daemon::serve_with(folders[number].path(), &text, SECRET)
    };
    let (one, two) = (start(0, "50ms"), start(1, "10m"));
    until("it is up", || health(&one) == "up" && health(&two) == "up");
    let checks = |daemon: &Daemon| daemon.metric("roadstead_health_checks_total", &[]);
    let before = checks(&two);
    let port = server.kill();
    let killed = Instant::now();
    until("both find it down", || health(&one) == "down" && health(&two) == "down");
    println!("after {:?}", killed.elapsed());
    assert!(killed.elapsed() < Duration::from_secs(60), "far less than the interval");
    assert!(checks(&two) > before);
    let _server = Server::start_at(port, &[("/", Answer::Bytes(OK.to_vec()))]);
    until("both find it up", || health(&one) == "up" && health(&two) == "up");
    let hints = |daemon: &Daemon, kind: &str| {
        daemon.metric(&format!("roadstead_cluster_health_hints_{kind}_total"), &[])
    };
    until("the hints are counted", || hints(&two, "received") >= 2 && hints(&one, "sent") >= 2);
}

#[test]
fn a_server_that_only_one_machine_finds_down_stays_up_at_the_other() {
    let Some(nats) = Nats::start(1) else { return };
    let servers = named_servers(2);
    let ports: Vec<_> = servers.iter().map(|server| server.port).collect();
    let folders = [folder(), folder()];
    // Each machine checks another path, and the second one by itself only after minutes.
    let start = |machine: &str, folder: &Path, interval: &str| {
        let check = format!(
            "health_check = {{ check = \"http\", path = \"/{machine}\", interval = \"{interval}\", \
             fall = 1, rise = 1 }}\n"
        );
        for server in &servers {
            server.answer(&format!("/{machine}"), Answer::Bytes(OK.to_vec()));
        }
        let text = sharing(machine, &nats.urls(), &ports) + &check;
        Daemon::serve_with(folder, &text, SECRET)
    };
    let one = start("one", folders[0].path(), "50ms");
    let two = start("two", folders[1].path(), "10m");
    let health = |daemon: &Daemon| {
        let places = &daemon.status()["pools"][0]["places"];
        [0, 1].map(|place| places[place]["health"].as_str().unwrap().to_owned())
    };
    until("all are up", || [&one, &two].iter().all(|daemon| health(daemon) == ["up", "up"]));
    let of_two = |client| server_at(&two.listeners["web"], client);
    let bound: Vec<String> = (0..20).map(of_two).collect();
    assert!(["server-0", "server-1"].iter().all(|name| bound.iter().any(|it| it == name)));
    until("the other machine knows all clients", || {
        cluster(&one, "status")["pools"][0]["keys"] == 20
    });
    let checks = || two.metric("roadstead_health_checks_total", &[]);
    let before = checks();
    let failing = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    servers[0].answer("/one", Answer::Bytes(failing.to_vec()));
    until("the first machine finds it down", || health(&one) == ["down", "up"]);
    until("the second one checks it", || checks() > before);
    assert_eq!(health(&two), ["up", "up"]);
    assert_eq!(two.metric("roadstead_health_check_failures_total", &[]), 0);
    assert_eq!((0..20).map(of_two).collect::<Vec<_>>(), bound, "no client has moved");
    assert_eq!(two.metric("roadstead_cluster_health_hints_sent_total", &[]), 0);
}

/// Publishes a message as a client of NATS.
fn publish(nats: &Nats, subject: &str, payload: &str) {
    let urls = nats.urls();
    let mut stream = TcpStream::connect(urls[0].trim_start_matches("nats://")).unwrap();
    let text = format!(
        "CONNECT {{\"verbose\":false}}\r\nPUB {subject} {}\r\n{payload}\r\nPING\r\n",
        payload.len()
    );
    stream.write_all(text.as_bytes()).unwrap();
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    while !answer.windows(6).any(|it| it == b"PONG\r\n") {
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&part[..count]);
    }
}

#[test]
fn a_false_hint_causes_checks_and_changes_nothing() {
    let Some(nats) = Nats::start(1) else { return };
    let server = Server::start(&[("/", Answer::Bytes(OK.to_vec()))]);
    let name = format!("127.0.0.1:{}", server.port);
    let folder = folder();
    let text = configuration("one", &nats.urls(), &name, "10m");
    let one = Daemon::serve_with(folder.path(), &text, SECRET);
    let count = |name: &str| one.metric(name, &[]);
    let connected = || count("roadstead_cluster_commands_in_sync") == 1;
    until("it is connected", connected);
    let hint = |worker: &str| {
        format!(
            "{{\"version\":1,\"origin\":\"1\",\"pool\":\"web\",\"worker\":\"{worker}\",\"state\":\"down\"}}"
        )
    };
    for _ in 0..20 {
        publish(&nats, "roadstead.roadstead.health", &hint(&name));
    }
    publish(&nats, "roadstead.roadstead.health", &hint("10.0.0.1:1"));
    publish(&nats, "roadstead.roadstead.health", "?");
    until("the hints are received", || {
        count("roadstead_cluster_health_hints_received_total") == 21
    });
    until("the server is checked", || count("roadstead_health_checks_total") > 0);
    assert_eq!((health(&one).as_str(), count("roadstead_health_check_failures_total")), ("up", 0));
    assert_eq!(count("roadstead_cluster_health_hints_sent_total"), 0);
}
