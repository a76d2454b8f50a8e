//! Clients that send nothing, read slowly, or read nothing, together with the load: the ledger is clean, the other
//! clients are served, and memory is limited and released.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::daemon::{Daemon, folder, main_job, read_log, until, worker_program};
use crate::times;
use crate::under_load::Load;

const CLOSED: &str = "roadstead_connections_closed_total";
/// The memory limit of the daemon in bytes.
const MEMORY_MAX: u64 = 64 << 20;
/// The memory that the daemon may occupy beyond the limit and its initial size: data of one turn of its loop, cached
/// blocks of its threads, and partly used pages of the allocator.
const OVERSHOOT: u64 = 48 << 20;
/// The part of this memory that the daemon may keep after the peak.
const KEPT_MAX: u64 = 24 << 20;

/// The main job, with further options of its listener, and more sections behind it.
fn job(folder: &Path, listener: &str, more: &str) -> String {
    let parse = format!("{}workers = 4\npipeline = 4\n", worker_program(&[]));
    let job = main_job(folder, &parse, "");
    job.replacen("pool = \"parse\"\n", &format!("pool = \"parse\"\n{listener}"), 1) + more
}

/// A listener whose clients get back what they send.
fn echo(listener: &str) -> String {
    format!(
        "[listener.echo]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"echo\"\n{listener}\n\
         [pool.echo]\n{}workers = 2\npipeline = 16\nreply_max = \"1MiB\"\n",
        worker_program(&["--echo"])
    )
}

fn answered(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_requests_finished_total", &["\"store\"", "answered"])
}

/// Waits until the load makes progress.
fn until_more(daemon: &Daemon) {
    let before = answered(daemon);
    until("rows are acknowledged", || answered(daemon) > before + 100);
}

/// Stops the load and the daemon, and compares the rows with the ledger.
fn finish(what: &str, load: Load, daemon: Daemon) {
    let (said, verdict) = load.finish();
    eprintln!("{what}\n{said}\n{verdict}");
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.acknowledged > 0);
    assert!(daemon.stop().success());
}

fn load(folder: &Path, daemon: &Daemon) -> Load {
    let load = Load::start(folder, daemon.address());
    until("the load has begun", || answered(daemon) > 100);
    load
}

#[test]
fn silent_connections_keep_nobody_out() {
    let (folder, count) = (folder(), times(50));
    let text = job(folder.path(), "connections_max = 150\n", "");
    let daemon = Daemon::serve(folder.path(), &text);
    let load = load(folder.path(), &daemon);
    let displaced = || daemon.metric(CLOSED, &["\"displaced\""]);
    let mut silent = Vec::new();
    for _ in 0..count {
        let before = displaced();
        // There is room for fifty beside the load. Each further connection displaces an earlier one.
        silent = (0..50).map(|_| TcpStream::connect(daemon.address()).unwrap()).collect::<Vec<_>>();
        until_more(&daemon);
        silent.extend((0..50).map(|_| TcpStream::connect(daemon.address()).unwrap()));
        until("others have made place", || displaced() > before);
    }
    drop(silent);
    let refused = daemon.metric("roadstead_connections_rejected_total", &["\"connections\""]);
    let closed = displaced();
    finish(
        &format!("{count} times 100 silent: {closed} displaced, {refused} refused"),
        load,
        daemon,
    );
}

/// A client that sends lines of 60 KB and reads this number of bytes every 250 ms, until its connection ends.
struct Greedy {
    stream: TcpStream,
    threads: [JoinHandle<()>; 2],
}

impl Greedy {
    fn start(address: &str, reads: usize) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // Data for the client must wait in the daemon and not in the kernel.
        rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
        let (mut writer, mut reader) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        let ended = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&ended);
        let writes = move || {
            let line = [vec![b'x'; 60_000], vec![b'\n']].concat();
            while writer.write_all(&line).is_ok() {}
            ends.store(true, Ordering::Relaxed);
        };
        let reads = move || {
            let mut bytes = vec![0; reads];
            while !ended.load(Ordering::Relaxed) {
                if !bytes.is_empty() && !matches!(reader.read(&mut bytes), Ok(1..)) {
                    return;
                }
                std::thread::park_timeout(Duration::from_millis(250));
            }
        };
        Self { stream, threads: [std::thread::spawn(writes), std::thread::spawn(reads)] }
    }

    /// Waits for the end of its connection.
    fn join(self) {
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    /// Closes the connection.
    fn leave(self) {
        // It may have been closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.join();
    }
}

#[test]
fn slow_readers_are_closed_beside_the_load() {
    let (folder, count) = (folder(), times(20));
    let text = job(folder.path(), "", &echo("send_timeout = \"1s\"\nsend_max = \"1MiB\""));
    let daemon = Daemon::serve(folder.path(), &text);
    let load = load(folder.path(), &daemon);
    for round in 0..count {
        let clients = [0, 16, 64].map(|reads| Greedy::start(&daemon.listeners["echo"], reads));
        clients.into_iter().for_each(Greedy::join);
        let closed = ["\"stalled\"", "\"slowreader\""].map(|why| daemon.metric(CLOSED, &[why]));
        assert_eq!(closed.iter().sum::<u64>(), 3 * (u64::from(round) + 1), "{closed:?}");
        until_more(&daemon);
    }
    finish(&format!("{count} times 3 slow readers"), load, daemon);
}

