//! A proxy with its server behind and its clients before, each a process of its own.
//!
//! The proxy has one core for itself, the server and the clients share the other: so what they
//! cost does not become waiting of the proxy.

use super::{Ground, process};
use crate::bench::server::{Server, wait_until};
use crate::shell::{Failure, Workspace};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What is measured: a command with its configuration, if it has one.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    words: Vec<String>,
    /// The text of a configuration, and where it is written.
    config: Option<(String, String)>,
    /// What runs in place of the command below a tool that cannot run that, with the same last word.
    plain: Option<String>,
    /// The processors that it may use.
    cores: &'static str,
    /// A cookie that its clients bear, and take from replies.
    cookie: Option<&'static str>,
}

/// The processor of a proxy alone, and all of them.
const ALONE: &str = "0";
const ALL: &str = "0,1";

/// The subjects that are always there, ours last.
pub(super) fn all(workspace: &Workspace, folder: &Path) -> Result<Vec<Subject>, Failure> {
    let example = |name: &str| workspace.built("release", &format!("examples/{name}"));
    let config = |name: &str| {
        let path = workspace.root.join("xtask/peers").join(name);
        fs::read_to_string(&path).map_err(|error| Failure::new(format!("{name}: {error}")))
    };
    let with = |name: &str, words: &[&str], text: String, file: &str| {
        let file = folder.join(file).display().to_string();
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.push(file.clone());
        Subject {
            name: name.to_owned(),
            words,
            config: Some((text, file)),
            plain: None,
            cores: ALONE,
            cookie: None,
        }
    };
    let haproxy = config("haproxy.cfg")?;
    let roadstead = workspace.built("release", "roadstead").display().to_string();
    let relay = example("http_relay").display().to_string();
    let relay = [&relay, "@PORT@", "127.0.0.1:@SERVER@"].map(str::to_owned).to_vec();
    let mut ours =
        with("Roadstead", &[&roadstead, "serve"], config("roadstead-http.toml")?, "roadstead.toml");
    // Valgrind knows neither `pidfd_open`, by which the keeper is watched, nor how to start it. This
    // is the same data plane without a keeper.
    let plain = workspace.built("release", "examples/serve_file");
    ours.plain = Some(plain.display().to_string());
    Ok(vec![
        Subject {
            name: "bare relay".to_owned(),
            words: relay,
            config: None,
            plain: None,
            cores: ALONE,
            cookie: None,
        },
        with("HAProxy", &["haproxy", "-f"], haproxy.replace("    @SPLICE@\n", ""), "haproxy.cfg"),
        with(
            "HAProxy, splice",
            &["haproxy", "-f"],
            haproxy.replace("@SPLICE@", "option splice-response"),
            "haproxy-splice.cfg",
        ),
        with("nginx", &["nginx", "-c"], config("nginx.conf")?, "nginx.conf"),
        ours,
    ])
}

/// Ours on one shard, and on two, each with all processors, which its server and its clients share.
pub(super) fn on_shards(workspace: &Workspace, folder: &Path) -> Result<Vec<Subject>, Failure> {
    let path = workspace.root.join("xtask/peers/roadstead-http.toml");
    let text = fs::read_to_string(&path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    let roadstead = workspace.built("release", "roadstead").display().to_string();
    let subject = |(name, shards): (&str, u32)| {
        let file = folder.join(format!("roadstead-{shards}.toml")).display().to_string();
        let text = format!("[daemon]\nshards = {shards}\n{text}");
        let words = vec![roadstead.clone(), "serve".to_owned(), file.clone()];
        let config = Some((text, file));
        Subject { name: name.to_owned(), words, config, plain: None, cores: ALL, cookie: None }
    };
    Ok([("one shard", 1), ("two shards", 2)].map(subject).to_vec())
}

impl Subject {
    /// `NAME=COMMAND`.
    pub(super) fn given(text: &str) -> Result<Self, Failure> {
        let (name, command) = text
            .split_once('=')
            .ok_or_else(|| Failure::new("--subject takes NAME=COMMAND with @PORT@ and @SERVER@"))?;
        let words = command.split_whitespace().map(str::to_owned).collect();
        let name = name.to_owned();
        Ok(Self { name, words, config: None, plain: None, cores: ALONE, cookie: None })
    }

    /// Our data plane without the daemon around it, with these lines in its pool, and clients that
    /// bear this cookie.
    pub(super) fn ours(
        workspace: &Workspace,
        folder: &Path,
        (name, lines): (&str, &str),
        cookie: &'static str,
    ) -> Result<Self, Failure> {
        let path = workspace.root.join("xtask/peers/roadstead-http.toml");
        let text = fs::read_to_string(&path)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        let file = folder.join("roadstead-lines.toml").display().to_string();
        let program = workspace.built("release", "examples/serve_file").display().to_string();
        Ok(Self {
            name: name.to_owned(),
            words: vec![program, file.clone()],
            config: Some((format!("{text}{lines}"), file)),
            plain: None,
            cores: ALONE,
            cookie: Some(cookie),
        })
    }

    /// Its command, or what runs in its place below a tool.
    fn command(&self, below_tool: bool) -> Vec<&str> {
        match (&self.plain, self.words.last()) {
            (Some(plain), Some(last)) if below_tool => vec![plain, last],
            _ => self.words.iter().map(String::as_str).collect(),
        }
    }
}

/// A proxy that runs.
#[derive(Debug)]
pub(super) struct Running {
    proxy: Child,
    _origin: Server,
    address: String,
    cookie: Option<&'static str>,
    /// Anonymous memory before the first client.
    pub(super) memory: u64,
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
        command.args(subject.command(!below.is_empty()).into_iter().map(fill));
        let proxy = command
            .current_dir(&ground.root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let address = format!("127.0.0.1:{port}");
        let cookie = subject.cookie;
        let mut running = Self { proxy, _origin: origin, address, cookie, memory: 0 };
        if !wait_until(|| TcpStream::connect(&running.address).is_ok()) {
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(Failure::new(format!("{} does not listen\n{said}", subject.name)));
        }
        running.memory = process::memory(running.process()).map_err(failed)?;
        Ok(running)
    }

    pub(super) fn process(&self) -> u32 {
        self.proxy.id()
    }

    /// Ends it and waits for that, so that what looks on can say what it saw.
    pub(super) fn stop(mut self) -> Result<(), Failure> {
        // It may have ended by itself; then there is nothing to wait for.
        let _ = kill_process(Pid::from_child(&self.proxy), Signal::TERM);
        let ended = wait_until(|| self.proxy.try_wait().is_ok_and(|status| status.is_some()));
        if ended { Ok(()) } else { Err(Failure::new("a proxy does not end; it was killed")) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Harmless for one that was waited for.
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
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
