//! Servers with several shards: each shard has its own connections, and all shards share one limit, one queue, and one
//! state of every server.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::daemon::{Daemon, PATIENCE, folder, until};
use crate::http::balance::{ctl, named};
use crate::http_server::{Answer, Server};
use crate::shards::Gate;

const CLOSE: &str = "Host: a\r\nConnection: close\r\n\r\n";

fn servers(ports: &[u16]) -> String {
    let all: Vec<String> = ports.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
    format!("servers = [{}]\n", all.join(", "))
}

fn serve(shards: u32, pool: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let text = format!(
        "[daemon]\nshards = {shards}\n[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\n\
         listen = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n[pool.main]\n{pool}\n"
    );
    let daemon = Daemon::serve(folder.path(), &text);
    (folder, daemon)
}

fn connect(daemon: &Daemon) -> TcpStream {
    let client = TcpStream::connect(daemon.address()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

/// Returns status and body of a request on a new connection, which any of the shards accepts.
fn ask(daemon: &Daemon, target: &str, lines: &str) -> (String, String) {
    let mut client = connect(daemon);
    client.write_all(format!("GET {target} HTTP/1.1\r\n{lines}{CLOSE}").as_bytes()).unwrap();
    let mut said = String::new();
    let _ = client.read_to_string(&mut said);
    let status = said.get(9..12).unwrap_or_default().to_owned();
    (status, said)
}

fn body(reply: &str) -> &str {
    reply.rsplit("\r\n\r\n").next().unwrap_or_default()
}

#[test]
fn a_server_never_has_more_at_once_than_its_slots_and_every_waiter_is_served() {
    for (shards, slots, count) in [(2, 1, 1), (2, 3, 2), (4, 1, 2), (4, 3, 1)] {
        let gates: Vec<_> = (0..count).map(|_| Gate::start()).collect();
        let ports: Vec<u16> = gates.iter().map(|(_, port)| *port).collect();
        let pool = format!("{}upstream.max_concurrent = {slots}", servers(&ports));
        let (_folder, daemon) = serve(shards, &pool);
        let mut clients: Vec<TcpStream> = (0..32)
            .map(|_| {
                let mut client = connect(&daemon);
                client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
                client
            })
            .collect();
        until("all are taken in", || daemon.metric("roadstead_requests_total", &[]) == 32);
        let mut left = 32;
        while left > 0 {
            let due = left.min(slots * u32::try_from(count).unwrap());
            let held = || gates.iter().map(|(gate, _)| gate.held()).sum::<u32>();
            until("slots are used as far as they go", || held() == due);
            let busy = gates.iter().find(|(gate, _)| gate.held() > 0).unwrap();
            busy.0.let_go();
            left -= 1;
        }
        for client in &mut clients {
            let mut said = [0; 15];
            client.read_exact(&mut said).unwrap();
            assert_eq!(&said, b"HTTP/1.1 200 OK");
        }
        for (gate, _) in &gates {
            assert!(gate.most() <= slots, "{} of {slots} on {shards} shards", gate.most());
        }
        let status = daemon.status();
        let workers = status["pools"][0]["workers"].as_array().unwrap();
        let served: u64 = workers.iter().map(|it| it["served"].as_u64().unwrap()).sum();
        assert_eq!(served, 32, "wherever they were given");
        assert_eq!(daemon.metric("roadstead_requests_finished_total", &["answered"]), 32);
        drop(clients);
        assert!(daemon.stop().success());
    }
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn servers_that_are_killed_and_come_back_under_load_fail_no_request() {
    let all = [named("a"), named("b"), named("c")];
    let ports: Vec<u16> = all.iter().map(|server| server.port).collect();
    let (_folder, daemon) = serve(2, &servers(&ports));
    let (stop, asked) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        // The load ends even if the test fails.
        let _end = Stop(&stop);
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let (status, said) = ask(&daemon, "/", "");
                    assert_eq!(status, "200", "{said}");
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut all: Vec<Option<Server>> = all.into_iter().map(Some).collect();
        for which in [0, 1, 2, 0] {
            let before = asked.load(Ordering::Relaxed);
            let port = all[which].take().unwrap().kill();
            until("it goes on", || asked.load(Ordering::Relaxed) > before + 30);
            let reply = Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew".to_vec());
            all[which] = Some(Server::start_at(port, &[("/", reply)]));
            until("it serves again", || !all[which].as_ref().unwrap().seen().is_empty());
        }
    });
    assert!(daemon.stop().success());
}

/// A server that accepts a connection only when the one before has ended.
fn one_by_one() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let (mut bytes, mut seen) = ([0; 4096], Vec::new());
            while let Ok(count @ 1..) = socket.read(&mut bytes) {
                seen.extend_from_slice(&bytes[..count]);
                if seen.ends_with(b"\r\n\r\n") {
                    seen.clear();
                    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    socket.write_all(reply).unwrap();
                }
            }
        }
    });
    port
}

