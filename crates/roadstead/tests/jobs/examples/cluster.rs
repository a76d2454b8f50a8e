//! `examples/cluster`: its one command, as a user runs it, with a real NATS server.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use super::example;
use crate::client::Client;
use crate::daemon::{BINARY, PATIENCE, becomes, folder, processes_with, until};
use crate::nats;

/// The first digits of the ports of the example. The last digit is the number of the server or of the daemon.
const SHIPPED: [&str; 5] = ["422", "622", "900", "707", "808"];

/// Other first digits, with which ports were free a moment ago. The ports are below those that the kernel gives to
/// connections.
fn free_digits(count: usize) -> Vec<String> {
    let are_free = |digits: &u32| {
        let port = |last| u16::try_from(digits * 10 + last).unwrap();
        (1..=3).all(|last| TcpListener::bind(("127.0.0.1", port(last))).is_ok())
    };
    let first = 1000 + std::process::id() % 2000;
    (first..3200).chain(1000..first).filter(are_free).take(count).map(|it| it.to_string()).collect()
}

/// Copies the example, with these first digits of ports.
fn copy_with(digits: &[String], to: &Path) {
    for entry in fs::read_dir(example("cluster")).unwrap() {
        let path = entry.unwrap().path();
        let mut text = fs::read_to_string(&path).unwrap();
        for (shipped, digits) in SHIPPED.iter().zip(digits) {
            // In the arguments of the servers, the host is not named.
            for before in ["127.0.0.1:", "\""] {
                text = text.replace(&format!("{before}{shipped}"), &format!("{before}{digits}"));
            }
        }
        fs::write(to.join(path.file_name().unwrap()), text).unwrap();
    }
}

/// The command, with its processes in a group of their own, as a terminal starts it.
struct Example(Child);

impl Example {
    fn start(folder: &Path, nats_server: &Path) -> Self {
        let out = File::create(folder.join("out")).unwrap();
        let command = Command::new("sh")
            .arg(folder.join("start.sh"))
            .env("FOLDER", folder.join("files"))
            .env("NATS", nats_server)
            .env("ROADSTEAD", BINARY)
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .process_group(0)
            .spawn();
        Self(command.unwrap())
    }

    /// Ends it as Ctrl-C does.
    fn interrupt(&self) {
        kill_process_group(Pid::from_child(&self.0), Signal::INT).unwrap();
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // After a failure, nothing may stay.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

#[test]
fn a_client_stays_with_its_server_when_the_first_daemon_of_the_example_is_killed() {
    let Some(nats_server) = nats::program() else { return };
    let folder = folder();
    let digits = free_digits(SHIPPED.len());
    copy_with(&digits, folder.path());
    let mark = folder.path().to_str().unwrap();
    let mut example = Example::start(folder.path(), &nats_server);
    let file =
        |name: &str| fs::read_to_string(folder.path().join("files").join(name)).unwrap_or_default();
    let is_ready = || ["one.log", "two.log"].iter().all(|log| file(log).contains("ready {"));
    let logs = || ["one.log", "two.log", "nats-1.log", "../out"].map(&file).join("\n");
    assert!(becomes(PATIENCE, is_ready), "{}", logs());
    let server_of = |daemon: u32, client: &str| {
        let mut connection = Client::connect(&format!("127.0.0.1:{}{daemon}", digits[4]));
        connection.send(format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Client: {client}\r\nConnection: close\r\n\r\n"
        ));
        connection.rest().pop().unwrap()
    };
    let cluster = |daemon: u32| {
        let admin = format!("127.0.0.1:{}{daemon}", digits[3]);
        let out =
            Command::new(BINARY).args(["ctl", "--admin", &admin, "cluster", "status"]).output();
        let out = out.unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice::<Value>(&out.stdout).unwrap()
    };
    // The servers do not listen yet, perhaps, and the daemons serve without NATS after a while.
    until("both are in sync, and the servers answer", || {
        (1..=2).all(|daemon| {
            cluster(daemon)["pools"][0]["state"] == "in-sync"
                && server_of(daemon, "first").starts_with("server-")
        })
    });
    let clients: Vec<String> = (0..20).map(|number| format!("client-{number}")).collect();
    let bound: BTreeMap<&String, String> =
        clients.iter().map(|client| (client, server_of(1, client))).collect();
    until("the second daemon knows all clients", || cluster(2)["pools"][0]["keys"] == 21);
    for (client, server) in &bound {
        assert_eq!(server_of(2, client), *server, "{client}");
    }
    let one = file("one.pid").trim().parse().unwrap();
    kill_process(Pid::from_raw(one).unwrap(), Signal::KILL).unwrap();
    for (client, server) in &bound {
        assert_eq!(server_of(2, client), *server, "{client} after the kill");
    }
    assert!(!processes_with(mark).is_empty());
    example.interrupt();
    until("the command ends", || !matches!(example.0.try_wait(), Ok(None)));
    assert!(example.0.wait().unwrap().success());
    assert_eq!(processes_with(mark), Vec::<u32>::new(), "no process is left");
}
