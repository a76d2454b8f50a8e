//! Reloads while programs serve, by signal and by command.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;

use crate::client::Client;
use crate::daemon::{BINARY, Daemon, folder, one_pool, read_log, until};
use crate::http::balance::named;
use crate::untested::untested_without_root;

/// A program that answers each line with a word before it.
fn says(word: &str, more: &str) -> String {
    let script = format!("while read -r line; do echo \\\"{word} $line\\\"; done");
    one_pool("", &format!("program = [\"sh\", \"-c\", \"{script}\"]\nworkers = 2\n{more}"))
}

/// Stops the clients, also when a test fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the processes of both programs, when both serve and no other process exists.
fn both(daemon: &Daemon) -> Option<Vec<u64>> {
    let status = daemon.status();
    let workers = status["pools"][0]["workers"].as_array().unwrap();
    let pids = workers.iter().map(|worker| worker["pid"].as_u64()).collect::<Option<Vec<_>>>();
    pids.filter(|pids| pids.len() == 2)
}

#[test]
fn programs_are_replaced_one_by_one_and_every_line_is_answered() {
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &says("old", ""));
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (daemon, stop, answered) = (&daemon, &stop, &answered);
            scope.spawn(move || {
                let mut client = daemon.connect();
                while !stop.load(Ordering::Relaxed) {
                    let said = client.ask(&number.to_string());
                    let words: Vec<_> = said.split(' ').collect();
                    assert!(words.len() == 2 && words[1] == number.to_string(), "{said}");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _stops = Stops(&stop);
        for word in ["new", "newer", "newest"] {
            until("requests go on", || answered.load(Ordering::Relaxed) > 9);
            let mut before = Vec::new();
            until("both serve", || both(&daemon).map(|pids| before = pids).is_some());
            Daemon::rewrite(folder.path(), &says(word, "queue = { max_requests = 99 }"));
            daemon.reload().unwrap();
            until("all programs are others", || {
                both(&daemon).is_some_and(|now| now.iter().all(|pid| !before.contains(pid)))
            });
            let mut client = daemon.connect();
            assert_eq!(client.ask("x"), format!("{word} x"));
        }
    });
    let before = both(&daemon);
    Daemon::rewrite(folder.path(), &says("newest", "queue = { max_requests = 98 }"));
    daemon.reload().unwrap();
    assert_eq!(both(&daemon), before, "they would be started as they were");
    assert!(daemon.stop().success());
}

#[test]
fn a_hangup_opens_the_log_anew_and_reads_the_file_again() {
    let folder = folder();
    let log = folder.path().join("access.log");
    let text = |word: &str| {
        let to = format!("[access_log]\nto = \"file:{}\"\n", log.display());
        says(word, "") + &to
    };
    let daemon = Daemon::serve(folder.path(), &text("old"));
    let mut client = daemon.connect();
    assert_eq!(client.ask("x"), "old x");
    until("its line is written", || std::fs::read_to_string(&log).is_ok_and(|it| !it.is_empty()));
    std::fs::rename(&log, folder.path().join("access.log.1")).unwrap();
    Daemon::rewrite(folder.path(), &text("new"));
    daemon.signal(Signal::HUP);
    // Each of the two programs is used in turn.
    until("programs are replaced", || (0..4).all(|_| client.ask("y") == "new y"));
    until("lines go to the new file", || {
        std::fs::read_to_string(&log).is_ok_and(|it| !it.is_empty())
    });
    Daemon::rewrite(folder.path(), "[pool");
    daemon.signal(Signal::HUP);
    until("it is said", || read_log(folder.path()).contains("was not reloaded"));
    assert_eq!(client.ask("z"), "new z");
    assert!(daemon.stop().success());
}

#[test]
fn a_signal_during_a_slow_start_is_a_reload_after_it() {
    let folder = folder();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    // The daemon waits for this database before it is ready.
    let database = format!(
        "{}[pool.rows]\ndatabase = \"postgres://u@{}/d\"\n\
         insert = {{ table = \"t\", columns = [\"a\"] }}\n",
        says("old", ""),
        server.local_addr().unwrap()
    );
    let file = folder.path().join("roadstead.toml");
    std::fs::write(&file, database).unwrap();
    let log = folder.path().join("start.log");
    let mut command = Command::new(BINARY);
    command.arg("serve").arg(&file).stderr(std::fs::File::create(&log).unwrap());
    let mut daemon = command.stdout(Stdio::null()).spawn().unwrap();
    let (stream, _) = server.accept().unwrap();
    std::fs::write(&file, "[pool").unwrap();
    let process = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(process, Signal::HUP).unwrap();
    drop((stream, server));
    let log = || std::fs::read_to_string(&log).unwrap();
    until("it is carried out", || log().contains("was not reloaded"));
    rustix::process::kill_process(process, Signal::TERM).unwrap();
    assert!(daemon.wait().unwrap().success());
}

