//! Several servers in one pool: shares, backups, and commands at run time.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;

use super::{CLOSE, connect, rest, serve_pool, status, talk};
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

/// Returns the name of the server that answers on a new connection.
pub(super) fn who(daemon: &Daemon) -> String {
    let said = talk(daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(status(&said), "200", "{said}");
    said.rsplit("\r\n\r\n").next().unwrap_or_default().to_owned()
}

pub(super) fn shares(daemon: &Daemon, requests: usize) -> BTreeMap<String, usize> {
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
    // Each shard has its own round-robin order.
    let one = "[daemon]\nshards = 1";
    let (_folder, daemon) = serve_pool("", &format!("servers = [{servers}]\n{one}"));
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

/// Returns the paths of these requests in the order in which the only server receives them, when all wait for one slot.
fn order(queue: &str, requests: &[(&str, &str)]) -> Vec<String> {
    let server = Server::start(&[("/first", Answer::Silence)]);
    let pool = format!(
        "servers = [\"127.0.0.1:{}\"]\nupstream.max_concurrent = 1\nqueue = {{ {queue}, timeout = \"30s\" }}",
        server.port
    );
    let (_folder, daemon) = serve_pool("half_close = \"left\"", &pool);
    let ask = |path: &str, lines: &str| {
        let mut client = connect(&daemon);
        client.write_all(format!("GET {path} HTTP/1.1\r\n{lines}{CLOSE}").as_bytes()).unwrap();
        client
    };
    let first = ask("/first", "");
    until("the first is served", || server.heads("/first").len() == 1);
    let mut waiting = Vec::new();
    for (place, (path, lines)) in requests.iter().enumerate() {
        waiting.push(ask(path, lines));
        let length = u64::try_from(place).unwrap() + 1;
        until("it waits", || daemon.metric("roadstead_queue_length", &[]) == length);
    }
    drop(first);
    for mut client in waiting {
        let said = rest(&mut client);
        assert_eq!(status(&said), "200", "{said}");
    }
    let paths = server.seen().into_iter().skip(1);
    paths.map(|seen| seen.head.split(' ').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn who_says_in_a_header_that_it_is_urgent_goes_first() {
    let queue = "priority = \"header:x-level\"";
    let requests = [
        ("/late", "X-Level: 9\r\n"),
        ("/plain", ""),
        ("/no-digit", "X-Level: 10\r\n"),
        ("/urgent", "X-Level: 0\r\n"),
        ("/less", "X-Level: 1\r\n"),
    ];
    assert_eq!(order(queue, &requests), ["/urgent", "/less", "/plain", "/no-digit", "/late"]);
}

#[test]
fn clients_known_by_keys_of_http_take_turns() {
    let queue = "fair = \"query:who\"";
    let requests = ["/1?who=a", "/2?who=a", "/3?who=a", "/4?who=b", "/5?who=b", "/6?who=c"];
    let expected = ["/1?who=a", "/4?who=b", "/6?who=c", "/2?who=a", "/5?who=b", "/3?who=a"];
    assert_eq!(order(queue, &requests.map(|path| (path, ""))), expected);
    let queue = "fair = \"cookie:who\"";
    let requests = [
        ("/1", "Cookie: x=y; who=a\r\n"),
        ("/2", "Cookie: who=a; x=z\r\n"),
        ("/3", "Cookie: who=b\r\n"),
    ];
    assert_eq!(order(queue, &requests), ["/1", "/3", "/2"]);
}
