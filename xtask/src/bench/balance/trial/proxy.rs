//! The three products as an expert would run them before three servers, and what is done to them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::shell::Failure;

/// How long a product may take to start, or to end.
const PATIENCE: Duration = Duration::from_secs(15);

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

/// What a scenario asks of the configuration.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) servers: Vec<u16>,
    /// Requests that one server is given at once; none: as many as come.
    pub(super) at_once: Option<u32>,
}

/// A product that runs.
#[derive(Debug)]
pub(super) struct Proxy {
    product: Product,
    roadstead: PathBuf,
    folder: PathBuf,
    options: Options,
    /// The socket that generations of Roadstead share.
    socket: TcpListener,
    pub(super) address: SocketAddr,
    /// The latest is last; the others drain.
    generations: Vec<Child>,
    /// Servers that are drained.
    drained: Vec<usize>,
}

fn failed(what: &str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::new(format!("{what}: {error}"))
}

impl Proxy {
    pub(super) fn start(
        product: Product,
        roadstead: &Path,
        folder: PathBuf,
        options: Options,
    ) -> Result<Self, Failure> {
        fs::create_dir_all(&folder).map_err(failed("folder"))?;
        let socket = TcpListener::bind("127.0.0.1:0").map_err(failed("port"))?;
        let address = socket.local_addr().map_err(failed("port"))?;
        let roadstead = roadstead.to_owned();
        let (generations, drained) = (Vec::new(), Vec::new());
        let mut proxy =
            Self { product, roadstead, folder, options, socket, address, generations, drained };
        if product != Product::Roadstead {
            // They bind it themselves.
            let other = TcpListener::bind("127.0.0.1:0").map_err(failed("port"))?;
            drop(std::mem::replace(&mut proxy.socket, other));
        }
        proxy.configure()?;
        proxy.spawn()?;
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > PATIENCE {
                return Err(Failure::new(format!("{} does not listen", product.name())));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(proxy)
    }

    fn file(&self) -> PathBuf {
        self.folder.join("proxy.conf")
    }

    fn configure(&self) -> Result<(), Failure> {
        let text = match self.product {
            Product::Roadstead => self.roadstead_toml(),
            Product::HaProxy => self.haproxy_cfg(),
            Product::Nginx => self.nginx_conf(),
        };
        fs::write(self.file(), text).map_err(failed("configuration"))
    }

    fn spawn(&mut self) -> Result<(), Failure> {
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log"));
        let log = log.map_err(failed("log"))?;
        let mut command = match self.product {
            Product::HaProxy => {
                let mut command = Command::new("haproxy");
                command.arg("-W").arg("-f").arg(self.file());
                command
            }
            Product::Nginx => {
                let mut command = Command::new("nginx");
                command.arg("-p").arg(&self.folder).arg("-c").arg(self.file());
                command
            }
            Product::Roadstead => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(
                    "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web; \
                     exec \"$0\" serve \"$1\"",
                );
                command.arg(&self.roadstead).arg(self.file());
                let socket = self.socket.try_clone().map_err(failed("socket"))?;
                command.stdin(std::os::fd::OwnedFd::from(socket)).stdout(Stdio::piped());
                command
            }
        };
        let mut child = command.stderr(log).spawn().map_err(failed(self.product.name()))?;
        if let Some(stdout) = child.stdout.take() {
            let (mut line, mut stdout) = (String::new(), BufReader::new(stdout));
            stdout.read_line(&mut line).map_err(failed("ready"))?;
            if !line.starts_with("ready ") {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(Failure::new(format!("Roadstead does not serve:\n{log}")));
            }
        }
        self.generations.push(child);
        Ok(())
    }

    /// The process that signals go to: nginx writes it down, because another binary may have taken over.
    fn process(&self) -> Option<Pid> {
        let written = fs::read_to_string(self.folder.join("nginx.pid")).ok();
        let written = written.and_then(|text| text.trim().parse().ok());
        let child = self.generations.last().and_then(|child| i32::try_from(child.id()).ok());
        Pid::from_raw(match self.product {
            Product::Nginx => written.or(child)?,
            Product::Roadstead | Product::HaProxy => child?,
        })
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let process = self.process().ok_or_else(|| Failure::new("no process"))?;
        kill_process(process, signal).map_err(|error| failed("signal")(error.into()))
    }

    /// Reads its configuration again.
    pub(super) fn reload(&self) -> Result<(), Failure> {
        match self.product {
            Product::Roadstead | Product::Nginx => self.signal(Signal::HUP),
            Product::HaProxy => self.signal(Signal::USR2),
        }
    }

    /// Another process takes over; the one before ends once it has nothing more to do.
    pub(super) fn hand_over(&mut self) -> Result<(), Failure> {
        match self.product {
            Product::Roadstead => {
                // Each generation has an admin address of its own.
                self.configure_generation(self.generations.len())?;
                let before = self.process();
                self.spawn()?;
                let before = before.ok_or_else(|| Failure::new("no process"))?;
                kill_process(before, Signal::TERM).map_err(|error| failed("signal")(error.into()))
            }
            // Its master passes the sockets on to the next worker.
            Product::HaProxy => self.signal(Signal::USR2),
            Product::Nginx => {
                let before = self.process();
                self.signal(Signal::USR2)?;
                let begun = Instant::now();
                while self.process() == before && begun.elapsed() < PATIENCE {
                    thread::sleep(Duration::from_millis(5));
                }
                // The workers of the new master serve by then.
                thread::sleep(Duration::from_millis(100));
                let before = before.ok_or_else(|| Failure::new("no process"))?;
                kill_process(before, Signal::QUIT).map_err(|error| failed("signal")(error.into()))
            }
        }
    }

