//! A daemon with two shards: on either shard, a client reaches every pool, gets its own replies, and sees every limit
//! as with one shard.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use rustix::process::Signal;

use crate::client::Client;
use crate::daemon::{
    Daemon, PATIENCE, folder, is_alive, main_job, one_pool, until, worker_program,
};
use crate::http_server::Server;

const TWO: &str = "[daemon]\nshards = 2\n";

/// Returns two listeners, each with a pool. Each pool is owned by a different shard, so every client uses both shards.
fn two_pools(protocol: &str, listeners: &str, pool: &str) -> String {
    let both = ["a", "b"].map(|name| {
        format!(
            "[listener.{name}]\nlisten = \"127.0.0.1:0\"\nprotocol = \"{protocol}\"\npool = \"{name}\"\n\
             {listeners}\n[pool.{name}]\n{pool}\n"
        )
    });
    format!("{TWO}[admin]\nlisten = \"127.0.0.1:0\"\n{}", both.concat())
}

#[test]
fn every_client_reaches_pools_of_either_home_and_gets_its_own_replies_in_order() {
    let folder = folder();
    let pool = format!("{}workers = 2\n", worker_program(&["--echo"]));
    let daemon = Daemon::serve(folder.path(), &two_pools("lines", "", &pool));
    let clients = (0..20).flat_map(|_| ["a", "b"]);
    let mut clients: Vec<Client> =
        clients.map(|name| Client::connect(&daemon.listeners[name])).collect();
    for (who, client) in clients.iter_mut().enumerate() {
        let lines: String = (0..50).map(|line| format!("{who} {line}\n")).collect();
        client.send(lines);
    }
    for (who, client) in clients.iter_mut().enumerate() {
        for line in 0..50 {
            assert_eq!(client.line(), format!("{who} {line}"));
        }
    }
    // Each request is counted once, on whichever shard.
    assert_eq!(daemon.metric("roadstead_requests_total", &[]), 2_000);
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["answered"]), 2_000);
    assert_eq!(daemon.metric("roadstead_connections", &[]), 40);
    let status = daemon.status();
    assert_eq!(status["pools"].as_array().unwrap().len(), 2);
    assert!(status["pools"].as_array().unwrap().iter().all(|pool| pool["workers"][1].is_object()));
    for pool in ["a", "b"] {
        let path = format!("/ask/{pool}");
        let said = roadstead::ask::request(&daemon.admin, "POST", &path, b"inside").unwrap();
        assert_eq!(said.body, b"inside\n");
    }
    drop(clients);
    assert!(daemon.stop().success());
}

#[test]
fn the_main_job_keeps_every_acknowledged_row() {
    let folder = folder();
    let parse = format!("{}workers = 3\n", worker_program(&[]));
    let job = main_job(folder.path(), &parse, "batch = { rows = 100, timeout = \"2ms\" }\n");
    // Another pool comes first, so that the second shard owns the chain.
    let first = format!("{TWO}[pool.first]\n{}\n", worker_program(&["--echo"]));
    let daemon = Daemon::serve(folder.path(), &format!("{first}{job}"));
    let mut clients: Vec<Client> = (0..30).map(|_| daemon.connect()).collect();
    for (who, client) in clients.iter_mut().enumerate() {
        let lines: String = (0..40).map(|line| format!("{} 1 /a 200\n", who * 40 + line)).collect();
        client.send(lines);
        client.finish();
    }
    for (who, client) in clients.iter_mut().enumerate() {
        let due: Vec<String> = (0..40).map(|line| format!("ok {}", who * 40 + line)).collect();
        assert_eq!(client.rest(), due);
    }
    assert!(daemon.stop().success());
    let rows = count_rows(&folder.path().join("hits.db"));
    assert_eq!(rows, 1200);
}

/// Rows of the table of the main job.
fn count_rows(path: &std::path::Path) -> u64 {
    let target = format!("sqlite:{}", path.display());
    let text = one_pool(
        "",
        &format!("database = \"{target}\"\nquery = \"select count(*) as n from hits\"\n"),
    );
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &text);
    let said = daemon.connect().ask("{}");
    said.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[test]
