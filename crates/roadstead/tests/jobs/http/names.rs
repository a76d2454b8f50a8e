//! Servers with host names: lookups, and what happens to clients when the address changes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use roadstead::embed::{Embed, Running};

use super::{read_until, serve_pool, talk};
use crate::daemon::{BINARY, Daemon, PATIENCE, folder, until};
use crate::http_server::{Answer, Server};

fn named(name: &str) -> Server {
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{name}");
    Server::start(&[("/", Answer::Bytes(reply.into_bytes())), ("/tunnel", Answer::Switch)])
}

fn address(server: &Server) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], server.port))
}

/// Opens a persistent connection.
fn client(running: &Running) -> TcpStream {
    TcpStream::connect(running.address("main").unwrap()).unwrap()
}

/// Returns the name of the server that answers.
fn who(client: &mut TcpStream) -> String {
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    client.read_exact(&mut byte).unwrap();
    char::from(byte[0]).to_string()
}

/// The current address of a name, and the number of lookups.
#[derive(Default)]
struct Zone {
    at: Mutex<Vec<SocketAddr>>,
    asked: AtomicUsize,
}

impl Zone {
    fn set(&self, at: &[SocketAddr]) {
        *self.at.lock().unwrap() = at.to_vec();
    }

    fn look_up(&self) -> io::Result<Vec<SocketAddr>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let at = self.at.lock().unwrap().clone();
        if at.is_empty() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(at) }
    }

    /// Waits for a complete new lookup: the second one from now.
    fn asked_again(&self) {
        let before = self.asked.load(Ordering::Relaxed);
        until("it is looked up again", || self.asked.load(Ordering::Relaxed) >= before + 2);
    }
}

