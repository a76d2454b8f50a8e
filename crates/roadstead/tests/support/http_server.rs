//! An HTTP/1 server with scripted answers, for tests of proxies.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

/// The answer to a request for a path.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Writes these bytes and keeps the connection open.
    Bytes(Vec<u8>),
    /// Writes these bytes and closes the connection.
    Last(Vec<u8>),
    /// Writes these bytes and resets the connection.
    Cut(Vec<u8>),
    /// Resets the connection.
    Reset,
    /// Never answers.
    Silence,
    /// Changes the protocol and echoes all bytes in upper case.
    Switch,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

type Answers = Arc<Mutex<BTreeMap<String, Answer>>>;

pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    answers: Answers,
    /// Open connections; `None`: the server was killed.
    open: Arc<Mutex<Option<Vec<Weak<TcpStream>>>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    /// Starts a server with these answers by path. It answers other paths with the body of the request.
    pub(crate) fn start(answers: &[(&str, Answer)]) -> Self {
        Self::start_at(0, answers)
    }

    /// Does the same on this port.
    pub(crate) fn start_at(port: u16, answers: &[(&str, Answer)]) -> Self {
        Self::start_on(SocketAddr::from(([127, 0, 0, 1], port)), answers)
    }

    /// Does the same at this address.
    pub(crate) fn start_on(address: SocketAddr, answers: &[(&str, Answer)]) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let answers: BTreeMap<String, Answer> =
            answers.iter().map(|(path, answer)| ((*path).to_owned(), answer.clone())).collect();
        let answers = Arc::new(Mutex::new(answers));
        let (noted, told, sockets) = (Arc::clone(&seen), Arc::clone(&answers), Arc::clone(&open));
        let thread = thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let socket = Arc::new(socket);
                match &mut *sockets.lock().unwrap() {
                    Some(open) => open.push(Arc::downgrade(&socket)),
                    None => return,
                }
                let (noted, answers) = (Arc::clone(&noted), Arc::clone(&told));
                thread::spawn(move || serve(&socket, &noted, &answers));
            }
        });
        Self { port, seen, answers, open, thread: Some(thread) }
    }

    /// Changes the answer for this path.
    pub(crate) fn answer(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// Stops listening and resets all connections, as if the process were killed. Returns the port, which is free
    /// again.
    pub(crate) fn kill(mut self) -> u16 {
        let open = self.open.lock().unwrap().take();
        // The thread waits for a connection, and ends with the next one.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.thread.take().unwrap().join().unwrap();
        for socket in open.into_iter().flatten().filter_map(|socket| socket.upgrade()) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.port
    }

    /// Closes all open connections, and keeps listening.
    pub(crate) fn close_all(&self) {
        let open = self.open.lock().unwrap();
        for socket in open.iter().flatten().filter_map(Weak::upgrade) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Returns the number of connections that were made to the server.
    pub(crate) fn connections(&self) -> usize {
        self.open.lock().unwrap().as_ref().map_or(0, Vec::len)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the heads that arrived for this path.
    pub(crate) fn heads(&self, path: &str) -> Vec<String> {
        let wanted = |seen: &Seen| seen.head.split(' ').nth(1) == Some(path);
        self.seen().into_iter().filter(wanted).map(|seen| seen.head).collect()
    }
}

fn serve(socket: &TcpStream, seen: &Mutex<Vec<Seen>>, answers: &Answers) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut writer = socket;
    while let Some(request) = read(&mut reader) {
        let path = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
        let head_only = request.head.starts_with("HEAD ");
        seen.lock().unwrap().push(request.clone());
        let answer = answers.lock().unwrap().get(&path).cloned();
        let sent = match answer {
            Some(Answer::Bytes(bytes)) => writer.write_all(&bytes),
            Some(Answer::Last(bytes)) => {
                let _ = writer.write_all(&bytes);
                let _ = writer.shutdown(Shutdown::Both);
                return;
            }
            Some(cut @ (Answer::Cut(_) | Answer::Reset)) => {
                if let Answer::Cut(bytes) = cut {
                    let _ = writer.write_all(&bytes);
                }
                rustix::net::sockopt::set_socket_linger(writer, Some(std::time::Duration::ZERO))
                    .unwrap();
                return;
            }
            Some(Answer::Silence) => Ok(()),
            Some(Answer::Switch) => return switch(&mut reader, &mut writer),
            None => {
                let length = request.body.len();
                let mut reply =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
                if !head_only {
                    reply.extend(&request.body);
                }
                writer.write_all(&reply)
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

fn switch(reader: &mut impl Read, writer: &mut impl Write) {
    let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    writer.write_all(head.as_bytes()).unwrap();
    let mut bytes = [0; 100];
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        writer.write_all(&bytes[..count].to_ascii_uppercase()).unwrap();
    }
}

fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0).map(|_| line)
}

fn read(reader: &mut impl BufRead) -> Option<Seen> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push_str(&line(reader)?);
    }
    let lower = head.to_ascii_lowercase();
    let value =
        |name: &str| lower.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let mut body = Vec::new();
    if let Some(length) = value("content-length") {
        body.resize(length.parse().ok()?, 0);
        reader.read_exact(&mut body).ok()?;
    } else if value("transfer-encoding").is_some() {
        loop {
            let size = usize::from_str_radix(line(reader)?.trim_end(), 16).ok()?;
            if size == 0 {
                while line(reader)? != "\r\n" {}
                break;
            }
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            body.extend(&chunk[..size]);
        }
    }
    Some(Seen { head, body })
}
