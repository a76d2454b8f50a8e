//! A proxy with the server behind it and the clients in front of it.
//!
//! All processes of the proxy have one core for themselves; the server and the clients share the other.

use super::ground::Ground;
use super::subject::Subject;
use crate::bench::process;
use crate::bench::server::{Server, wait_until};
use crate::shell::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A proxy that runs.
#[derive(Debug)]
pub(super) struct Running {
    proxy: Child,
    origin: Server,
    address: String,
    cookie: Option<&'static str>,
}

impl Running {
    /// Starts it with its server, below these words if there are any (a tool that looks on).
    pub(super) fn start(
        ground: &Ground,
        subject: &Subject,
        below: &[&str],
    ) -> Result<Self, Failure> {
        let mut origin = Command::new("taskset");
        origin.args(["-c", "1"]).arg(ground.programs.join("http_origin")).arg("0");
        let origin = Server::start(origin, &ground.folder.join("origin.log"))?;
        let server = origin.address.rsplit(':').next().unwrap_or_default().to_owned();
        let port = free_port().map_err(|error| Failure::new(format!("no port: {error}")))?;
        let folder = ground.folder.display().to_string();
        let fill = |text: &str| {
            text.replace("@PORT@", &port.to_string())
                .replace("@SERVER@", &server)
                .replace("@FOLDER@", &folder)
        };
        if let Some((text, file)) = &subject.config {
            fs::write(file, fill(text))
                .map_err(|error| Failure::new(format!("{file}: {error}")))?;
        }
        let failed = |error: io::Error| Failure::new(format!("{}: {error}", subject.name));
        let log = ground.folder.join("proxy.log");
        let mut command = Command::new("taskset");
        command.args(["-c", subject.cores]).args(below);
        command.args(subject.command(!below.is_empty()).iter().map(|word| fill(word)));
        let proxy = command
            .current_dir(&ground.root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let address = format!("127.0.0.1:{port}");
        let cookie = subject.cookie;
        let running = Self { proxy, origin, address, cookie };
        if !wait_until(|| TcpStream::connect(&running.address).is_ok()) {
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(Failure::new(format!("{} does not listen\n{said}", subject.name)));
        }
        Ok(running)
    }

    /// All its processes: a master or supervisor is part of what it costs.
    pub(super) fn processes(&self) -> Result<Vec<u32>, Failure> {
        let first = self.proxy.id();
        let mut all = process::descendants(first).map_err(proc_failed)?;
        all.insert(0, first);
        Ok(all)
    }

    /// The process of the server behind it.
    pub(super) fn origin(&self) -> u32 {
        self.origin.process()
    }

    /// How many connections the server behind it has accepted so far.
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
        let reply = ask().map_err(|error| Failure::new(format!("the server: {error}")))?;
        let number = reply.rsplit("\r\n\r\n").next().and_then(|body| body.parse().ok());
        number.ok_or_else(|| Failure::new(format!("the server has no count: {reply:?}")))
    }

    /// Ends it and waits for that, so that a tool can write what it counted.
    pub(super) fn stop(mut self) -> Result<(), Failure> {
        // It may have ended by itself; then there is nothing to wait for.
        let _ = kill_process(Pid::from_child(&self.proxy), Signal::TERM);
        let ended = wait_until(|| self.proxy.try_wait().is_ok_and(|status| status.is_some()));
        if ended { Ok(()) } else { Err(Failure::new("a proxy does not end; it was killed")) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.proxy.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        // A killed master leaves its workers behind.
        for process in process::descendants(self.proxy.id()).unwrap_or_default() {
            if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

pub(super) fn proc_failed(error: io::Error) -> Failure {
    Failure::new(format!("/proc: {error}"))
}

fn free_port() -> io::Result<u16> {
    // Nobody else binds ports in the moment between this and the proxy's own bind.
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// What a window showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) requests: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// By how much the median request was sent too late.
    pub(super) late_us: f64,
}

/// The clients.
#[derive(Debug)]
pub(super) struct Load {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Load {
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Connects so many clients, each of which was answered once.
    pub(super) fn start(
        ground: &Ground,
        running: &Running,
        size: usize,
        connections: usize,
    ) -> Result<Self, Failure> {
        let mut command = Command::new("taskset");
        command.args(["-c", "1"]).arg(ground.programs.join("http_load"));
        command.args([&running.address, &format!("/{size}"), &connections.to_string()]);
        command.args(running.cookie);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::new(format!("http_load: {error}")))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("http_load has no pipes"));
        };
        let mut load = Self { child, stdin, stdout: BufReader::new(stdout) };
        load.expect("connected")?;
        Ok(load)
    }

    /// Has something done; `during` is called when it begins and when it ends.
    pub(super) fn run(&mut self, words: &str, mut during: impl FnMut()) -> Result<Done, Failure> {
        writeln!(self.stdin, "{words}").map_err(|error| Failure::new(format!("load: {error}")))?;
        self.expect("begun")?;
        during();
        let line = self.expect("done")?;
        during();
        let numbers: Vec<f64> =
            line.split(' ').skip(1).filter_map(|word| word.parse().ok()).collect();
        let [requests, p50_us, p99_us, late_us] = numbers[..] else {
            return Err(Failure::new(format!("the load said: {line}")));
        };
        Ok(Done { requests, p50_us, p99_us, late_us })
    }

    fn expect(&mut self, word: &str) -> Result<String, Failure> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        if read.is_ok() && line.starts_with(word) {
            return Ok(line.trim_end().to_owned());
        }
        Err(Failure::new(format!("the load said `{}` and not `{word}`", line.trim_end())))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It ends with its input as well; nothing of it is wanted any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