fn bodies_of_many_windows_cross_both_ways_whole() {
    let server = Server::start(&[]);
    let folder = folder();
    let pool = format!("servers = [\"127.0.0.1:{}\"]", server.port);
    let listeners = "body_max = \"8MiB\"";
    let daemon = Daemon::serve(folder.path(), &two_pools("http", listeners, &pool));
    let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7 % 251) as u8).collect();
    let ask = |address: &str| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut writer = client.try_clone().unwrap();
        let sent = body.clone();
        let writing = std::thread::spawn(move || {
            writer.write_all(head.as_bytes()).unwrap();
            writer.write_all(&sent).unwrap();
        });
        let mut said = Vec::new();
        client.read_to_end(&mut said).unwrap();
        writing.join().unwrap();
        let start = said.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        assert!(said.starts_with(b"HTTP/1.1 200 "));
        assert!(said[start..] == body[..], "{} of {} bytes", said.len() - start, body.len());
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| ask(&daemon.listeners["a"]));
            scope.spawn(|| ask(&daemon.listeners["b"]));
        }
    });
    assert!(daemon.stop().success());
}

/// A server that holds every request until it is told to answer one.
#[derive(Default)]
pub(crate) struct Gate {
    held: Mutex<(u32, u32)>,
    changed: Condvar,
    most: AtomicU32,
}

impl Gate {
    pub(crate) fn start() -> (Arc<Self>, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let gate = Arc::new(Self::default());
        let gates = Arc::clone(&gate);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let gate = Arc::clone(&gates);
                std::thread::spawn(move || gate.serve(socket));
            }
        });
        (gate, port)
    }

    fn serve(&self, mut socket: TcpStream) {
        let (mut bytes, mut seen) = ([0; 4096], Vec::new());
        while let Ok(count @ 1..) = socket.read(&mut bytes) {
            seen.extend_from_slice(&bytes[..count]);
            if !seen.ends_with(b"\r\n\r\n") {
                continue;
            }
            seen.clear();
            let mut held = self.held.lock().unwrap();
            held.0 += 1;
            self.most.fetch_max(held.0, Ordering::Relaxed);
            held = self.changed.wait_while(held, |(_, go)| *go == 0).unwrap();
            *held = (held.0 - 1, held.1 - 1);
            drop(held);
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        }
    }

    /// The requests that it holds, without those that it was told to answer.
    pub(crate) fn held(&self) -> u32 {
        let held = self.held.lock().unwrap();
        held.0.saturating_sub(held.1)
    }

    /// Returns the maximum number of concurrent requests.
    pub(crate) fn most(&self) -> u32 {
        self.most.load(Ordering::Relaxed)
    }

    pub(crate) fn let_go(&self) {
        self.held.lock().unwrap().1 += 1;
        self.changed.notify_one();
    }
}

#[test]
fn slots_are_exact_for_both_shards_together_and_no_waiter_is_forgotten() {
    for limit in
        ["upstream.max_concurrent = 3", "upstream.max_concurrent = 100\nmax_concurrent = 3"]
    {
        let (gate, port) = Gate::start();
        let folder = folder();
        let pool = format!("servers = [\"127.0.0.1:{port}\"]\n{limit}");
        let daemon = Daemon::serve(folder.path(), &two_pools("http", "", &pool));
        // With one pool, the limit is the same for clients of both shards and of one.
        let mut clients: Vec<TcpStream> = (0..24)
            .map(|_| {
                let mut client = TcpStream::connect(&daemon.listeners["b"]).unwrap();
                client.set_read_timeout(Some(PATIENCE)).unwrap();
                client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
                client
            })
            .collect();
        until("all are taken in", || daemon.metric("roadstead_requests_total", &["\"b\""]) == 24);
        for left in (0..24_u32).rev() {
            until("slots are used as far as they go", || gate.held() == 3.min(left + 1));
            gate.let_go();
        }
        for client in &mut clients {
            let mut said = [0; 15];
            client.read_exact(&mut said).unwrap();
            assert_eq!(&said, b"HTTP/1.1 200 OK");
        }
        assert_eq!(gate.most.load(Ordering::Relaxed), 3, "{limit}");
        drop(clients);
        assert!(daemon.stop().success());
    }
}