    /// A server gets no further request, or gets requests again.
    pub(super) fn drain_server(&mut self, server: usize, drains: bool) -> Result<(), Failure> {
        self.drained.retain(|other| *other != server);
        if drains {
            self.drained.push(server);
        }
        match self.product {
            Product::Roadstead => {
                let mut command = Command::new(&self.roadstead);
                let verb = if drains { "drain" } else { "enable" };
                let admin = self.admin(self.generations.len() - 1);
                let worker = format!("127.0.0.1:{}", self.options.servers[server]);
                command.args(["ctl", "--admin", &admin, verb, "main", &worker]);
                crate::shell::output(command).map(drop)
            }
            Product::HaProxy => {
                let state = if drains { "drain" } else { "ready" };
                let path = self.folder.join("stats");
                let mut socket = UnixStream::connect(path).map_err(failed("stats"))?;
                writeln!(socket, "set server servers/s{server} state {state}")
                    .map_err(failed("stats"))
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

    fn configure_generation(&self, generation: usize) -> Result<(), Failure> {
        let text = self.roadstead_toml().replace(&self.admin(0), &self.admin(generation));
        fs::write(self.file(), text).map_err(failed("configuration"))
    }

    fn roadstead_toml(&self) -> String {
        let servers: Vec<String> =
            self.options.servers.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
        let at_once = self.options.at_once.unwrap_or(1000);
        format!(
            "[admin]\nlisten = \"{}\"\n\n[listener.web]\nlisten = \"fd:web\"\nprotocol = \"http\"\npool = \"main\"\n\n\
             [pool.main]\nservers = [{}]\nschedule = \"least-outstanding\"\nserver_requests_max = {at_once}\n\
             connect = \"500ms\"\ndeadline = \"1s\"\nqueue = {{ length = 1000, wait = \"1s\" }}\n\
             health = {{ check = \"http\", path = \"/health\", interval = \"500ms\", timeout = \"400ms\", rise = 2, fall = 2, \
             errors = 3, \
             fail_rate = \"3%\", fail_window = \"5s\", fail_min_requests = 20, eject = \"5s\", failing = \"500..599\" }}\n\
             retries = {{ tries = 3, share = 100, reserve = 1000, on = [\"connect\", \"reset\", \"timeout\", \"invalid\", \"500..504\"] }}\n",
            self.admin(0),
            servers.join(", "),
        )
    }

    fn haproxy_cfg(&self) -> String {
        let limit =
            self.options.at_once.map_or_else(String::new, |most| format!(" maxconn {most}"));
        let servers: String = (0..)
            .zip(&self.options.servers)
            .map(|(number, port)| format!("    server s{number} 127.0.0.1:{port}\n"))
            .collect();
        format!(
            "global\n    nbthread 1\n    maxconn 4000\n    hard-stop-after 30s\n    \
             stats socket {stats} mode 600 level admin expose-fd listeners\n\n\
             defaults\n    mode http\n    timeout connect 500ms\n    timeout client 30s\n    timeout server 1s\n    \
             timeout queue 1s\n    timeout http-request 10s\n    timeout http-keep-alive 30s\n    \
             option idle-close-on-response\n    retries 3\n    option redispatch 1\n    \
             retry-on all-retryable-errors\n    http-reuse safe\n\n\
             frontend clients\n    bind {address}\n    default_backend servers\n\n\
             backend servers\n    balance leastconn\n    http-request disable-l7-retry if METH_POST\n    \
             option httpchk GET /health\n    \
             default-server check inter 500ms fastinter 200ms downinter 500ms fall 2 rise 2 observe layer7 \
             error-limit 3 on-error mark-down{limit}\n{servers}",
            stats = self.folder.join("stats").display(),
            address = self.address,
        )
    }

    fn nginx_conf(&self) -> String {
        let limit =
            self.options.at_once.map_or_else(String::new, |most| format!(" max_conns={most}"));
        let servers: String = (0..)
            .zip(&self.options.servers)
            .map(|(number, port)| {
                let down = if self.drained.contains(&number) { " down" } else { "" };
                format!(
                    "        server 127.0.0.1:{port} max_fails=3 fail_timeout=5s{limit}{down};\n"
                )
            })
            .collect();
        format!(
            "daemon off;\nuser root;\nworker_processes 1;\nworker_shutdown_timeout 30s;\npid nginx.pid;\nerror_log error.log warn;\n\
             events {{ worker_connections 4000; }}\n\
             http {{\n    access_log off;\n    client_body_temp_path body;\n    proxy_temp_path proxy;\n    \
             fastcgi_temp_path fastcgi;\n    uwsgi_temp_path uwsgi;\n    scgi_temp_path scgi;\n    \
             keepalive_requests 100000;\n    client_body_buffer_size 256k;\n    upstream servers {{\n        zone servers 256k;\n        least_conn;\n{servers}        \
             keepalive 64;\n    }}\n    server {{\n        listen {address};\n        location / {{\n            \
             proxy_pass http://servers;\n            proxy_http_version 1.1;\n            proxy_set_header Connection \"\";\n            \
             proxy_connect_timeout 500ms;\n            proxy_read_timeout 1s;\n            proxy_send_timeout 1s;\n            \
             proxy_next_upstream error timeout invalid_header http_500 http_502 http_503 http_504;\n            \
             proxy_next_upstream_tries 3;\n        }}\n    }}\n}}\n",
            address = self.address,
        )
    }
}

impl Drop for Proxy {
    /// Ends all of it.
    fn drop(&mut self) {
        let _ = self.signal(Signal::TERM);
        for child in &mut self.generations {
            if let Ok(Some(pid)) = i32::try_from(child.id()).map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        let begun = Instant::now();
        for child in &mut self.generations {
            while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
