//! Limits that change while requests run. A server counts its concurrent requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use super::{connect, read_until};
use crate::daemon::{Daemon, folder, until};

/// A server that holds every request until it is told to answer one.
#[derive(Default)]
struct Counter {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// The current limit.
    limit: u32,
    held: u32,
    /// The number of requests to answer.
    go: u32,
    /// Requests that exceeded the limit when they arrived.
    over: u32,
    came: u32,
}

impl Counter {
    fn start() -> (Arc<Self>, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let counter = Arc::new(Self::default());
        let counters = Arc::clone(&counter);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let counter = Arc::clone(&counters);
                std::thread::spawn(move || counter.serve(socket));
            }
        });
        (counter, port)
    }

    fn serve(&self, mut socket: TcpStream) {
        let (mut bytes, mut seen) = ([0; 4096], Vec::new());
        while let Ok(count @ 1..) = socket.read(&mut bytes) {
            seen.extend_from_slice(&bytes[..count]);
            if !seen.ends_with(b"\r\n\r\n") {
                continue;
            }
            seen.clear();
            let mut counts = self.counts.lock().unwrap();
            counts.held += 1;
            counts.came += 1;
            counts.over += u32::from(counts.held > counts.limit);
            counts = self.changed.wait_while(counts, |counts| counts.go == 0).unwrap();
            counts.go -= 1;
            counts.held -= 1;
            drop(counts);
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        }
    }

    fn counts(&self) -> Counts {
        *self.counts.lock().unwrap()
    }

    fn limit(&self, limit: u32) {
        self.counts.lock().unwrap().limit = limit;
    }

    fn let_go(&self) {
        self.counts.lock().unwrap().go += 1;
        self.changed.notify_one();
    }
}

/// Clients send one request each, and many wait. Meanwhile the limit is raised and lowered.
fn changes_while_requests_run(shards: u32, option: &str) {
    const CLIENTS: u32 = 40;
    let (server, port) = Counter::start();
    let text = |limit: u32| {
        format!(
            "[daemon]\nshards = {shards}\n[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\n\
             listen = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n[pool.main]\n\
             servers = [\"127.0.0.1:{port}\"]\nqueue = {{ timeout = \"1h\" }}\nresponse_timeout = \"1h\"\n\
             {option} = {limit}\n"
        )
    };
    let folder = folder();
    server.limit(3);
    let daemon = Daemon::serve(folder.path(), &text(3));
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(&daemon)).collect();
    for client in &mut clients {
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    }
    let full = |limit: u32| {
        until("all slots are in use", || server.counts().held == limit);
    };
    full(3);
    for limit in [7, 2, 5, 1, 6, 4] {
        let before = server.counts();
        if limit > before.held {
            server.limit(limit);
        }
        Daemon::rewrite(folder.path(), &text(limit));
        daemon.reload().unwrap();
        // None was in flight to the server: all slots were in use.
        server.limit(limit);
        // The excess requests end first, and no request replaces them.
        for held in (limit..before.held).rev() {
            server.let_go();
            until("one has ended", || server.counts().held == held);
            assert_eq!(server.counts().came, before.came);
        }
        full(limit);
        for _ in 0..2 {
            let before = server.counts();
            server.let_go();
            until("the next has come", || server.counts().came == before.came + 1);
        }
        full(limit);
    }
    for _ in server.counts().came - server.counts().held..CLIENTS {
        server.let_go();
    }
    for client in &mut clients {
        assert!(read_until(client, "ok").starts_with("HTTP/1.1 200 OK\r\n"));
    }
    let counts = server.counts();
    assert_eq!((counts.over, counts.came), (0, CLIENTS), "{option} on {shards} shards: {counts:?}");
    drop(clients);
    assert!(daemon.stop().success());
}

#[test]
fn slots_of_a_pool_change_by_a_reload_while_requests_run_and_are_never_more() {
    changes_while_requests_run(1, "max_concurrent");
    changes_while_requests_run(2, "max_concurrent");
}

/// Each of two servers has its own slots, and both are full.
fn each_server_has_its_own(shards: u32) {
    const CLIENTS: usize = 24;
    let [(one, first), (other, second)] = [Counter::start(), Counter::start()];
    let text = format!(
        "[daemon]\nshards = {shards}\n[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\n\
         listen = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n[pool.main]\n\
         servers = [{{ address = \"127.0.0.1:{first}\", max_concurrent = 1 }}, \"127.0.0.1:{second}\"]\n\
         upstream.max_concurrent = 5\nqueue = {{ timeout = \"1h\" }}\nresponse_timeout = \"1h\"\n"
    );
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &text);
    one.limit(1);
    other.limit(5);
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(&daemon)).collect();
    for client in &mut clients {
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    }
    let came = || (one.counts().came + other.counts().came) as usize;
    let held = || (one.counts().held, other.counts().held);
    for answered in 0..CLIENTS {
        let expected = CLIENTS.min(answered + 6);
        until("all slots are in use", || came() == expected);
        let server = if answered % 2 == 0 && held().0 > 0 || held().1 == 0 { &one } else { &other };
        let before = server.counts().held;
        server.let_go();
        // Another request may already have replaced it.
        until("one has ended", || server.counts().go == 0 && server.counts().held <= before);
    }
    for client in &mut clients {
        assert!(read_until(client, "ok").starts_with("HTTP/1.1 200 OK\r\n"));
    }
    for server in [&one, &other] {
        let counts = server.counts();
        assert!(counts.over == 0 && counts.came > 0, "{shards} shards: {counts:?}");
    }
    drop(clients);
    assert!(daemon.stop().success());
}

#[test]
fn a_server_has_slots_of_its_own_that_are_never_exceeded_on_any_number_of_shards() {
    each_server_has_its_own(1);
    each_server_has_its_own(2);
}

#[test]
fn slots_of_a_server_change_by_a_reload_while_requests_run_and_are_never_more() {
    changes_while_requests_run(1, "upstream.max_concurrent");
    changes_while_requests_run(2, "upstream.max_concurrent");
}
