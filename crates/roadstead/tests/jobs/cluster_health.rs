//! Hints between machines that the health of a server has changed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

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
