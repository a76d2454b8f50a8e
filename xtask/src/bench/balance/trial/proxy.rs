//! The three products, configured as an expert would for three servers, and the actions on them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::child::wait_until;
use crate::shell::{self, Failure, command};

/// One of the products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Product {
    Roadstead,
    HaProxy,
    Nginx,
}

impl Product {
    pub(super) const ALL: [Self; 3] = [Self::Roadstead, Self::HaProxy, Self::Nginx];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Roadstead => "Roadstead",
            Self::HaProxy => "HAProxy",
            Self::Nginx => "nginx",
        }
    }
}

/// The options of a scenario for the configuration.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) servers: Vec<u16>,
    /// The maximum number of concurrent requests per server; `None`: no limit.
    pub(super) at_once: Option<u32>,
}

/// A running product.
#[derive(Debug)]
pub(super) struct Proxy {
    product: Product,
    roadstead: PathBuf,
    folder: PathBuf,
    options: Options,
    /// The listening socket that the generations of Roadstead share.
    socket: TcpListener,
    pub(super) address: SocketAddr,
    /// The generations of the product. The last one is the latest; the others drain.
    generations: Vec<Child>,
    /// The drained servers.
    drained: Vec<usize>,
}

impl Proxy {
    pub(super) fn start(
        product: Product,
        roadstead: &Path,
        folder: PathBuf,
        options: Options,
    ) -> Result<Self, Failure> {
        let folder = shell::folder(folder)?;
        let socket = TcpListener::bind("127.0.0.1:0").map_err(Failure::at("port"))?;
        let address = socket.local_addr().map_err(Failure::at("port"))?;
        let roadstead = roadstead.to_owned();
        let (generations, drained) = (Vec::new(), Vec::new());
        let mut proxy =
            Self { product, roadstead, folder, options, socket, address, generations, drained };
        if product != Product::Roadstead {
            // The other products bind their socket themselves.
            let other = TcpListener::bind("127.0.0.1:0").map_err(Failure::at("port"))?;
            drop(std::mem::replace(&mut proxy.socket, other));
        }
        proxy.configure()?;
        proxy.spawn()?;
        if wait_until(|| TcpStream::connect(address).is_ok()) {
            return Ok(proxy);
        }
        Err(Failure::new(format!("{} does not listen", product.name())))
    }

    fn file(&self) -> PathBuf {
        self.folder.join("proxy.conf")
    }

    /// Writes the configuration: the file in `xtask/peers` with the values of the scenario.
    fn configure(&self) -> Result<(), Failure> {
        let Options { servers, at_once } = &self.options;
        let limit = |word: &str| at_once.map_or_else(String::new, |most| format!(" {word}{most}"));
        let server = |(number, port): (usize, &u16)| match self.product {
            Product::Roadstead => format!("\"127.0.0.1:{port}\", "),
            Product::HaProxy => format!("    server s{number} 127.0.0.1:{port}\n"),
            Product::Nginx => {
                let limit = limit("max_conns=");
                let down = if self.drained.contains(&number) { " down" } else { "" };
                format!(
                    "        server 127.0.0.1:{port} max_fails=3 fail_timeout=5s{limit}{down};\n"
                )
            }
        };
        let servers: String = servers.iter().enumerate().map(server).collect();
        let text = match self.product {
            Product::Roadstead => include_str!("../../../../peers/trial-roadstead.toml"),
            Product::HaProxy => include_str!("../../../../peers/trial-haproxy.cfg"),
            Product::Nginx => include_str!("../../../../peers/trial-nginx.conf"),
        };
        let text = text
            .replace("@ADMIN@", &self.admin(self.generations.len()))
            .replace("@ADDRESS@", &self.address.to_string())
            .replace("@STATS@", &self.folder.join("stats").display().to_string())
            .replace("@AT_ONCE@", &at_once.unwrap_or(1000).to_string())
            .replace("@LIMIT@", &limit("maxconn "))
            .replace("@SERVERS@", servers.trim_end_matches(['\n', ',', ' ']));
        shell::write(&self.file(), &text)
    }