#[test]
fn connections_are_limited_for_both_shards_together() {
    let folder = folder();
    // Each accepted client waits for a reply, so it is not displaced.
    let pool = "program = [\"sleep\", \"1000\"]\nworkers = 1\nstop_timeout = \"0s\"";
    let text = two_pools("lines", "connections_max = 8", pool);
    let daemon = Daemon::serve(folder.path(), &text);
    let mut clients: Vec<Client> =
        (0..20).map(|_| Client::connect(&daemon.listeners["b"])).collect();
    for client in &mut clients {
        // A rejected client may be disconnected before it sends.
        let _ = client.stream().try_clone().unwrap().write_all(b"a\n");
    }
    let of_b = |name: &str, reason: &str| daemon.metric(name, &["\"b\"", reason]);
    until("all others are turned away", || {
        // A connection is idle until its request was read.
        let refused = of_b("roadstead_connections_rejected_total", "\"connections\"");
        refused + of_b("roadstead_connections_closed_total", "\"displaced\"") == 12
    });
    assert_eq!(of_b("roadstead_connections", "{"), 8);
}

#[test]
fn programs_that_are_killed_are_replaced_whichever_shard_they_are_at_home_on() {
    let folder = folder();
    let pool = format!("{}workers = 2\nmin_uptime = \"0s\"\n", worker_program(&["--echo"]));
    let daemon = Daemon::serve(folder.path(), &two_pools("lines", "", &pool));
    for name in ["a", "b"] {
        let mut client = Client::connect(&daemon.listeners[name]);
        assert_eq!(client.ask("before"), "before");
        for pid in daemon.programs() {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        until("it is served again", || client.ask("after") == "after");
    }
    let programs = daemon.programs();
    assert!(daemon.stop().success());
    assert!(programs.iter().all(|&pid| !is_alive(pid)));
}

#[test]
fn a_connections_own_program_is_its_own_from_either_shard() {
    let folder = folder();
    let pool = "program = [\"sh\", \"-c\", \"while read x; do n=$((n+1)); echo $n $x; done\"]\n\
                dispatch = \"session\"\nworkers = 3\n";
    let daemon = Daemon::serve(folder.path(), &two_pools("lines", "", pool));
    for _ in 0..4 {
        for name in ["a", "b"] {
            let mut clients: Vec<Client> =
                (0..3).map(|_| Client::connect(&daemon.listeners[name])).collect();
            for round in 1..4 {
                for (who, client) in clients.iter_mut().enumerate() {
                    assert_eq!(client.ask(&who.to_string()), format!("{round} {who}"));
                }
            }
        }
    }
    assert!(daemon.stop().success());
}

#[test]
fn a_drain_finishes_what_either_shard_has_taken() {
    let folder = folder();
    let pool = format!("{}workers = 3\n", worker_program(&["--echo", "--misbehave", "slow=20"]));
    let daemon = Daemon::serve(folder.path(), &two_pools("lines", "", &pool));
    let clients = (0..10).flat_map(|_| ["a", "b"]);
    let mut clients: Vec<Client> =
        clients.map(|name| Client::connect(&daemon.listeners[name])).collect();
    for (who, client) in clients.iter_mut().enumerate() {
        client.send(format!("{who}\n"));
    }
    until("all are taken", || daemon.metric("roadstead_requests_total", &[]) == 20);
    let programs = daemon.programs();
    assert!(daemon.stop().success());
    for (who, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.rest(), [who.to_string()]);
    }
    assert!(programs.iter().all(|&pid| !is_alive(pid)));
}