fn moves_on(shards: u32) {
    let text = format!(
        "[daemon]\nshards = {shards}\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"http\"\npool = \"main\"\n\
         [pool.main]\nservers = [\"App.example:80\"]\nresolve_interval = \"1s\"\n\
         health_check = {{ check = \"tcp\", interval = \"10ms\" }}\n"
    );
    let [a, b] = ["a", "b"].map(named);
    let zone = Arc::new(Zone::default());
    let asked = Arc::clone(&zone);
    let embed = Embed::from_text(&text).unwrap().lookup(move |name| {
        assert_eq!((name.host.as_str(), name.port), ("app.example", 80));
        asked.look_up()
    });
    zone.set(&[address(&a), address(&b)]);
    let running = embed.start().unwrap();
    let mut clients: Vec<_> = (0..8).map(|_| client(&running)).collect();
    assert!(clients.iter_mut().all(|it| who(it) == "a"));
    let mut tunnel = client(&running);
    tunnel
        .write_all(b"GET /tunnel HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        .unwrap();
    read_until(&mut tunnel, "\r\n\r\n");

    zone.set(&[address(&b), address(&a)]);
    zone.asked_again();
    assert!(clients.iter_mut().all(|it| who(it) == "a"), "it still has the address in use");

    zone.set(&[address(&b)]);
    until("all are answered by the other", || clients.iter_mut().all(|it| who(it) == "b"));
    tunnel.write_all(b"still").unwrap();
    assert_eq!(read_until(&mut tunnel, "STILL"), "STILL", "who is busy is not cut off");
    drop(tunnel);

    // No server listens at the old address any more, and health checks use the new one.
    a.kill();
    zone.set(&[]);
    zone.asked_again();
    assert!(clients.iter_mut().all(|it| who(it) == "b"), "a failure changes nothing");
    let status = running.status().unwrap();
    assert_eq!(status.pools[0].places[0].name, "app.example:80");
    assert_eq!(status.pools[0].places[0].health, "up");
    drop(clients);
    assert!(running.drain().is_clean());
}

#[test]
fn a_name_that_has_another_address_takes_its_clients_along() {
    moves_on(1);
}

#[test]
fn every_shard_hears_that_a_name_has_another_address() {
    moves_on(2);
}

/// Returns a listener with a full backlog: connecting to it gets no answer.
fn full() -> (event::Fd, TcpStream, SocketAddr) {
    let settings = event::BindSettings { backlog: 0, ..event::BindSettings::default() };
    let address = event::Address::Internet(SocketAddr::from(([127, 0, 0, 1], 0)));
    let (listener, bound) = event::bind(&address, &settings).unwrap();
    let event::Address::Internet(at) = bound else { panic!("{bound:?}") };
    (listener, TcpStream::connect(at).unwrap(), at)
}

fn connecting_goes_along(shards: u32) {
    let text = format!(
        "[daemon]\nshards = {shards}\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"http\"\npool = \"main\"\n[pool.main]\nservers = [\"app.example:80\"]\n\
         resolve_interval = \"1s\"\nconnect_timeout = \"1h\"\nresponse_timeout = \"1h\"\n"
    );
    let (b, (_listener, _waits, nowhere)) = (named("b"), full());
    let zone = Arc::new(Zone::default());
    let asked = Arc::clone(&zone);
    zone.set(&[nowhere]);
    let embed = Embed::from_text(&text).unwrap().lookup(move |_| asked.look_up());
    let running = embed.start().unwrap();
    let mut clients: Vec<_> = (0..6).map(|_| client(&running)).collect();
    for client in &mut clients {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi").unwrap();
    }
    let connecting = || running.status().unwrap().pools[0].workers[0].in_flight;
    until("all wait for a connection", || connecting() == 6);
    zone.set(&[address(&b)]);
    for client in &mut clients {
        let said = read_until(client, "b");
        assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    }
    assert_eq!(b.seen().len(), 6, "each went once");
    assert!(b.seen().iter().all(|seen| seen.body == b"hi"));
    drop(clients);
    assert!(running.drain().is_clean());
}

#[test]
fn who_still_connects_to_the_old_address_of_a_name_goes_to_the_new_one() {
    connecting_goes_along(1);
    connecting_goes_along(2);
}

#[test]
fn a_look_up_that_panics_changes_nothing_and_the_next_is_made() {
    let text = "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
                [pool.main]\nservers = [\"app.example:80\"]\nresolve_interval = \"1s\"\n";
    let [a, b] = ["a", "b"].map(named);
    let zone = Arc::new(Zone::default());
    zone.set(&[address(&a)]);
    let (asked, panics) = (Arc::clone(&zone), Arc::new(AtomicUsize::new(0)));
    let planted = Arc::clone(&panics);
    let embed = Embed::from_text(text).unwrap().lookup(move |_| {
        let found = asked.look_up();
        assert_eq!(planted.load(Ordering::Relaxed), 0, "planted");
        found
    });
    let running = embed.start().unwrap();
    let mut client = client(&running);
    assert_eq!(who(&mut client), "a");
    panics.store(1, Ordering::Relaxed);
    zone.set(&[address(&b)]);
    zone.asked_again();
    assert_eq!(who(&mut client), "a");
    panics.store(0, Ordering::Relaxed);
    until("it is looked up as before", || who(&mut client) == "b");
    drop(client);
    assert!(running.drain().is_clean());
}

#[test]
fn a_name_is_looked_up_by_the_rules_of_the_system() {
    // `localhost` in lower case is treated as an address: nothing is looked up.
    let first = ("localhost", 0).to_socket_addrs().unwrap().next().unwrap();
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".to_vec();
    let server = Server::start_on(first, &[("/", Answer::Bytes(reply))]);
    let pool = format!("servers = [\"LocalHost:{}\"]", server.port);
    let (_folder, daemon) = serve_pool("", &pool);
    let said = talk(&daemon, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(said.ends_with('a'), "{said}");
    let name = daemon.status()["pools"][0]["workers"][0]["name"].clone();
    assert_eq!(name, format!("main/localhost:{}", server.port));
    assert!(daemon.stop().success());
}

/// No resolver finds this name (RFC 6761 §6.4), and the lookup is fast.
const NOBODY: &str = "servers = [{ address = \"nobody.invalid:80\" }]";
const SOON: (&str, &str) = ("RES_OPTIONS", "timeout:1 attempts:1");

#[test]
fn a_name_without_an_address_is_told_at_the_start_and_not_by_a_check() {
    let folder = folder();
    let text = format!(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
         [pool.main]\n{NOBODY}\n"
    );
    let file = folder.path().join("roadstead.toml");
    std::fs::write(&file, text).unwrap();
    let run = |word: &str| {
        let mut command = Command::new(BINARY);
        command.arg(word).arg(&file).env(SOON.0, SOON.1).output().unwrap()
    };
    assert!(run("check").status.success(), "it needs no network");
    let out = run("serve");
    assert!(!out.status.success() && out.stdout.is_empty());
    let said = String::from_utf8(out.stderr).unwrap();
    let expected = "pool `main`: `nobody.invalid:80` cannot be looked up: ";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn settings_with_a_name_that_has_no_address_are_not_taken_over() {
    let server = named("a");
    let folder = folder();
    let text = |servers: &str| {
        format!(
            "[admin]\nlisten = \"127.0.0.1:0\"\n[daemon]\nshards = 1\n[listener.main]\n\
             listen = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n[pool.main]\n{servers}\n"
        )
    };
    let mut text_now = text(&format!("servers = [\"127.0.0.1:{}\"]", server.port));
    let daemon = Daemon::serve_with(folder.path(), &text_now, &[SOON]);
    Daemon::rewrite(folder.path(), &text(NOBODY));
    let said = daemon.reload().unwrap_err();
    assert!(said.contains("cannot be looked up") && said.contains(":10:"), "{said}");
    let get = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert!(talk(&daemon, get).ends_with('a'));
    // The first host name of a daemon that had none.
    let first = ("localhost", 0).to_socket_addrs().unwrap().next().unwrap();
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb".to_vec();
    let other = Server::start_on(first, &[("/", Answer::Bytes(reply))]);
    text_now = text(&format!("servers = [\"LOCALHOST:{}\"]", other.port));
    Daemon::rewrite(folder.path(), &text_now);
    daemon.reload().unwrap();
    until("the other serves", || talk(&daemon, get).ends_with('b'));
    assert!(daemon.stop().success());
}
