//! The main job on every kernel, selected only by the configuration, and inherited sockets.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;

use rusqlite::Connection;

use crate::daemon::{BINARY, Daemon, folder, main_job, worker_program};

const CLIENTS: usize = 40;
const EACH: usize = 25;

/// Runs the main job and returns how many epoll instances the daemon had.
fn main_job_on(kernel: &str) -> usize {
    let folder = folder();
    let parse = format!("{}workers = 3\n", worker_program(&[]));
    let job = main_job(folder.path(), &parse, "batch = { rows = 100, timeout = \"2ms\" }\n");
    let job = format!("[daemon]\nevent = \"{kernel}\"\n{job}");
    let daemon = Daemon::serve(folder.path(), &job);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| daemon.connect()).collect();
    for round in 0..EACH {
        for (number, client) in clients.iter_mut().enumerate() {
            let id = round * CLIENTS + number;
            client.send(format!("{id} 1700000000000000 /a/{id} 200\n"));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.line(), format!("ok {}", round * CLIENTS + number), "{kernel}");
        }
    }
    let database = Connection::open(folder.path().join("hits.db")).unwrap();
    let stored: i64 =
        database.query_row("select count(distinct id) from hits", [], |row| row.get(0)).unwrap();
    assert_eq!(usize::try_from(stored), Ok(CLIENTS * EACH), "{kernel}");
    let open = fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap();
    open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| target.to_string_lossy().contains("eventpoll"))
        .count()
}

#[test]
fn the_main_job_runs_on_every_kernel_by_configuration_alone() {
    let [auto, epoll, poll, select] = ["auto", "epoll", "poll", "select"].map(main_job_on);
    assert_eq!(auto, epoll, "auto is epoll here");
    assert_eq!(poll, select, "those of other rooms alone are left");
    assert!(poll < epoll);
}

/// Writes the main job with a listener `main` at this address.
fn write_job(folder: &std::path::Path, listen: &str) {
    let own = "[listener.main]\nlisten = \"127.0.0.1:0\"";
    let job = main_job(folder, &worker_program(&[]), "");
    assert!(job.contains(own));
    let job = job.replace(own, &format!("[listener.main]\nlisten = \"{listen}\""));
    fs::write(folder.join("roadstead.toml"), job).unwrap();
}

/// As systemd does: the variables name the process that reads them.
const HAND_OVER: &str = "exec 3<&$1 4</dev/null
export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=$2:other
exec \"$0\" serve roadstead.toml";

#[test]
fn a_listener_takes_the_socket_that_it_names() {
    takes_over("hits", "fd:hits");
}

#[test]
fn a_listener_takes_the_socket_of_its_own_name_and_binds_none() {
    takes_over("main", "127.0.0.1:0");
}

fn takes_over(name: &str, listen: &str) {
    let folder = folder();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // The client connects before the daemon is started, and loses nothing.
    let mut early = TcpStream::connect(address).unwrap();
    early.write_all(b"1 1700000000000000 /early 200\n").unwrap();
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).unwrap();
    write_job(folder.path(), listen);
    let mut command = Command::new("bash");
    command.current_dir(folder.path()).args(["-c", HAND_OVER, BINARY]);
    command.arg(socket.as_raw_fd().to_string()).arg(name);
    let daemon = Daemon::start(&mut command, folder.path()).unwrap();
    drop(socket);
    assert_eq!(daemon.address(), address.to_string());
    let mut reply = String::new();
    BufReader::new(&early).read_line(&mut reply).unwrap();
    assert_eq!(reply, "ok 1\n");
    assert_eq!(daemon.connect().ask("2 1700000000000000 /late 200"), "ok 2");
}

#[test]
fn a_socket_that_nobody_hands_over_is_an_error_at_the_start() {
    let folder = folder();
    write_job(folder.path(), "fd:hits");
    let mut command = Command::new(BINARY);
    command.current_dir(folder.path()).args(["serve", "roadstead.toml"]);
    let Err(told) = Daemon::start(&mut command, folder.path()) else { panic!("it started") };
    assert!(told.contains("fd:hits") && told.contains("LISTEN_FDNAMES"), "{told}");
}