    fn spawn(&mut self) -> Result<(), Failure> {
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log"));
        let log = log.map_err(Failure::at("log"))?;
        let (folder, file) = (self.folder.as_os_str(), self.file());
        let mut command = match self.product {
            Product::HaProxy => {
                command("haproxy", ["-W".as_ref(), "-f".as_ref(), file.as_os_str()])
            }
            Product::Nginx => {
                // It executes itself again by this name, without a search.
                let mut command =
                    command("sh", ["-c", "exec \"$(command -v nginx)\" \"$@\"", "nginx"]);
                command.args(["-p".as_ref(), folder, "-c".as_ref(), file.as_os_str()]);
                command
            }
            Product::Roadstead => {
                let script = "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web; \
                     exec \"$0\" serve \"$1\"";
                let mut command = command("sh", ["-c", script]);
                command.arg(&self.roadstead).arg(file);
                let socket = self.socket.try_clone().map_err(Failure::at("socket"))?;
                command.stdin(std::os::fd::OwnedFd::from(socket)).stdout(Stdio::piped());
                command
            }
        };
        let mut child = command.stderr(log).spawn().map_err(Failure::at(self.product.name()))?;
        if let Some(stdout) = child.stdout.take() {
            let (mut line, mut stdout) = (String::new(), BufReader::new(stdout));
            stdout.read_line(&mut line).map_err(Failure::at("ready"))?;
            if !line.starts_with("ready ") {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(Failure::new(format!("Roadstead does not serve:\n{log}")));
            }
        }
        self.generations.push(child);
        Ok(())
    }

    /// Returns the process for signals. nginx runs in the background and writes its id to a file.
    fn process(&self) -> Option<Pid> {
        let written = fs::read_to_string(self.folder.join("nginx.pid")).ok();
        let written = written.and_then(|text| text.trim().parse().ok());
        let child = self.generations.last().map(Pid::from_child);
        match self.product {
            Product::Nginx => written.and_then(Pid::from_raw),
            Product::Roadstead | Product::HaProxy => child,
        }
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let process = self.process().ok_or_else(|| Failure::new("no process"))?;
        kill_process(process, signal).map_err(Failure::at("signal"))
    }

    /// Reloads the configuration.
    pub(super) fn reload(&self) -> Result<(), Failure> {
        match self.product {
            Product::Roadstead | Product::Nginx => self.signal(Signal::HUP),
            Product::HaProxy => self.signal(Signal::USR2),
        }
    }

    /// Starts a process that takes over. The old process ends when it is idle.
    pub(super) fn hand_over(&mut self) -> Result<(), Failure> {
        match self.product {
            Product::Roadstead => {
                // Each generation has a separate admin address.
                self.configure()?;
                let before = self.process();
                self.spawn()?;
                let before = before.ok_or_else(|| Failure::new("no process"))?;
                kill_process(before, Signal::TERM).map_err(Failure::at("signal"))
            }
            // The master process passes the sockets on to the next worker.
            Product::HaProxy => self.signal(Signal::USR2),
            Product::Nginx => {
                let before = self.process();
                self.signal(Signal::USR2)?;
                if !wait_until(|| self.process().is_some_and(|now| Some(now) != before)) {
                    return Err(Failure::new("no other nginx takes over"));
                }
                // After this time the workers of the new master serve.
                thread::sleep(Duration::from_millis(100));
                let before = before.ok_or_else(|| Failure::new("no process"))?;
                kill_process(before, Signal::QUIT).map_err(Failure::at("signal"))
            }
        }
    }

    /// Drains a server, or ends its drain.
    pub(super) fn drain_server(&mut self, server: usize, drains: bool) -> Result<(), Failure> {
        self.drained.retain(|other| *other != server);
        if drains {
            self.drained.push(server);
        }
        match self.product {
            Product::Roadstead => {
                let verb = if drains { "drain" } else { "enable" };
                let admin = self.admin(self.generations.len() - 1);
                let worker = format!("127.0.0.1:{}", self.options.servers[server]);
                let words = ["ctl", "--admin", &admin, verb, "main", &worker];
                shell::output(command(&self.roadstead, words)).map(drop)
            }
            Product::HaProxy => {
                let state = if drains { "drain" } else { "ready" };
                let path = self.folder.join("stats");
                let mut socket = UnixStream::connect(path).map_err(Failure::at("stats"))?;
                writeln!(socket, "set server servers/s{server} state {state}")
                    .map_err(Failure::at("stats"))
            }
            Product::Nginx => {
                self.configure()?;
                self.signal(Signal::HUP)
            }
        }
    }

    fn admin(&self, generation: usize) -> String {
        format!("unix:{}", self.folder.join(format!("admin{generation}")).display())
    }
}

impl Drop for Proxy {
    /// Stops all processes.
    fn drop(&mut self) {
        let _ = self.signal(Signal::TERM);
        for child in &mut self.generations {
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
        for child in &mut self.generations {
            wait_until(|| !matches!(child.try_wait(), Ok(None)));
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
