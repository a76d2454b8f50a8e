//! Sends a number of requests along one path through the data plane. `cargo xtask bench paths` counts the instructions.
//!
//! ```text
//! cargo run --release -p roadstead-gateway --example paths -- PATH REQUESTS
//! ```
//!
//! One client sends one request after the other and compares each reply with the first. Client and server are threads
//! of this process and do little: they read and write complete buffers.
#![allow(clippy::unwrap_used, reason = "a panic ends the measurement and says why")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use exchange::{Batch, Factory, Handler, HandlerError, Outbox, Outcome, Slice, Stop};
use gateway::HandlerRegistry;
use served::Served;

mod served;
#[path = "../ring/unkept.rs"]
mod unkept;

/// A request, and the reply of the server behind the gateway.
struct Http {
    request: String,
    reply: String,
    /// The possible ends of a request when it reaches the server.
    ends: [&'static str; 2],
}

impl Http {
    /// A reply of this number of bytes.
    fn get(bytes: usize) -> Self {
        let body = "x".repeat(bytes);
        let reply = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {bytes}\r\n\r\n{body}"
        );
        let request = "GET /some/path HTTP/1.1\r\nHost: there\r\nAccept: */*\r\n\r\n".to_owned();
        Self { request, reply, ends: ["\r\n\r\n"; 2] }
    }

    /// Bodies in chunks, in both directions. A body that arrives completely is forwarded with its length.
    fn chunked() -> Self {
        let chunk = format!("400\r\n{}\r\n", "x".repeat(1024));
        let last = format!("400\r\n{}end\r\n", "x".repeat(1021));
        let body = format!("{chunk}{chunk}{chunk}{last}0\r\n\r\n");
        let field = "Transfer-Encoding: chunked\r\n";
        Self {
            request: format!("POST /some/path HTTP/1.1\r\nHost: there\r\n{field}\r\n{body}"),
            reply: format!("HTTP/1.1 200 OK\r\n{field}\r\n{body}"),
            ends: ["end\r\n0\r\n\r\n", "end"],
        }
    }

    fn run(&self, count: usize) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let (reply, ends) = (self.reply.clone(), self.ends);
        std::thread::spawn(move || {
            for stream in server.incoming() {
                let (stream, reply) = (stream.unwrap(), reply.clone());
                std::thread::spawn(move || answer(stream, reply.as_bytes(), ends));
            }
        });
        let text = format!("{LISTENER}\"http\"\n[pool.work]\nservers = [\"{address}\"]\n");
        let served = Served::start(&text, Arc::new(Rows));
        ask(served.address, self.request.as_bytes(), self.reply.len(), count);
        served.end();
    }
}

/// Answers each request on a connection.
fn answer(mut stream: TcpStream, reply: &[u8], ends: [&str; 2]) {
    stream.set_nodelay(true).unwrap();
    let (mut asked, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        asked.extend_from_slice(&buffer[..count]);
        if ends.iter().any(|end| asked.ends_with(end.as_bytes())) {
            asked.clear();
            stream.write_all(reply).unwrap();
        }
    }
}

const LISTENER: &str = "[listener.main]\nlisten = \"127.0.0.1:0\"\npool = \"work\"\nprotocol = ";

/// A line to a program, which replies with the same line.
fn lines(count: usize) {
    let text = format!("{LISTENER}\"lines\"\n[pool.work]\nprogram = [\"cat\"]\nworkers = 1\n");
    let served = Served::start(&text, Arc::new(Rows));
    let line = format!("{}\n", "word ".repeat(10));
    ask(served.address, line.as_bytes(), line.len(), count);
    served.end();
}

/// A line to a handler, which takes it as a row and acknowledges it.
fn rows(count: usize) {
    let text = format!("{LISTENER}\"lines\"\n[pool.work]\nhandler = \"rows\"\nworkers = 1\n");
    let served = Served::start(&text, Arc::new(Rows));
    let row = b"{\"id\":1,\"path\":\"/some/path\",\"status\":200}\n";
    ask(served.address, row, b"ok 1\n".len(), count);
    served.end();
}

/// Sends a request `count` times and waits for each reply. A reply has at least `least` bytes, plus the bytes that the
/// gateway adds.
fn ask(to: SocketAddr, request: &[u8], least: usize, count: usize) {
    let mut client = TcpStream::connect(to).unwrap();
    client.set_nodelay(true).unwrap();
    let mut said = vec![0; least];
    client.write_all(request).unwrap();
    client.read_exact(&mut said).unwrap();
    if request.contains(&b'\r') {
        // The added fields are before the body, so the last bytes have not been read yet.
        let head = said.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let added = ["\r\nDate: ", "\r\nVia: "].iter().map(|field| {
            let text = String::from_utf8_lossy(&said[..head + 2]).into_owned();
            let place = text.find(field).unwrap();
            text[place + 2..].find("\r\n").unwrap() + 2
        });
        let added: usize = added.sum();
        let mut rest = vec![0; added];
        client.read_exact(&mut rest).unwrap();
        said.extend(rest);
    }
    let mut again = vec![0; said.len()];
    for _ in 1..count {
        client.write_all(request).unwrap();
        client.read_exact(&mut again).unwrap();
        // The date may differ.
        assert_eq!(said[said.len() - 5..], again[again.len() - 5..]);
    }
}

/// Accepts rows and does nothing with them.
struct Rows;

impl HandlerRegistry for Rows {
    fn factory(&self, _: &settings::Pool) -> Result<Arc<dyn Factory>, gateway::FactoryError> {
        Ok(Arc::new(Self))
    }
}

impl Factory for Rows {
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError> {
        Ok(Box::new(Self))
    }
}

impl Handler for Rows {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, _: &Stop) {
        // The turn of the shard that dispatched the row must end before the row is answered. Otherwise it is random
        // whether a request takes one turn or two.
        std::thread::sleep(Duration::from_millis(2));
        for index in 0..batch.requests.len() {
            outbox.answer(index, Outcome::Reply(Slice::from("ok 1")));
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(count) = words.get(1).and_then(|word| word.parse().ok()) else {
        eprintln!("usage: paths small|chunked|middle|large|line|row REQUESTS");
        return ExitCode::FAILURE;
    };
    match words[0] {
        "small" => Http::get(128).run(count),
        "chunked" => Http::chunked().run(count),
        "middle" => Http::get(16 << 10).run(count),
        "large" => Http::get(1 << 20).run(count),
        "line" => lines(count),
        "row" => rows(count),
        other => {
            eprintln!("there is no path `{other}`");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
