//! A running proxy with its server and its clients.
//!
//! All processes of the proxy use one core; the server and the clients share the other.

use super::subject::Subject;
use crate::bench::child::{Child, wait_until};
use crate::bench::ground::Ground;
use crate::bench::server::Server;
use crate::shell::{self, Failure, command};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ChildStdout;

/// A running proxy.
#[derive(Debug)]
pub(super) struct Running {
    proxy: Child,
    origin: Server,
    address: String,
    cookie: Option<&'static str>,
}

impl Running {
    /// Starts the proxy with its server. `below` is the command line of a tool that observes the proxy, if there is
    /// one.
    pub(super) fn start(
        ground: &Ground,
        subject: &Subject,
        below: &[&str],
    ) -> Result<Self, Failure> {
        let mut origin = command("taskset", ["-c", "1"]);
        origin.arg(ground.example("http_origin")).arg("0");
        let origin = ground.start(origin, "origin")?;
        let server = origin.address.rsplit(':').next().unwrap_or_default().to_owned();
        let port = free_port().map_err(Failure::at("no port"))?;
        let folder = ground.folder.display().to_string();
        let fill = |text: &str| {
            text.replace("@PORT@", &port.to_string())
                .replace("@SERVER@", &server)
                .replace("@FOLDER@", &folder)
        };
        if let Some((text, file)) = &subject.config {
            shell::write(file.as_ref(), &fill(text))?;
        }
        let mut command = command("taskset", ["-c", subject.cores]);
        command.current_dir(&ground.root).args(below);
        let words = if below.is_empty() { &subject.words } else { &subject.below };
        command.args(words.iter().map(|word| fill(word)));
        let proxy = Child::start(command, Some(&ground.folder.join("proxy.log")))?;
        let running =
            Self { proxy, origin, address: format!("127.0.0.1:{port}"), cookie: subject.cookie };
        if !wait_until(|| TcpStream::connect(&running.address).is_ok()) {
            return Err(running.proxy.failed("does not listen"));
        }
        Ok(running)
    }

    /// Returns all processes of the proxy, including the master or supervisor, because it belongs to the cost.
    pub(super) fn processes(&self) -> Vec<u32> {
        self.proxy.family()
    }

    /// Returns the process of the server.
    pub(super) fn origin(&self) -> u32 {
        self.origin.process()
    }

    /// Returns the number of connections that the server has accepted so far.
    pub(super) fn accepted(&self) -> Result<u64, Failure> {
        let ask = || -> io::Result<String> {
            let mut stream = TcpStream::connect(&self.origin.address)?;
            stream.write_all(b"GET /accepted HTTP/1.1\r\n\r\n")?;
            let (mut reply, mut part) = (String::new(), [0; 512]);
            while !reply.contains("\r\n\r\n") || reply.ends_with("\r\n\r\n") {
                match stream.read(&mut part)? {
                    0 => break,
                    count => reply.push_str(&String::from_utf8_lossy(&part[..count])),
                }
            }
            Ok(reply)
        };
        let reply = ask().map_err(Failure::at("the server"))?;
        let number = reply.rsplit("\r\n\r\n").next().and_then(|body| body.parse().ok());
        number.ok_or_else(|| Failure::new(format!("the server has no count: {reply:?}")))
    }

    /// Stops the proxy and waits for its end, so that a tool can write its counts.
    pub(super) fn stop(self) -> Result<(), Failure> {
        self.proxy.stop()
    }
}

fn free_port() -> io::Result<u16> {
    // No other process binds ports between this call and the bind of the proxy.
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The results of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) requests: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// The delay with which the median request was sent.
    pub(super) late_us: f64,
}

/// The clients.
#[derive(Debug)]
pub(super) struct Load {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Load {
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Opens this number of connections. Each has received one reply.
    pub(super) fn start(
        ground: &Ground,
        running: &Running,
        size: usize,
        connections: usize,
    ) -> Result<Self, Failure> {
        let mut command = command("taskset", ["-c", "1"]);
        command.arg(ground.example("http_load"));
        command.args([&running.address, &format!("/{size}"), &connections.to_string()]);
        command.args(running.cookie);
        let mut child = Child::start(command, Some(&ground.folder.join("load.log")))?;
        let stdout = child.stdout.take().ok_or_else(|| child.failed("has no output"))?;
        let mut load = Self { child, stdout: BufReader::new(stdout) };
        load.expect("connected")?;
        Ok(load)
    }

    /// Runs a command of the load.
    pub(super) fn run(&mut self, words: &str) -> Result<Done, Failure> {
        self.run_watched(words, || Ok(())).map(|(done, _)| done)
    }

    /// Does the same; `look` is called at the beginning and at the end.
    pub(super) fn run_watched<T>(
        &mut self,
        words: &str,
        look: impl Fn() -> Result<T, Failure>,
    ) -> Result<(Done, [T; 2]), Failure> {
        let stdin = self.child.stdin.as_mut().ok_or_else(|| Failure::new("a load has no input"))?;
        writeln!(stdin, "{words}").map_err(Failure::at("load"))?;
        self.expect("begun")?;
        let before = look()?;
        let line = self.expect("done")?;
        let after = look()?;
        let numbers: Vec<f64> =
            line.split(' ').skip(1).filter_map(|word| word.parse().ok()).collect();
        let [requests, p50_us, p99_us, late_us] = numbers[..] else {
            return Err(Failure::new(format!("the load said: {line}")));
        };
        Ok((Done { requests, p50_us, p99_us, late_us }, [before, after]))
    }

    fn expect(&mut self, word: &str) -> Result<String, Failure> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        if read.is_ok() && line.starts_with(word) {
            return Ok(line.trim_end().to_owned());
        }
        Err(self.child.failed(&format!("said `{}` and not `{word}`", line.trim_end())))
    }
}
