//! Checks that a request causes no allocation once everything is warm. The allocations of the whole process are
//! counted, including those of client and server. The usual test harness allocates on a separate thread, so this test
//! has its own harness.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use gateway::HandlerRegistry;
use served::Served;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[path = "../examples/paths/served.rs"]
mod served;
#[path = "../examples/ring/unkept.rs"]
mod unkept;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let checks = [
        ("a_line_that_a_program_answers_allocates_nothing", lines as fn()),
        ("a_thousand_lines_at_once_allocate_nothing", many_lines),
        ("requests_of_http_that_a_server_answers_allocate_nothing", http),
    ];
    for (name, check) in checks {
        // A panic ends the program and so fails the test.
        check();
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. {} passed; 0 failed; 0 ignored", checks.len());
}

/// A registry without handlers.
struct Nobody;

impl HandlerRegistry for Nobody {
    fn factory(
        &self,
        pool: &settings::Pool,
    ) -> Result<Arc<dyn exchange::Factory>, gateway::FactoryError> {
        Err(format!("pool {} has no handlers", pool.name).into())
    }
}

/// Returns the allocations of 1000 requests, one after the other, after 200 equal requests.
fn allocations(text: &str, request: &[u8], reply: &[u8]) -> usize {
    let served = Served::start(text, Arc::new(Nobody));
    let mut client = TcpStream::connect(served.address).unwrap();
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
    served.end();
    change.allocations + change.reallocations
}

/// The number of clients that have a request in flight at the same time.
const MANY: usize = 1000;
/// The number of rounds before the allocations are counted, and the number of counted rounds.
const ROUNDS: [usize; 2] = [20, 10];

/// Returns the allocations of rounds in which each of [`MANY`] clients sends a request before one reads its reply.
fn allocations_at_once(text: &str, request: &[u8], reply: &[u8]) -> usize {
    let served = Served::start(text, Arc::new(Nobody));
    let connect = |_| TcpStream::connect(served.address).unwrap();
    let mut clients: Vec<TcpStream> = (0..MANY).map(connect).collect();
    let mut said = vec![0; reply.len()];
    let mut ask = |rounds: usize| {
        for _ in 0..rounds {
            clients.iter_mut().for_each(|client| client.write_all(request).unwrap());
            for client in &mut clients {
                client.read_exact(&mut said).unwrap();
                mask_date(&mut said);
                assert_eq!(said, reply, "{}", said.escape_ascii());
            }
        }
    };
    let [warm, counted] = ROUNDS;
    ask(warm);
    let region = Region::new(ALLOCATOR);
    ask(counted);
    let change = region.change();
    drop(clients);
    served.end();
    change.allocations + change.reallocations
}

/// Replaces a date, which changes every second, by a constant.
fn mask_date(bytes: &mut [u8]) {
    const FIELD: &[u8] = b"\r\nDate: ";
    if let Some(place) = bytes.windows(FIELD.len()).position(|part| part == FIELD) {
        let value = &mut bytes[place + FIELD.len()..];
        let end = value.iter().position(|&byte| byte == b'\r').unwrap();
        value[..end].fill(b'x');
    }
}

const LISTENER: &str = "[listener.main]\nlisten = \"127.0.0.1:0\"\npool = \"work\"\nprotocol = ";

/// The maximum number of allocations of the alignment checks of two programs, for any number of requests: the lists
/// that are created when a program is checked for the first time.
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

fn many_lines() {
    let text = format!(
        "{LISTENER}\"lines\"\n[pool.work]\nprogram = [\"cat\"]\nworkers = 2\nalignment = \"off\"\n\
         queue = {{ max_requests = 4000 }}\n"
    );
    assert_eq!(allocations_at_once(&text, b"short\n", b"short\n"), 0);
}

fn http() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let body = "x".repeat(128);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", body.len());
    let said = format!("{head}\r\n{body}");
    // The fields that are added to a reply must not allocate either.
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
    let text = format!(
        "{LISTENER}\"http\"\n[pool.work]\nservers = [\"{address}\"]\nupstream.max_concurrent = {MANY}\n"
    );
    let request = b"GET /some/path HTTP/1.1\r\nHost: there\r\nAccept: */*\r\n\r\n";
    assert_eq!(allocations(&text, request, reply.as_bytes()), 0);
    // The number of requests in flight per turn differs between the rounds, so buffers may still grow a few times.
    let count = allocations_at_once(&text, request, reply.as_bytes());
    assert!(count <= MANY * ROUNDS[1] / 4, "{count}");
}