#[test]
fn a_link_that_one_shard_keeps_does_not_stand_in_the_way_of_another() {
    let pool = format!(
        "{}upstream.max_concurrent = 1\nkeepalive_timeout = \"10m\"",
        servers(&[one_by_one()])
    );
    let (_folder, daemon) = serve(4, &pool);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..6).for_each(|_| assert_eq!(ask(&daemon, "/", "").0, "200")));
        }
    });
    assert!(daemon.stop().success());
}

#[test]
fn what_an_operator_says_holds_on_every_shard() {
    let all = [named("a"), named("b")];
    let pool =
        format!("{}fallback = {{ line = \"fallback\" }}", servers(&[all[0].port, all[1].port]));
    let (_folder, daemon) = serve(2, &pool);
    let shares = || {
        let mut shares = BTreeMap::new();
        for _ in 0..16 {
            let (status, said) = ask(&daemon, "/", "");
            *shares.entry(format!("{status} {}", body(&said).trim_end())).or_insert(0) += 1;
        }
        shares.into_keys().collect::<Vec<String>>()
    };
    assert_eq!(shares(), ["200 a", "200 b"]);
    let name = format!("127.0.0.1:{}", all[0].port);
    ctl(&daemon, &["disable", "main", &name]);
    until("the other has all", || shares() == ["200 b"]);
    ctl(&daemon, &["fallback", "main", "on"]);
    until("all are told", || shares() == ["503 fallback"]);
    ctl(&daemon, &["fallback", "main", "off"]);
    ctl(&daemon, &["enable", "main", &name]);
    until("all is as before", || shares() == ["200 a", "200 b"]);
    assert!(daemon.stop().success());
}

#[test]
fn a_client_has_the_same_server_on_every_shard() {
    let all = [named("a"), named("b"), named("c")];
    let ports: Vec<u16> = all.iter().map(|server| server.port).collect();
    let sticky = format!("{}sticky = {{ cookie = \"worker\" }}", servers(&ports));
    let (_folder, daemon) = serve(4, &sticky);
    for _ in 0..6 {
        let (_, first) = ask(&daemon, "/", "");
        let cookie = first.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap();
        let line = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
        for _ in 0..8 {
            let (_, again) = ask(&daemon, "/", &line);
            assert_eq!(body(&again), body(&first));
            assert!(!again.contains("Set-Cookie"), "it knows already: {again}");
        }
    }
    assert!(daemon.stop().success());
    let hash = format!("{}balance = \"hash\"\nhash = \"query:k\"", servers(&ports));
    let (_folder, daemon) = serve(4, &hash);
    for key in 0..6 {
        // All except the first of these are unknown to the server, which returns an empty body.
        let target = format!("/?k={key}");
        let seen = || all.iter().map(|server| server.heads(&target).len()).collect::<Vec<_>>();
        let before = seen();
        (0..8).for_each(|_| assert_eq!(ask(&daemon, &target, "").0, "200"));
        let more: Vec<usize> = seen().iter().zip(&before).map(|(now, was)| now - was).collect();
        assert_eq!(more.iter().filter(|more| **more > 0).count(), 1, "{more:?}");
    }
    assert!(daemon.stop().success());
}

#[test]
fn a_drain_finishes_what_servers_have_from_every_shard() {
    let (gate, port) = Gate::start();
    let (_folder, mut daemon) =
        serve(2, &format!("{}upstream.max_concurrent = 6", servers(&[port])));
    let mut clients: Vec<TcpStream> = (0..16)
        .map(|_| {
            let mut client = connect(&daemon);
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            client
        })
        .collect();
    until("all are taken in", || daemon.metric("roadstead_requests_total", &[]) == 16);
    until("slots are used", || gate.held() == 6);
    let address = daemon.address().to_owned();
    daemon.signal(rustix::process::Signal::TERM);
    until("no shard listens", || TcpStream::connect(&address).is_err());
    (0..16).for_each(|_| gate.let_go());
    for client in &mut clients {
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 OK"), "{said}");
    }
    assert_eq!(gate.most(), 6);
    assert!(daemon.wait().success());
}