#[test]
fn a_file_that_is_a_pipe_by_now_is_refused_and_waited_for_by_nobody() {
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &says("old", ""));
    let file = folder.path().join("roadstead.toml");
    std::fs::remove_file(&file).unwrap();
    fifo(&file);
    for _ in 0..2 {
        let said = daemon.reload().unwrap_err();
        assert!(said.contains("roadstead.toml") && said.contains("not a regular file"), "{said}");
    }
    assert_eq!(daemon.connect().ask("x"), "old x");
    Daemon::rewrite(folder.path(), &says("new", ""));
    daemon.reload().unwrap();
    let mut client = daemon.connect();
    // Each of the two programs is used in turn.
    until("programs are replaced", || (0..4).all(|_| client.ask("y") == "new y"));
    assert!(daemon.stop().success());
}

#[test]
fn settings_that_came_through_a_pipe_serve_and_cannot_be_read_again() {
    let folder = folder();
    let file = folder.path().join("pipe");
    fifo(&file);
    let mut command = Command::new(BINARY);
    command.arg("serve").arg(&file).current_dir(folder.path());
    let (to, text) = (file, says("old", ""));
    let writer = std::thread::spawn(move || std::fs::write(to, text));
    let daemon = Daemon::start(&mut command, folder.path()).unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(daemon.connect().ask("x"), "old x");
    let said = daemon.reload().unwrap_err();
    assert!(said.contains("not a regular file"), "{said}");
    assert!(daemon.stop().success());
}

/// Returns the output of `check` for the file of a daemon.
fn checked(daemon: &Daemon, file: &std::path::Path) -> String {
    let mut command = Command::new(BINARY);
    command.arg("check").arg(file).args(["--admin", &daemon.admin]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_check_says_whether_a_reload_needs_a_restart() {
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &says("old", ""));
    let file = folder.path().join("roadstead.toml");
    Daemon::rewrite(folder.path(), &says("new", "queue = { max_requests = 99 }"));
    let said = checked(&daemon, &file);
    assert!(
        said.contains("a reload of the running daemon") && said.contains("can take it over"),
        "{said}"
    );
    Daemon::rewrite(folder.path(), &format!("[daemon]\nshards = 2\n{}", says("new", "")));
    let said = checked(&daemon, &file);
    assert!(said.contains("restart it for:") && said.contains("line 2: "), "{said}");
    let other = folder.path().join("other.toml");
    std::fs::copy(&file, &other).unwrap();
    let said = checked(&daemon, &other);
    assert!(said.contains("serves another file: ") && said.contains("roadstead.toml"), "{said}");
    assert_eq!(daemon.connect().ask("x"), "old x", "a check changes nothing");
    // No daemon listens there any more.
    let admin = daemon.admin.clone();
    assert!(daemon.stop().success());
    let check = |more: &[&str]| {
        let mut command = Command::new(BINARY);
        command.arg("check").arg(&file).args(more).output().unwrap().status.code()
    };
    assert_eq!(check(&["--admin", &admin]), Some(1));
    assert_eq!(check(&[]), Some(0), "without a daemon the file alone is checked");
}

#[test]
fn a_rejected_reload_ends_with_nothing_changed() {
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &says("old", ""));
    for wrong in [
        "[pool.main]\nprogram = 5\n".to_owned(),
        format!("[daemon]\nshards = 2\n{}", says("new", "")),
        says("new", "").replace("pool = \"main\"", "pool = \"nobody\""),
    ] {
        Daemon::rewrite(folder.path(), &wrong);
        let said = daemon.reload().unwrap_err();
        assert!(said.ends_with(": nothing changed\n"), "{said}");
    }
    assert_eq!(daemon.connect().ask("x"), "old x");
}

