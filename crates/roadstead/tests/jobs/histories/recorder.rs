//! An HTTP server that stores the exact bytes of the requests of clean clients.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub(super) struct Recorder {
    pub(super) port: u16,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Recorder {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&received);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let noted = Arc::clone(&noted);
                thread::spawn(move || while serve(&socket, &noted).is_some() {});
            }
        });
        Self { port, received }
    }

    /// Returns the requests of clean clients since the last call.
    pub(super) fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.received.lock().unwrap())
    }
}

/// Serves one request after the other. Returns `None` when the connection has ended.
fn serve(socket: &TcpStream, received: &Mutex<Vec<Vec<u8>>>) -> Option<()> {
    let mut reader = BufReader::new(socket);
    loop {
        let mut raw = Vec::new();
        while !raw.ends_with(b"\r\n\r\n") {
            line(&mut reader, &mut raw)?;
        }
        let head = String::from_utf8_lossy(&raw).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let body = read_body(&head, &mut reader, &mut raw, socket)?;
        if head.contains("clean") {
            received.lock().unwrap().push(raw);
        }
        let mut writer = socket;
        writer.write_all(&reply(&head, &path, &body)).ok()?;
        match path.as_str() {
            "/d/until" => {
                let _ = socket.shutdown(std::net::Shutdown::Both);
                return None;
            }
            "/d/switch" if head.contains("pgrade: x") => {
                std::io::copy(&mut reader, &mut writer).ok()?;
                return None;
            }
            _ => {}
        }
    }
}

fn reply(head: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let shows = !head.starts_with("HEAD ");
    let with = |fields: &str, body: &[u8]| {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n");
        [head.as_bytes(), if shows { body } else { b"" }].concat()
    };
    match path {
        "/d/early" => {
            [b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n", &with("", b"early")[..]].concat()
        }
        "/d/chunks" if shows => {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n"
                .to_vec()
        }
        "/d/long" => with("", &vec![b'x'; 300_000]),
        "/d/none" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        "/d/until" => b"HTTP/1.0 200 OK\r\n\r\nall of it".to_vec(),
        "/d/switch" if head.contains("pgrade: x") => {
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n".to_vec()
        }
        _ => with(&format!("X-Path: {path}\r\n"), body),
    }
}

fn line(reader: &mut impl BufRead, raw: &mut Vec<u8>) -> Option<usize> {
    reader.read_until(b'\n', raw).ok().filter(|count| *count > 0)
}

/// Reads the body, and stores it unchanged. Sends `100 Continue` to a client that waits for it.
fn read_body(
    head: &str,
    reader: &mut impl BufRead,
    raw: &mut Vec<u8>,
    mut socket: &TcpStream,
) -> Option<Vec<u8>> {
    let lower = head.to_ascii_lowercase();
    let value =
        |name: &str| lower.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    if value("expect").is_some() {
        socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    let mut body = Vec::new();
    if let Some(length) = value("content-length") {
        body.resize(length.parse().ok()?, 0);
        reader.read_exact(&mut body).ok()?;
        raw.extend_from_slice(&body);
    } else if value("transfer-encoding").is_some() {
        loop {
            let start = raw.len();
            line(reader, raw)?;
            let size = std::str::from_utf8(&raw[start..]).ok()?.trim_end();
            let size = usize::from_str_radix(size, 16).ok()?;
            if size == 0 {
                let mut trailer = Vec::new();
                while trailer != b"\r\n" {
                    trailer.clear();
                    line(reader, &mut trailer)?;
                    raw.extend_from_slice(&trailer);
                }
                break;
            }
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            raw.extend_from_slice(&chunk);
            body.extend_from_slice(&chunk[..size]);
        }
    }
    Some(body)
}