/// A server of HTTP that answers `/long` with 8 MiB, and anything else with two bytes.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(client));
        }
    });
    port
}

fn answer(mut client: TcpStream) {
    let (mut bytes, mut head) = ([0; 4096], Vec::new());
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        head.extend_from_slice(&bytes[..count]);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let length = if head.starts_with(b"GET /long ") { 8 << 20 } else { 2 };
        head.clear();
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let body = vec![b'k'; length];
        if client.write_all(reply.as_bytes()).and_then(|()| client.write_all(&body)).is_err() {
            return;
        }
    }
}

#[test]
fn five_slow_readers_do_not_keep_the_five_slots_of_a_server() {
    let (folder, count) = (folder(), times(20));
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
         pool = \"main\"\nsend_timeout = \"1s\"\n[pool.main]\nservers = [\"127.0.0.1:{}\"]\n\
         upstream.max_concurrent = 5\nqueue = {{ timeout = \"60s\" }}\n",
        server()
    );
    let daemon = Daemon::serve(folder.path(), &text);
    let (mut longest, closed) = (Duration::ZERO, || {
        ["\"stalled\"", "\"slowreader\""]
            .map(|why| daemon.metric(CLOSED, &[why]))
            .iter()
            .sum::<u64>()
    });
    for round in 0..count {
        let busy = || daemon.metric("roadstead_workers", &["\"busy\""]);
        let slow: Vec<_> = (0..5)
            .map(|_| {
                let mut client = TcpStream::connect(daemon.address()).unwrap();
                client.write_all(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
                client
            })
            .collect();
        until("they have the server", || {
            busy() == 1
                && daemon.metric("roadstead_requests_total", &[]) >= 5 * u64::from(round + 1)
        });
        let readers: Vec<_> = slow
            .into_iter()
            .map(|mut client| {
                std::thread::spawn(move || {
                    let mut bytes = [0; 64];
                    while matches!(client.read(&mut bytes), Ok(1..)) {
                        std::thread::park_timeout(Duration::from_millis(250));
                    }
                })
            })
            .collect();
        let begun = Instant::now();
        let mut honest = TcpStream::connect(daemon.address()).unwrap();
        honest.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        honest.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut said = String::new();
        honest.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("kk"), "{said}");
        longest = longest.max(begun.elapsed());
        until("the slow are closed", || closed() == 5 * (u64::from(round) + 1));
        drop(readers);
    }
    eprintln!(
        "{count} times five slow readers before five slots: an honest client waited {longest:.1?} at most"
    );
    assert!(daemon.stop().success());
}

/// Returns the anonymous resident memory of a process.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn memory_is_limited_and_returned_beside_the_load() {
    let (folder, count) = (folder(), times(20));
    let text = format!("[daemon]\nmemory_max = {MEMORY_MAX}\n")
        + &job(
            folder.path(),
            "",
            &echo("send_timeout = \"off\"\nsend_max = \"4MiB\"\nframe_max = \"64KiB\""),
        );
    let daemon = Daemon::serve(folder.path(), &text);
    let load = load(folder.path(), &daemon);
    let before = resident(daemon.pid());
    let mut most = before;
    for _ in 0..count {
        let closed = || daemon.metric(CLOSED, &["\"memory\""]);
        let already = closed();
        let greedy: Vec<_> = (0..60).map(|_| Greedy::start(&daemon.listeners["echo"], 0)).collect();
        until("the limit is exceeded and connections are closed", || {
            most = most.max(resident(daemon.pid()));
            closed() > already
        });
        // The load makes progress while the other clients continue.
        until_more(&daemon);
        most = most.max(resident(daemon.pid()));
        greedy.into_iter().for_each(Greedy::leave);
    }
    let exceeded = daemon.metric("roadstead_memory_limit_exceeded_total", &[]);
    let limit = before + MEMORY_MAX + OVERSHOOT;
    assert!(most <= limit, "{most} bytes of at most {limit}");
    let mut after = 0;
    until("the memory is returned", || {
        after = resident(daemon.pid());
        after <= before + KEPT_MAX
    });
    assert_eq!(daemon.metric("roadstead_memory_over_limit", &[]), 0);
    let log = read_log(folder.path());
    assert!(log.contains("is exceeded: new requests") && log.contains("is kept again"), "{log}");
    let [before, most, after] = [before, most, after].map(|bytes| bytes >> 20);
    let what = format!(
        "{count} times 60 clients that read nothing: memory_max 64 MiB exceeded {exceeded} times, \
         {before} MiB before, {most} MiB at most, {after} MiB afterwards"
    );
    finish(&what, load, daemon);
}
