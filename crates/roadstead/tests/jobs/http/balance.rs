//! Several servers behind one pool: shares, backups, and orders at run time.

use std::collections::BTreeMap;
use std::process::Command;

use super::{CLOSE, serve_pool, status, talk};
use crate::daemon::{BINARY, Daemon, until};
use crate::http_server::{Answer, Server};

/// A server that answers `/` with its name.
pub(crate) fn named(name: &str) -> Server {
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
    Server::start(&[("/", Answer::Bytes(reply.into_bytes()))])
}

pub(crate) fn ctl(daemon: &Daemon, words: &[&str]) {
    let mut command = Command::new(BINARY);
    let out = command.arg("ctl").args(["--admin", &daemon.admin]).args(words).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Who answers, of a connection of its own.
pub(super) fn who(daemon: &Daemon) -> String {
    let said = talk(daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(status(&said), "200", "{said}");
    said.rsplit("\r\n\r\n").next().unwrap_or_default().to_owned()
}

fn shares(daemon: &Daemon, requests: usize) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for _ in 0..requests {
        *shares.entry(who(daemon)).or_default() += 1;
    }
    shares
}

#[test]
fn servers_get_what_their_weights_say_and_weight_0_gets_nothing() {
    let [a, b, c] = ["a", "b", "c"].map(named);
    let server = |server: &Server, weight: u32| {
        format!("{{ address = \"127.0.0.1:{}\", weight = {weight} }}", server.port)
    };
    let servers = [server(&a, 3), server(&b, 1), server(&c, 0)].join(", ");
    let (_folder, daemon) = serve_pool("", &format!("servers = [{servers}]"));
    let exact = [("a".to_owned(), 12), ("b".to_owned(), 4)];
    assert_eq!(shares(&daemon, 16), BTreeMap::from(exact));
    let name = |server: &Server| format!("127.0.0.1:{}", server.port);
    ctl(&daemon, &["weight", "main", &name(&a), "0"]);
    ctl(&daemon, &["weight", "main", &name(&c), "1"]);
    let even = [("b".to_owned(), 5), ("c".to_owned(), 5)];
    assert_eq!(shares(&daemon, 10), BTreeMap::from(even));
}

#[test]
fn a_backup_serves_while_nobody_else_can_and_no_longer() {
    let [main, backup] = ["main", "backup"].map(named);
    let servers = format!(
        "servers = [\"127.0.0.1:{}\", {{ address = \"127.0.0.1:{}\", backup = true }}]",
        main.port, backup.port
    );
    let (_folder, daemon) = serve_pool("", &servers);
    let all = |name: &str| BTreeMap::from([(name.to_owned(), 5)]);
    assert_eq!(shares(&daemon, 5), all("main"));
    let name = format!("127.0.0.1:{}", main.port);
    ctl(&daemon, &["disable", "main", &name]);
    assert_eq!(shares(&daemon, 5), all("backup"));
    assert_eq!(daemon.status()["pools"][0]["on_backup"], true);
    ctl(&daemon, &["enable", "main", &name]);
    until("the first serves again", || who(&daemon) == "main");
    assert_eq!(shares(&daemon, 5), all("main"));
}