#[test]
fn a_drain_that_takes_too_long_counts_each_request_once() {
    let folder = folder();
    let pool = worker_program(&["--misbehave", "never"]);
    let text =
        two_pools("lines", "", &pool).replace(TWO, &format!("{TWO}drain_timeout = \"200ms\"\n"));
    let daemon = Daemon::serve(folder.path(), &text);
    let mut clients = ["a", "b"].map(|name| Client::connect(&daemon.listeners[name]));
    for client in &mut clients {
        client.send("never answered\n");
    }
    until("they are with workers", || daemon.metric("roadstead_workers", &["busy"]) == 2);
    assert_eq!(daemon.stop().code(), Some(1));
    for client in &mut clients {
        let lines = client.rest();
        assert!(lines[0].starts_with("!unknown stopped "), "{lines:?}");
    }
    let log = crate::daemon::read_log(folder.path());
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains("ended with requests cut off") && last.contains("requests=2"), "{log}");
}

#[test]
fn a_request_that_crossed_has_its_whole_line_in_the_access_log() {
    let folder = folder();
    let log = "[access_log]\nto = \"file:access.log\"\n\
               format = \"{worker} {in} {out} {queue_us} {first_us} {worker_end}\"\n";
    let pool = format!("{}workers = 1\n", worker_program(&["--echo"]));
    let daemon = Daemon::serve(folder.path(), &(two_pools("lines", "", &pool) + log));
    for _ in 0..8 {
        for name in ["a", "b"] {
            assert_eq!(Client::connect(&daemon.listeners[name]).ask("hello"), "hello");
        }
    }
    assert!(daemon.stop().success());
    let text = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    assert_eq!(text.lines().count(), 16, "{text}");
    for line in text.lines() {
        let values: Vec<&str> = line.split(' ').collect();
        assert!(["a/0", "b/0"].contains(&values[0]), "{line}");
        assert_eq!((values[1], values[2], values[5]), ("5", "5", "ok"), "{line}");
        assert!(values[3].parse::<u64>().is_ok(), "{line}");
    }
}

#[test]
fn a_request_that_is_whole_only_after_the_last_word_of_its_shard_is_served() {
    let folder = folder();
    let answer = "while (<STDIN>) { print qq({\\\"status\\\":200}\\n) }";
    let pool = format!("program = [\"perl\", \"-e\", \"$| = 1; {answer}\"]\nworkers = 1\n");
    let text =
        two_pools("http", "", &pool).replace(TWO, &format!("{TWO}drain_timeout = \"10m\"\n"));
    let mut daemon = Daemon::serve(folder.path(), &text);
    let connect = |name: &str| {
        let mut client = TcpStream::connect(&daemon.listeners[name]).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha").unwrap();
        client
    };
    let clients = (0..8).flat_map(|_| ["a", "b"]);
    let mut clients: Vec<TcpStream> = clients.map(connect).collect();
    let open = || daemon.metric("roadstead_connections", &[]);
    until("all have come", || open() == 16);
    let address = daemon.listeners["a"].clone();
    daemon.signal(Signal::TERM);
    until("no shard listens", || TcpStream::connect(&address).is_err());
    for client in &mut clients {
        client.write_all(b"lf").unwrap();
        let mut said = [0; 13];
        client.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 200 ");
    }
    drop(clients);
    assert!(daemon.wait().success());
}

#[test]
fn a_reply_that_fills_the_window_of_another_shard_and_ends_leaves_its_program_readable() {
    let folder = folder();
    let program = "$| = 1; while (<STDIN>) { chomp; print 'x' x $_, \"\\n.\\n\" }";
    let pool = format!(
        "program = [\"perl\", \"-e\", {program:?}]\nstream = {{ until = \".\" }}\nworkers = 1\n"
    );
    let daemon = Daemon::serve(folder.path(), &two_pools("lines", "", &pool));
    // On either shard, one of the two pools is owned by the other.
    for _ in 0..4 {
        for name in ["a", "b"] {
            let mut client = Client::connect(&daemon.listeners[name]);
            for bytes in [300_000, 5] {
                client.send(format!("{bytes}\n"));
                assert_eq!(client.line().len(), bytes);
                assert_eq!(client.line(), ".");
            }
        }
    }
    assert!(daemon.stop().success());
}
