//! A command of the operator is in force on every shard when it is answered.

use std::io::Write;
use std::net::TcpStream;

use super::balance::named;
use super::{connect, read_until, status};
use crate::daemon::{Daemon, folder, until};
use crate::http_server::Server;

/// Two shards before these servers.
fn configuration(servers: &[&Server]) -> String {
    let servers: Vec<String> =
        servers.iter().map(|server| format!("\"127.0.0.1:{}\"", server.port)).collect();
    format!(
        "[daemon]\nshards = 2\n[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\n\
         listen = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n[pool.main]\n\
         servers = [{}]\nfallback = {{ line = \"<sorry>\" }}\n",
        servers.join(", ")
    )
}

fn order(daemon: &Daemon, path: &str, body: &str) {
    let said = roadstead::ask::request(&daemon.admin, "POST", path, body.as_bytes()).unwrap();
    assert_eq!(said.status, 200, "{path}: {}", String::from_utf8_lossy(&said.body));
}

/// Persistent clients. All send a request at the same time, and each reports its reply.
struct Clients(Vec<TcpStream>);

impl Clients {
    fn ask(&mut self) -> Vec<String> {
        for client in &mut self.0 {
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        }
        self.0.iter_mut().map(|client| read_until(client, ">")).collect()
    }

    #[track_caller]
    fn all_get(&mut self, code: &str, body: &str) {
        for said in self.ask() {
            assert!(status(&said) == code && said.ends_with(body), "{code} {body}: {said}");
        }
    }
}

#[test]
fn an_order_is_in_force_on_every_shard_when_it_is_answered() {
    let [a, b] = ["<a>", "<b>"].map(named);
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &configuration(&[&a, &b]));
    let mut clients = Clients((0..16).map(|_| connect(&daemon)).collect());
    let worker = |server: &Server, verb: &str| {
        format!("/pools/main/workers/127.0.0.1:{}/{verb}", server.port)
    };
    for _ in 0..25 {
        order(&daemon, "/pools/main/fallback", "on");
        assert_eq!(daemon.metric("roadstead_fallback_active", &[]), 1);
        clients.all_get("503", "<sorry>");
        order(&daemon, "/pools/main/fallback", "off");
        assert_eq!(daemon.metric("roadstead_fallback_active", &[]), 0);
        order(&daemon, &worker(&b, "disable"), "");
        clients.all_get("200", "<a>");
        order(&daemon, &worker(&b, "enable"), "");
        order(&daemon, &worker(&a, "weight"), "0");
        clients.all_get("200", "<b>");
        order(&daemon, &worker(&a, "weight"), "default");
        order(&daemon, &worker(&a, "drain"), "");
        clients.all_get("200", "<b>");
        order(&daemon, &worker(&a, "enable"), "");
    }
    assert!(daemon.stop().success());
}

#[test]
fn settings_that_are_read_again_are_in_force_on_every_shard_when_that_is_answered() {
    let [a, b] = ["<a>", "<b>"].map(named);
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &configuration(&[&a]));
    let mut clients = Clients((0..16).map(|_| connect(&daemon)).collect());
    for _ in 0..15 {
        for (server, name) in [(&b, "<b>"), (&a, "<a>")] {
            Daemon::rewrite(folder.path(), &configuration(&[server]));
            daemon.reload().unwrap();
            clients.all_get("200", name);
        }
    }
    assert!(daemon.stop().success());
}

#[test]
fn an_order_during_a_drain_is_answered_though_shards_end() {
    let a = named("<a>");
    a.answer("/", crate::http_server::Answer::Silence);
    let folder = folder();
    let mut daemon = Daemon::serve(folder.path(), &configuration(&[&a]));
    let mut client = connect(&daemon);
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    until("the server has it", || !a.seen().is_empty());
    daemon.signal(rustix::process::Signal::TERM);
    // One of the shards has no client, and may have ended.
    until("it drains", || daemon.page("/health") == "draining\n");
    for state in ["on", "off"] {
        order(&daemon, "/pools/main/fallback", state);
    }
    daemon.kill();
}
