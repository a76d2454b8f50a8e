//! Host names of servers that change their addresses during reloads, on several shards.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use event::Epoll;
use gateway::{Lookup, ShardMail};

use super::*;
use crate::binding::bind_all;
use crate::embed::NoPrograms;
use crate::handler_registry::Handlers;
use crate::shards::{Common, EventLoops};

/// Starts a server that answers each request with one letter.
fn server(letter: char) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let (mut seen, mut bytes) = (Vec::new(), [0; 1024]);
                while let Ok(count @ 1..) = socket.read(&mut bytes) {
                    seen.extend_from_slice(&bytes[..count]);
                    if seen.ends_with(b"\r\n\r\n") {
                        seen.clear();
                        let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{letter}");
                        if socket.write_all(reply.as_bytes()).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    address
}

/// Returns the letter of the server that answers a client on a persistent connection.
fn who(client: &mut TcpStream) -> char {
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let (mut said, mut byte) = (Vec::new(), [0]);
    while !said.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).unwrap();
        said.push(byte[0]);
    }
    client.read_exact(&mut byte).unwrap();
    let said = String::from_utf8(said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    char::from(byte[0])
}

fn configuration(shards: u32, servers: &str, more: &str) -> String {
    format!(
        "[daemon]\nshards = {shards}\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"http\"\npool = \"main\"\n[pool.main]\nservers = [{servers}]\n\
         resolve_interval = \"1s\"\n{more}\n"
    )
}

/// Stops the daemon and its clients, also when a test fails.
struct Ends<'a>(&'a AtomicBool, &'a Fleet);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.send_to_all(|| ShardMail::Drain);
    }
}

/// Reloads while a name changes between two addresses: no request fails, and finally all shards use the current
/// address.
fn moves_while_the_file_is_read_again(shards: u32) {
    const NAME: &str = "\"app.example:80\"";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("roadstead.toml");
    std::fs::write(&file, configuration(shards, NAME, "")).unwrap();
    let serving = settings::load(&file).unwrap();
    let both = ['a', 'b'].map(server);
    // The index of the server that the name refers to. The result of a lookup may be outdated a moment later.
    let at = Arc::new(AtomicU32::new(0));
    let looked = Arc::clone(&at);
    let lookup: Lookup =
        Arc::new(move |_| Ok(vec![both[looked.load(Ordering::Relaxed) as usize % 2]]));
    let loops = EventLoops::new(&serving, Epoll::new, Some(lookup)).unwrap();
    loops.find_names(&serving).unwrap();
    let fleet = Arc::clone(loops.fleet());
    let (sockets, addresses, _files) = bind_all(&serving).unwrap();
    let handler_registry: Arc<dyn HandlerRegistry> = Arc::new(Handlers);
    let reloader = Reloader::new(
        file.clone(),
        serving.clone(),
        Arc::clone(&fleet),
        Arc::clone(&handler_registry),
    );
    let common = Common {
        configuration: serving,
        sockets,
        handler_registry,
        spawner: Box::new(NoPrograms),
        admission: None,
        access_log: None,
    };
    let mut shard_threads = loops.build(common).unwrap();
    shard_threads.start();
    let address = addresses[0].1.clone();
    let (stop, answered) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let daemon = scope.spawn(move || shard_threads.run());
        let ends = Ends(&stop, &fleet);
        let connect = || {
            let client = TcpStream::connect(&address).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            client
        };
        for _ in 0..6 {
            let (mut client, stop, answered) = (connect(), &stop, &answered);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    assert!(matches!(who(&mut client), 'a' | 'b'));
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let direct = format!("\"{}\"", both[0]);
        let named = |more: &str| configuration(shards, NAME, more);
        let variants = [
            named("balance = \"random\""),
            named("health_check = { check = \"tcp\", interval = \"20ms\" }"),
            configuration(shards, &direct, ""),
            named("slow_start = \"10ms\""),
            configuration(shards, &format!("{direct}, {NAME}"), ""),
        ];
        for (round, variant) in variants.iter().cycle().take(60).enumerate() {
            let before = answered.load(Ordering::Relaxed);
            if round % 3 == 0 {
                at.fetch_add(1, Ordering::Relaxed);
            }
            std::fs::write(&file, variant).unwrap();
            reloader.reload().unwrap();
            while answered.load(Ordering::Relaxed) < before + 12 {
                assert!(!daemon.is_finished());
                std::thread::yield_now();
            }
        }
        // All servers are given by name, and the name refers to the second server: each shard finds it and stays.
        std::fs::write(&file, named("")).unwrap();
        reloader.reload().unwrap();
        at.store(1, Ordering::Relaxed);
        let mut clients: Vec<TcpStream> = (0..16).map(|_| connect()).collect();
        let begun = std::time::Instant::now();
        while !clients.iter_mut().all(|client| who(client) == 'b') {
            assert!(begun.elapsed() < Duration::from_secs(30), "a shard did not hear of it");
        }
        // The result of the last lookup is kept for a new configuration: no shard returns to the first server.
        std::fs::write(&file, named("balance = \"random\"")).unwrap();
        reloader.reload().unwrap();
        assert!(clients.iter_mut().all(|client| who(client) == 'b'));
        drop(ends);
        drop(clients);
        assert_eq!(daemon.join().unwrap().unwrap(), gateway::DrainResult::default());
    });
}

#[test]
fn a_name_may_move_while_the_file_is_read_again() {
    for shards in [1, 2, 4] {
        moves_while_the_file_is_read_again(shards);
    }
}
