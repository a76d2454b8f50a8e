//! What a request costs the allocator once all is warm: nothing. Counted is the whole process, client
//! and server included, and the usual harness allocates on a thread of its own: so this has its own.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use event::{Epoll, Loop, LoopSettings};
use gateway::metrics::Metrics;
use gateway::{Access, Fleet, Mail, Parts, Shard, Threads, Workshop};
use settings::Source;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[path = "../examples/ring/unkept.rs"]
mod unkept;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let checks = [
        ("a_line_that_a_program_answers_allocates_nothing", lines as fn()),
        ("a_request_of_http_that_a_server_answers_allocates_nothing", http),
    ];
    for (name, check) in checks {
        // A panic ends the program and is the failure.
        check();
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. {} passed; 0 failed; 0 ignored", checks.len());
}

/// No pool here has handlers.
struct Nobody;

impl Workshop for Nobody {
    fn factory(&self, pool: &settings::Pool) -> Result<Arc<dyn exchange::Factory>, String> {
        Err(format!("pool {} has no handlers", pool.name))
    }
}

/// A shard on a thread of its own, and where its listener `main` is.
fn serve(text: &str) -> (Access, TcpStream, JoinHandle<()>) {
    let source = Source { name: "test".into(), text: text.into() };
    let configuration = settings::parse(&source, &|_| None).unwrap();
    let address = event::Address::Internet("127.0.0.1:0".parse().unwrap());
    let (socket, bound) = event::bind(&address, &event::BindSettings::default()).unwrap();
    let (tell, told) = channel();
    let thread = std::thread::spawn(move || {
        let metrics = Arc::new(Metrics::new(&configuration));
        let mut turning: Loop<Epoll, Mail> =
            Loop::new(Epoll::new().unwrap(), LoopSettings::default()).unwrap();
        let fleet = Fleet::new(vec![turning.mailbox()], &configuration);
        let mut shard = Shard::new(Parts {
            configuration,
            sockets: vec![("main".to_owned(), socket)],
            workshop: Arc::new(Nobody),
            spawner: Box::new(unkept::Unkept::new(turning.mailbox())),
            runner: Box::new(Threads),
            admission: None,
            access_log: None,
            fleet: Arc::clone(&fleet),
            shard: 0,
            metrics: Arc::clone(&metrics),
            started: (Instant::now(), SystemTime::now()),
            seed: 1,
        })
        .unwrap();
        shard.start(&mut turning.calls());
        tell.send(Access::new(fleet, vec![metrics])).unwrap();
        turning.run(&mut shard).unwrap();
    });
    (told.recv().unwrap(), TcpStream::connect(bound.to_string()).unwrap(), thread)
}

/// Allocations of 1000 requests, one after the other, after 200 of the same.
fn allocations(text: &str, request: &[u8], reply: &[u8]) -> usize {
    let (access, mut client, thread) = serve(text);
    let mut said = vec![0; reply.len()];
    let mut ask = |count: usize| {
        for _ in 0..count {
            client.write_all(request).unwrap();
            client.read_exact(&mut said).unwrap();
            mask_date(&mut said);
            assert_eq!(said, reply, "{}", said.escape_ascii());
        }
    };
    ask(200);
    let region = Region::new(ALLOCATOR);
    ask(1000);
    let change = region.change();
    // Once to end in good order, and again not to wait for its workers.
    access.drain();
    access.drain();
    thread.join().unwrap();
    change.allocations + change.reallocations
}

/// Writes the same in place of a date, which is another one every second.
fn mask_date(bytes: &mut [u8]) {
    const FIELD: &[u8] = b"\r\nDate: ";
    if let Some(place) = bytes.windows(FIELD.len()).position(|part| part == FIELD) {
        let value = &mut bytes[place + FIELD.len()..];
        let end = value.iter().position(|&byte| byte == b'\r').unwrap();
        value[..end].fill(b'x');
    }
}

const LISTENER: &str = "[listener.main]\nlisten = \"127.0.0.1:0\"\npool = \"work\"\nprotocol = ";

/// What the alignment checks of two programs may allocate, however many requests there are: lists that
/// are made when a program is checked for the first time.
const CHECKS_MAX: usize = 100;

fn lines() {
    for (alignment, most) in [("off", 0), ("auto", CHECKS_MAX)] {
        let text = format!(
            "{LISTENER}\"lines\"\n[pool.work]\nprogram = [\"cat\"]\nworkers = 2\nalignment = \"{alignment}\"\n"
        );
        for line in ["short\n".to_owned(), format!("{}\n", "long ".repeat(200))] {
            let count = allocations(&text, line.as_bytes(), line.as_bytes());
            assert!(count <= most, "{alignment}, {} bytes: {count}", line.len());
        }
    }
}

fn http() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let body = "x".repeat(128);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", body.len());
    let said = format!("{head}\r\n{body}");
    // What is added to a reply allocates nothing either.
    let date = "x".repeat("Sun, 06 Nov 1994 08:49:37 GMT".len());
    let reply = format!("{head}Date: {date}\r\nVia: 1.1 roadstead\r\n\r\n{body}");
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let (mut stream, said) = (stream.unwrap(), said.clone());
            std::thread::spawn(move || {
                let mut asked = Vec::new();
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    asked.extend_from_slice(&buffer[..count]);
                    if asked.ends_with(b"\r\n\r\n") {
                        asked.clear();
                        stream.write_all(said.as_bytes()).unwrap();
                    }
                }
            });
        }
    });
    let text = format!("{LISTENER}\"http\"\n[pool.work]\nservers = [\"{address}\"]\n");
    let request = b"GET /some/path HTTP/1.1\r\nHost: there\r\nAccept: */*\r\n\r\n";
    assert_eq!(allocations(&text, request, reply.as_bytes()), 0);
}