fn fifo(path: &std::path::Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// Pools of programs and of servers, each of which answers with its name, in this order in the file.
fn four(shards: u32, servers: &[(&str, u16)], order: &[usize], length: usize) -> String {
    let program = |name: &str| {
        let script = format!("while read -r line; do echo \\\"{name} $line\\\"; done");
        format!(
            "[listener.{name}]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"{name}\"\n\
             [pool.{name}]\nprogram = [\"sh\", \"-c\", \"{script}\"]\nworkers = 2\n"
        )
    };
    let server = |(name, port): &(&str, u16)| {
        format!(
            "[listener.{name}]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"{name}\"\n\
             [pool.{name}]\nservers = [\"127.0.0.1:{port}\"]\n"
        )
    };
    let mut pools = vec![program("pa"), program("pb")];
    pools.extend(servers.iter().map(server));
    let pools = order
        .iter()
        .map(|&place| format!("{}queue = {{ max_requests = {length} }}\n", pools[place]));
    let pools: String = pools.collect();
    format!("[daemon]\nshards = {shards}\n[admin]\nlisten = \"127.0.0.1:0\"\n{pools}")
}

/// Reloads repeatedly, each time with the pools in another order, while clients of every kind send requests.
fn other_orders_under_load(shards: u32) {
    let both = ["<sa>", "<sb>"].map(named);
    let servers = [("sa", both[0].port), ("sb", both[1].port)];
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]];
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &four(shards, &servers, &orders[0], 900));
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (daemon, stop, answered) = (&daemon, &stop, &answered);
        let goes_on = move || {
            answered.fetch_add(1, Ordering::Relaxed);
            !stop.load(Ordering::Relaxed)
        };
        for (number, pool) in ["pa", "pb"].iter().cycle().take(4).enumerate() {
            scope.spawn(move || {
                let mut client = Client::connect(&daemon.listeners[*pool]);
                while goes_on() {
                    assert_eq!(client.ask(&number.to_string()), format!("{pool} {number}"));
                }
            });
        }
        for pool in ["sa", "sb"] {
            scope.spawn(move || {
                while goes_on() {
                    let said =
                        roadstead::ask::request(&daemon.listeners[pool], "GET", "/", b"").unwrap();
                    assert_eq!((said.status, said.body), (200, format!("<{pool}>").into_bytes()));
                }
            });
        }
        for pool in ["pa", "pb"] {
            scope.spawn(move || {
                let path = format!("/ask/{pool}");
                while goes_on() {
                    let said =
                        roadstead::ask::request(&daemon.admin, "POST", &path, b"inside").unwrap();
                    let due = format!("{pool} inside\n").into_bytes();
                    assert_eq!((said.status, said.body), (200, due));
                }
            });
        }
        let _stops = Stops(stop);
        for (round, order) in orders.iter().cycle().take(60).enumerate() {
            let seen = answered.load(Ordering::Relaxed);
            Daemon::rewrite(folder.path(), &four(shards, &servers, order, 900 + round));
            daemon.reload().unwrap_or_else(|said| panic!("{said}"));
            until("requests go on", || answered.load(Ordering::Relaxed) > seen + 16);
        }
    });
    for verdict in ["failed", "refused", "unknown"] {
        let label = format!("verdict=\"{verdict}\"");
        assert_eq!(daemon.metric("roadstead_requests_finished_total", &[&label]), 0, "{verdict}");
    }
    assert!(daemon.stop().success());
}

#[test]
fn the_file_is_read_again_and_again_under_load_its_pools_in_any_order() {
    other_orders_under_load(1);
    other_orders_under_load(2);
}

/// The kernel gives the /proc files of a non-dumpable process to root.
#[test]
fn a_secret_that_a_reload_names_first_is_protected_from_then_on() {
    if !rustix::process::geteuid().is_root() {
        return untested_without_root("a daemon of another user", "the tests do not run as root");
    }
    const NOBODY: u32 = 65534;
    let folder = folder();
    std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let admin = format!("listen = \"unix:{}\"", folder.path().join("admin.sock").display());
    let configuration = |more: &str| {
        says("old", more).replace("listen = \"127.0.0.1:0\"\n[l", &format!("{admin}\n[l"))
    };
    let file = folder.path().join("roadstead.toml");
    std::fs::write(&file, configuration("")).unwrap();
    let mut command = Command::new(BINARY);
    command.arg("serve").arg(&file).current_dir(folder.path()).env("HUSH", "a secret");
    let daemon = Daemon::start(command.uid(NOBODY).gid(NOBODY), folder.path()).unwrap();
    let environment = format!("/proc/{}/environ", daemon.pid());
    let owner = || std::fs::metadata(&environment).unwrap().uid();
    assert_eq!(owner(), NOBODY);
    std::fs::write(&file, configuration("env = { X = \"env:HUSH\" }")).unwrap();
    daemon.reload().unwrap();
    assert_eq!(owner(), 0, "nobody but root can read it");
}
