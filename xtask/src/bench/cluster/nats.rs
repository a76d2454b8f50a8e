//! Three NATS servers with JetStream on the loopback.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::bench::child::{Child, wait_until};
use crate::bench::ground::Ground;
use crate::bench::server::free_port;
use crate::shell::{self, Failure};

const SERVERS: usize = 3;

/// Running servers.
#[derive(Debug)]
pub(super) struct Nats {
    servers: Vec<Child>,
    ports: Vec<u16>,
}

/// The server that `cargo xtask` installs.
pub(super) fn program(root: &Path) -> PathBuf {
    root.join("target/tools/bin/nats-server")
}

impl Nats {
    /// Starts the servers and waits for their leader. They are configured as docs/cluster.md says.
    pub(super) fn start(ground: &Ground) -> Result<Self, Failure> {
        let free = || (0..SERVERS).map(|_| free_port()).collect::<Result<Vec<u16>, _>>();
        let (ports, routes, monitors) = (free()?, free()?, free()?);
        let all: Vec<_> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let mut servers = Vec::new();
        for number in 0..SERVERS {
            let store = ground.folder.join(format!("nats-{number}"));
            // Nothing of an earlier run is used.
            let _ = std::fs::remove_dir_all(&store);
            let text = format!(
                "server_name: n{number}\nlisten: 127.0.0.1:{}\nhttp: 127.0.0.1:{}\n\
                 jetstream {{ store_dir: \"{}\", max_mem: 2G, max_file: 1G }}\n\
                 cluster {{ name: site, listen: 127.0.0.1:{}, routes: [{}] }}\n\
                 ping_interval: \"5s\"\nping_max: 2\n",
                ports[number],
                monitors[number],
                store.display(),
                routes[number],
                all.join(", "),
            );
            let file = ground.folder.join(format!("nats-{number}.conf"));
            shell::write(&file, &text)?;
            let mut command = Command::new(program(&ground.root));
            command.arg("-c").arg(file);
            let log = ground.folder.join(format!("nats-{number}.log"));
            servers.push(Child::start(command, Some(&log))?);
        }
        if !wait_until(|| monitors.iter().all(|port| is_healthy(*port).unwrap_or(false))) {
            return Err(servers[0].failed("the servers have no leader"));
        }
        Ok(Self { servers, ports })
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect()
    }

    pub(super) fn processes(&self) -> Vec<u32> {
        self.servers.iter().map(Child::id).collect()
    }

    pub(super) fn stop(self) -> Result<(), Failure> {
        self.servers.into_iter().try_for_each(Child::stop)
    }
}

fn is_healthy(port: u16) -> io::Result<bool> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.0 200"))
}
