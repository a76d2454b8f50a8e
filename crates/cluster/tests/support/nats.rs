//! NATS servers with JetStream on the loopback, as real processes. They end with the test.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::untested::untested;

/// The maximum time until the servers have a leader.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Servers of one cluster.
#[derive(Debug)]
pub(crate) struct Nats {
    program: PathBuf,
    folder: tempfile::TempDir,
    servers: Vec<Server>,
}

#[derive(Debug)]
struct Server {
    ports: Ports,
    process: Option<Child>,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    client: u16,
    route: u16,
    monitor: u16,
}

/// The server that `cargo xtask test` installs, or `nats-server` of the search path.
fn program() -> Option<PathBuf> {
    let installed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin/nats-server");
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&folders).map(|folder| folder.join("nats-server"));
    std::iter::once(installed).chain(others).find(|path| path.is_file())
}

/// A port that was free a moment ago.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Nats {
    /// Starts `count` servers and waits for their leader. `None`: there is no nats-server, which is reported.
    pub(crate) fn start(count: usize) -> Option<Self> {
        let Some(program) = program() else {
            untested(
                "bindings shared over NATS",
                "there is no nats-server",
                "install Go, then run `cargo xtask test --only tools`",
            );
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let ports = || Ports { client: port(), route: port(), monitor: port() };
        let servers = (0..count).map(|_| Server { ports: ports(), process: None }).collect();
        let mut nats = Self { program, folder, servers };
        (0..count).for_each(|number| nats.run(number));
        nats.wait_until_ready();
        Some(nats)
    }

    /// The addresses for clients.
    pub(crate) fn urls(&self) -> Vec<String> {
        let url = |server: &Server| format!("nats://127.0.0.1:{}", server.ports.client);
        self.servers.iter().map(url).collect()
    }

    /// Starts a server that does not run. Its file store is kept, its memory is empty.
    pub(crate) fn run(&mut self, number: usize) {
        let routes = self.servers.iter().map(|it| format!("nats://127.0.0.1:{}", it.ports.route));
        let routes: Vec<_> = routes.collect();
        let Ports { client, route, monitor } = self.servers[number].ports;
        let folder = self.folder.path();
        let mut text = format!(
            "server_name: n{number}\nlisten: 127.0.0.1:{client}\nhttp: 127.0.0.1:{monitor}\n\
             jetstream {{ store_dir: \"{}/{number}\", max_mem: 1G, max_file: 1G }}\n",
            folder.display()
        );
        if routes.len() > 1 {
            text.push_str(&format!(
                "cluster {{ name: test, listen: 127.0.0.1:{route}, routes: [{}] }}\n",
                routes.join(", ")
            ));
        }
        let file = folder.join(format!("{number}.conf"));
        std::fs::write(&file, text).unwrap();
        let log = std::fs::File::create(folder.join(format!("{number}.log"))).unwrap();
        let process = Command::new(&self.program)
            .arg("-c")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.servers[number].process = Some(process);
    }

    /// Kills a server.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(mut process) = self.servers[number].process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Waits until all running servers are current and have a leader.
    pub(crate) fn wait_until_ready(&self) {
        let start = Instant::now();
        for (number, server) in self.servers.iter().enumerate() {
            while server.process.is_some() && !is_healthy(server.ports.monitor) {
                let log = self.folder.path().join(format!("{number}.log"));
                let log = || std::fs::read_to_string(&log).unwrap();
                assert!(start.elapsed() < READY_TIMEOUT, "server {number}:\n{}", log());
                std::thread::park_timeout(Duration::from_millis(50));
            }
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        (0..self.servers.len()).for_each(|number| self.kill(number));
    }
}

fn is_healthy(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let timeout = Some(Duration::from_secs(5));
    let mut answer = String::new();
    let request = "GET /healthz HTTP/1.0\r\n\r\n";
    stream.set_read_timeout(timeout).is_ok()
        && stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.0 200")
}
