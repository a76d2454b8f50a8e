//! An HTTP server in a process: this test program is started again as the server.
//!
//! It answers `/ID/KIND` with a body that begins with the id. Before it answers, it records each effect in a file. A
//! share of its answers is wrong, in every possible way.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Its address, the file for its records, and the number of wrong answers per thousand.
const VARIABLE: &str = "ROADSTEAD_TEST_SERVER";
/// How long a slow answer takes.
const SLOW: Duration = Duration::from_millis(50);

pub(super) struct Server {
    pub(super) port: u16,
    child: Option<Child>,
    done: PathBuf,
    faults: u32,
}

impl Server {
    pub(super) fn start(folder: &Path, faults: u32) -> Self {
        let mut server = Self { port: 0, child: None, done: folder.join("done"), faults };
        server.restart();
        server
    }

    /// Restarts the server at the same address, and waits until it listens.
    pub(super) fn restart(&mut self) {
        let told = format!("{} {} {}", self.port, self.faults, self.done.display());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "web::server::serves_if_it_is_told_to", "--nocapture"])
            .env(VARIABLE, told)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("listens on ")?;
            port.parse().ok()
        });
        self.port = port.expect("the server listens");
        self.child = Some(child);
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Stops the server if it runs, and starts it otherwise.
    pub(super) fn turn(&mut self) {
        if self.child.is_some() { self.kill() } else { self.restart() }
    }

    pub(super) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn serves_if_it_is_told_to() {
    let Ok(told) = std::env::var(VARIABLE) else { return };
    let mut words = told.splitn(3, ' ');
    let port: u16 = words.next().unwrap().parse().unwrap();
    let faults: u32 = words.next().unwrap().parse().unwrap();
    let done = PathBuf::from(words.next().unwrap());
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let port = listener.local_addr().unwrap().port();
    println!("listens on {port}");
    for socket in listener.incoming().map_while(Result::ok) {
        let done = OpenOptions::new().create(true).append(true).open(&done).unwrap();
        thread::spawn(move || serve(&socket, done, faults, port));
    }
}

fn serve(socket: &TcpStream, mut done: File, faults: u32, port: u16) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    let mut writer = socket;
    loop {
        let (id, kind, body) = read(&mut reader)?;
        if kind == "check" {
            writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
            continue;
        }
        // One write to a file in append mode is not mixed with writes of other processes.
        done.write_all(format!("{kind} {id} {port}\n").as_bytes()).ok()?;
        if kind == "slow" {
            thread::park_timeout(SLOW);
        }
        let reply = reply(id, body.len());
        if let Some(way) = way(id, faults) {
            return fail(socket, &reply, way);
        }
        writer.write_all(&reply).ok()?;
    }
}

/// Returns the fault of the answer to a request, for a server with this number of faults per thousand. Faults are
/// spread over all kinds of requests.
pub(super) fn way(id: u64, faults: u32) -> Option<u64> {
    let chance = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (chance % 1000 < u64::from(faults)).then_some(chance / 1000 % 5)
}

/// Ends the connection with a wrong answer.
fn fail(mut socket: &TcpStream, reply: &[u8], way: u64) -> Option<()> {
    let half = reply.len() - 100;
    let reset = |socket| rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO)).ok();
    match way {
        // No bytes, ended by a close or by a reset.
        0 => {}
        1 => reset(socket)?,
        // The beginning of the correct answer, ended in the same ways.
        2 => socket.write_all(&reply[..half]).ok()?,
        3 => {
            socket.write_all(&reply[..half]).ok()?;
            reset(socket)?;
        }
        _ => socket.write_all(b"HTTP/1.1 2OO OK\nContent-Length: -1\n\n").ok()?,
    }
    socket.shutdown(Shutdown::Both).ok()
}

/// Returns the body of this length for a request. Its beginning is unique.
pub(super) fn body_of(id: u64, length: usize) -> Vec<u8> {
    format!("{id} ").into_bytes().into_iter().cycle().take(length).collect()
}

fn reply(id: u64, sent: usize) -> Vec<u8> {
    let body = body_of(id, 1024 + sent);
    let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    reply.reserve(body.len());
    let mut reply = reply.into_bytes();
    reply.extend(body);
    reply
}

/// A request: its id, its kind, its body.
fn read(reader: &mut impl BufRead) -> Option<(u64, String, Vec<u8>)> {
    let (mut line, mut target, mut length) = (String::new(), String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let text = line.trim_end();
        if target.is_empty() {
            text.split(' ').nth(1)?.clone_into(&mut target);
        } else if text.is_empty() {
            break;
        } else if let Some((name, value)) = text.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (id, kind) = target.strip_prefix('/')?.split_once('/')?;
    Some((id.parse().ok()?, kind.to_owned(), body))
}
