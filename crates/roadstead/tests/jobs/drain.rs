//! Draining a daemon.

use rustix::process::Signal;

use crate::daemon::{Daemon, folder, is_alive, main_job, one_pool, until, worker_program};

#[test]
fn what_was_taken_is_finished_and_no_program_is_left() {
    let folder = folder();
    let parse = format!("{}workers = 3\n", worker_program(&["--misbehave", "slow=20"]));
    let daemon = Daemon::serve(folder.path(), &main_job(folder.path(), &parse, ""));
    let mut clients: Vec<_> = (0..10).map(|_| daemon.connect()).collect();
    for (who, client) in clients.iter_mut().enumerate() {
        client.send(format!("{who} 1 /a 200\n"));
    }
    until("all are taken", || daemon.metric("roadstead_requests_total", &["parse"]) == 10);
    let programs = daemon.programs();
    assert!(daemon.stop().success());
    for (who, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.rest(), [format!("ok {who}")]);
    }
    assert!(programs.iter().all(|&pid| !is_alive(pid)));
}

#[test]
fn later_lines_are_refused_and_new_connections_find_nobody() {
    let folder = folder();
    let pool = format!("{}workers = 1\n", worker_program(&["--echo", "--misbehave", "slow=500"]));
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut client = daemon.connect();
    client.send("taken\n");
    until("it is taken", || daemon.metric("roadstead_requests_total", &[]) == 1);
    daemon.signal(Signal::TERM);
    until("it drains", || daemon.metric("roadstead_draining", &[]) == 1);
    until("no connection is accepted", || std::net::TcpStream::connect(daemon.address()).is_err());
    client.send("late\n");
    assert_eq!(client.line(), "taken");
    let refused = client.line();
    assert!(refused.starts_with("!draining "), "{refused}");
    let mut daemon = daemon;
    assert!(daemon.wait().success());
}

#[test]
fn a_drain_that_takes_too_long_is_cut_and_says_so() {
    let folder = folder();
    let pool = worker_program(&["--misbehave", "never"]);
    let configuration = format!("[daemon]\ndrain_timeout = \"200ms\"\n{}", one_pool("", &pool));
    let daemon = Daemon::serve(folder.path(), &configuration);
    let mut client = daemon.connect();
    client.send("never answered\n");
    until("it is with a worker", || daemon.metric("roadstead_workers", &["busy"]) == 1);
    assert_eq!(daemon.stop().code(), Some(1));
    let lines = client.rest();
    assert!(lines[0].starts_with("!unknown stopped "), "{lines:?}");
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = folder();
    let pool = worker_program(&["--misbehave", "never"]);
    let mut daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut client = daemon.connect();
    client.send("never answered\n");
    until("it is with a worker", || daemon.metric("roadstead_workers", &["busy"]) == 1);
    daemon.signal(Signal::TERM);
    until("it drains", || daemon.metric("roadstead_draining", &[]) == 1);
    daemon.signal(Signal::INT);
    assert_eq!(daemon.wait().code(), Some(1));
}

/// Far longer than any test waits: no test here depends on the drain timeout.
const NEVER: &str = "[daemon]\ndrain_timeout = \"1h\"\n";

#[test]
fn a_daemon_without_clients_ends_at_once() {
    let folder = folder();
    let configuration = one_pool("", &worker_program(&["--echo"]));
    let daemon = Daemon::serve(folder.path(), &format!("{NEVER}{configuration}"));
    assert!(daemon.stop().success());
}

#[test]
fn an_idle_daemon_ends_at_once() {
    let folder = folder();
    let configuration = one_pool("", &worker_program(&["--echo"]));
    let daemon = Daemon::serve(folder.path(), &format!("{NEVER}{configuration}"));
    let mut idle = daemon.connect();
    assert_eq!(idle.ask("a"), "a");
    assert!(daemon.stop().success());
    assert_eq!(idle.rest(), [""; 0]);
}
