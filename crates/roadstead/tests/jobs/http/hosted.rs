//! Programs that serve HTTP on a socket that the daemon gives them.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::balance::ctl;
use super::{CLOSE, connect, rest, serve_pool, status, talk};
use crate::daemon::{BINARY, Daemon, folder, is_alive, processes_with, read_log, until};

mod ports;

/// Serves on the given socket. The path of a request selects the action.
const SERVER: &str = r#"
import http.server, os, socket, socketserver, sys, threading, time
both = threading.Barrier(2)
ill = threading.Event()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/die":
            print("no more", file=sys.stderr, flush=True)
            os._exit(3)
        if self.path == "/drop":
            self.close_connection = True
            return
        if self.path == "/hang":
            time.sleep(600)
        if self.path == "/slow":
            time.sleep(0.5)
        if self.path == "/nap":
            time.sleep(0.02)
        if self.path == "/fall-ill":
            ill.set()
        if self.path == "/leave":
            os.unlink(sys.argv[1])
        if self.path == "/health" and ill.is_set():
            self.send_response(503)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if self.path == "/last-words":
            self.send_response(200)
            self.send_header("Content-Length", "12000000")
            self.end_headers()
            self.wfile.write(b"x" * 12000000)
            os._exit(0)
        if self.path == "/both":
            both.wait()
        body = f"{self.command} {self.path} {os.getpid()} ".encode() + asked
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
env = os.environ
if "LISTEN_FDS" in env:
    assert env["LISTEN_FDS"] == "1" and env["LISTEN_PID"] == str(os.getpid())
    server.socket = socket.socket(fileno=3)
elif "ROADSTEAD_SOCKET" in env:
    server.socket = socket.socket(socket.AF_UNIX)
    server.socket.bind(sys.argv[1])
    assert sys.argv[1] == env["ROADSTEAD_SOCKET"]
    server.socket.listen(int(env.get("BACKLOG", 128)))
else:
    assert sys.argv[1] == "at " + env["PORT"]
    server.server_address = ("127.0.0.1", int(env["PORT"]))
    server.allow_reuse_address = True
    socketserver.TCPServer.server_bind(server)
    server.socket.listen()
print("serves", flush=True)
server.serve_forever()
"#;

/// Bytes of the body of `/last-words`: more than fits between a program and a client that reads nothing.
const LAST_WORDS: usize = 12_000_000;

/// A pool of such programs.
fn pool(more: &str) -> String {
    format!(
        "program = [\"python3\", \"-c\", '''{SERVER}''', \"{{socket}}\"]\nframing = \"http\"\n{more}"
    )
}

fn get(daemon: &Daemon, path: &str) -> String {
    talk(daemon, format!("GET {path} HTTP/1.1\r\n{CLOSE}"))
}

/// The process that answered.
fn answered_by(reply: &str) -> u32 {
    assert_eq!(status(reply), "200", "{reply}");
    let body = reply.split_once("\r\n\r\n").unwrap().1;
    body.split(' ').nth(2).unwrap().parse().unwrap()
}

#[test]
fn a_program_serves_on_each_kind_of_socket_and_many_connections_at_once() {
    for (more, word) in [
        ("", "{socket}"),
        ("socket = \"path\"\n", "{socket}"),
        ("socket = \"port\"\n", "at {port}"),
    ] {
        let settings = pool(&format!("{more}pipeline = 2\nworkers = 1"));
        let (folder, daemon) = serve_pool("", &settings.replace("{socket}", word));
        let mut one = connect(&daemon);
        write!(one, "GET /both HTTP/1.1\r\n{CLOSE}").unwrap();
        // Neither is answered before both have arrived.
        let other = get(&daemon, "/both");
        assert_eq!(answered_by(&rest(&mut one)), answered_by(&other), "{more}");
        let posted = talk(
            &daemon,
            format!(
                "POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\
                 POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n{CLOSE}0\r\n\r\n"
            ),
        );
        let pid = answered_by(&other);
        assert!(posted.contains(&format!("POST /a?b {pid} abc")), "{posted}");
        assert!(posted.contains(&format!("POST /c {pid} ")), "{posted}");
        assert_eq!(daemon.programs(), [pid]);
        assert!(daemon.stop().success());
        assert!(read_log(folder.path()).contains("serves"), "what it prints is logged");
        assert!(!is_alive(pid));
    }
}

#[test]
fn a_program_that_dies_is_named_with_its_end_and_its_last_words() {
    let (folder, daemon) = serve_pool("", &pool("workers = 1"));
    let logged = |words: &str| {
        let log = read_log(folder.path());
        assert!(log.contains(words), "no {words:?} in\n{log}");
    };
    let first = answered_by(&get(&daemon, "/"));
    let said = get(&daemon, "/die");
    assert_eq!(status(&said), "502", "{said}");
    // Clients receive the cause; the log contains the details.
    assert!(said.contains("\r\n\r\ndied: "), "{said}");
    logged("worker main/0 ended (exit code 3; it said last: no more)");
    let second = answered_by(&get(&daemon, "/"));
    assert_ne!(first, second);
    // A program that closes a connection without a reply keeps running.
    let said = talk(&daemon, format!("POST /drop HTTP/1.1\r\nContent-Length: 0\r\n{CLOSE}"));
    assert_eq!(status(&said), "502", "{said}");
    logged("main/0 ended the connection before its reply was whole");
    assert_eq!(answered_by(&get(&daemon, "/")), second);
    assert!(daemon.stop().success());
}

#[test]
fn a_program_that_does_not_answer_in_time_is_replaced() {
    let (_folder, daemon) = serve_pool(
        "",
        &pool("workers = 1\nresponse_timeout = \"300ms\"\nstop_timeout = \"100ms\""),
    );
    let first = answered_by(&get(&daemon, "/"));
    let said = get(&daemon, "/hang");
    assert_eq!(status(&said), "504", "{said}");
    assert_ne!(answered_by(&get(&daemon, "/")), first);
    until("the one that hung is gone", || !is_alive(first));
    assert!(daemon.stop().success());
}

#[test]
fn programs_are_replaced_between_requests_and_none_is_lost() {
    let settings = "workers = 2\npipeline = 4\nrecycle = { max_requests = 5, jitter = \"0%\", share = \"100%\" }";
    let (_folder, daemon) = serve_pool("", &pool(settings));
    let mut seen = std::collections::BTreeSet::new();
    until("all are replaced, and their successors", || {
        std::thread::scope(|scope| {
            let ask = || (0..5).map(|_| answered_by(&get(&daemon, "/"))).collect::<Vec<u32>>();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().for_each(|thread| seen.extend(thread.join().unwrap()));
        });
        seen.len() > 4
    });
    assert!(daemon.stop().success());
}

#[test]
fn one_that_never_accepts_is_killed_and_what_waits_is_told() {
    let settings = "program = [\"sleep\", \"600\"]\nframing = \"http\"\nstart_timeout = \"100ms\"\n\
                    queue = { timeout = \"2s\" }\nworkers = 1";
    for socket in ["inherited", "path", "port"] {
        let (folder, daemon) = serve_pool("", &format!("{settings}\nsocket = \"{socket}\""));
        let said = get(&daemon, "/");
        assert_eq!(status(&said), "503", "{socket}: {said}");
        let log = read_log(folder.path());
        assert!(log.contains("was not ready in time"), "{socket}: {log}");
        assert!(daemon.stop().success(), "{socket}");
    }
}

#[test]
fn nothing_is_left_of_the_programs_nor_of_their_sockets() {
    let folder = folder();
    let text = format!(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n[pool.main]\n{}\n",
        pool("workers = 2\nsocket = \"path\"")
    );
    let mark = format!("hosted-{}", std::process::id());
    let runtime = folder.path().join("r");
    fs::create_dir(&runtime).unwrap();
    let variables = [("RUNTIME_DIRECTORY", runtime.to_str().unwrap()), ("HOSTED_TEST", &mark)];
    let mut daemon = Daemon::serve_with(folder.path(), &text, &variables);
    answered_by(&get(&daemon, "/"));
    let sockets = |folder: &Path| {
        let inner = fs::read_dir(folder).unwrap().next().map(|entry| entry.unwrap().path());
        inner.map_or(0, |inner| fs::read_dir(inner).unwrap().count())
    };
    assert!(sockets(&runtime) >= 1);
    let before = processes_with(&mark);
    daemon.kill();
    until("no program is left after kill -9", || {
        // A process that has released its memory may still hold its sockets.
        processes_with(&mark).is_empty() && !before.iter().any(|pid| is_alive(*pid))
    });
    let folders = || fs::read_dir(&runtime).unwrap().count();
    let daemon = Daemon::serve_with(folder.path(), &text, &variables);
    answered_by(&get(&daemon, "/"));
    assert_eq!(folders(), 1, "its own alone: what the killed one left is gone");
    // Another daemon does not touch live sockets, at its start or its end.
    let elsewhere = crate::daemon::folder();
    let other = Daemon::serve_with(elsewhere.path(), &text, &variables);
    answered_by(&get(&other, "/"));
    assert_eq!(folders(), 2);
    assert!(other.stop().success());
    answered_by(&get(&daemon, "/"));
    assert_eq!(folders(), 1);
    assert!(daemon.stop().success());
    assert_eq!(folders(), 0);
    until("the supervisor has followed its daemon", || processes_with(&mark).is_empty());
}

#[test]
fn a_pool_recovers_when_the_folder_of_its_sockets_is_removed_or_replaced() {
    for socket in ["inherited", "path"] {
        let folder = folder();
        let text = format!(
            "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n[pool.main]\n{}\n",
            pool(&format!("workers = 1\nsocket = \"{socket}\""))
        );
        let runtime = folder.path().join("r");
        fs::create_dir(&runtime).unwrap();
        let variables = [("RUNTIME_DIRECTORY", runtime.to_str().unwrap())];
        let daemon = Daemon::serve_with(folder.path(), &text, &variables);
        answered_by(&get(&daemon, "/"));
        let inner = fs::read_dir(&runtime).unwrap().next().unwrap().unwrap().path();
        fs::remove_dir_all(&inner).unwrap();
        // The process that creates the socket again is not a program of the daemon.
        fs::create_dir(&inner).unwrap();
        let thieves: Vec<_> =
            (1..9).map(|it| UnixListener::bind(inner.join(it.to_string())).unwrap()).collect();
        // Its connection was made before.
        get(&daemon, "/drop");
        until("another program serves", || get(&daemon, "/").starts_with("HTTP/1.1 200"));
        for thief in &thieves {
            thief.set_nonblocking(true).unwrap();
            assert!(thief.accept().is_err(), "{socket}: nothing was sent there");
        }
        assert!(read_log(folder.path()).contains("is gone or was replaced"), "{socket}");
        assert!(daemon.stop().success());
    }
}

#[test]
fn a_drain_waits_for_what_a_program_has() {
    let (_folder, daemon) = serve_pool("", &pool("workers = 1"));
    let mut client = connect(&daemon);
    write!(client, "GET /slow HTTP/1.1\r\n{CLOSE}").unwrap();
    until("it has the request", || {
        let status = daemon.status();
        status["pools"][0]["workers"][0]["in_flight"] == 1
    });
    assert!(daemon.stop().success());
    answered_by(&rest(&mut client));
}

/// Stops the clients, also when a test fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn other_settings_are_taken_over_and_no_request_is_lost() {
    let text = |more: &str, word: &str| {
        let pool = pool(&format!("workers = 2\npipeline = 4\n{more}")).replace("{socket}", word);
        format!(
            "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
             protocol = \"http\"\npool = \"main\"\n[pool.main]\n{pool}\n"
        )
    };
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &text("", "{socket}"));
    let both = || {
        let status = daemon.status();
        let workers = status["pools"][0]["workers"].as_array().unwrap();
        let serve = workers.len() == 2 && workers.iter().all(|it| it["state"] == "serving");
        serve.then(|| workers.iter().map(|it| it["pid"].as_u64()).collect::<Vec<_>>())
    };
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    answered_by(&get(&daemon, "/"));
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _stops = Stops(&stop);
        for (more, word) in [
            ("socket = \"path\"", "{socket}"),
            ("socket = \"port\"", "at {port}"),
            ("env = { A = \"b\" }", "{socket}"),
        ] {
            let (mut before, seen) = (Vec::new(), answered.load(Ordering::Relaxed));
            until("requests go on", || answered.load(Ordering::Relaxed) > seen + 9);
            until("both serve", || both().map(|pids| before = pids).is_some());
            Daemon::rewrite(folder.path(), &text(more, word));
            daemon.reload().unwrap();
            until("all programs are others", || {
                both().is_some_and(|now| now.iter().all(|pid| !before.contains(pid)))
            });
        }
    });
    let before = both();
    let more = "env = { A = \"b\" }\nresponse_timeout = \"300ms\"";
    Daemon::rewrite(folder.path(), &text(more, "{socket}"));
    daemon.reload().unwrap();
    assert_eq!(both(), before, "they would be started as they were");
    assert_eq!(status(&get(&daemon, "/hang")), "504");
    Daemon::rewrite(folder.path(), &text(more, "{socket}").replace("pipeline = 4", "pipeline = 5"));
    let said = daemon.reload().unwrap_err();
    assert!(said.contains("`pipeline` cannot change"), "{said}");
    assert!(daemon.stop().success());
}

#[test]
fn run_serves_a_program_that_serves_http() {
    let folder = folder();
    fs::write(folder.path().join("serve.py"), SERVER).unwrap();
    for (flag, word) in
        [("--serves", ""), ("--serves=path", "{socket}"), ("--serves=port", "at {port}")]
    {
        let mut command = Command::new(BINARY);
        command.current_dir(folder.path());
        command.args(["run", "--http", "127.0.0.1:0", flag, "--", "python3", "serve.py", word]);
        let daemon = Daemon::start(&mut command, folder.path()).unwrap();
        answered_by(&get(&daemon, "/"));
        assert!(daemon.stop().success(), "{flag}");
    }
    let out = Command::new(BINARY).args(["run", "--serves", "--", "cat"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2), "it needs --http");
}

#[test]
fn a_program_that_a_check_finds_ill_is_replaced() {
    let health = |check: &str| {
        format!("health_check = {{ {check}, interval = \"50ms\", fall = 2, rise = 1 }}")
    };
    for (socket, word) in [("inherited", "{socket}"), ("path", "{socket}"), ("port", "at {port}")] {
        let check = health("check = \"http\", path = \"/health\"");
        let settings = pool(&format!("workers = 1\nsocket = \"{socket}\"\n{check}"));
        let (folder, daemon) = serve_pool("", &settings.replace("{socket}", word));
        let first = answered_by(&get(&daemon, "/"));
        until("it was found well", || daemon.metric("roadstead_health_checks_total", &[]) > 2);
        assert_eq!(answered_by(&get(&daemon, "/")), first, "{socket}");
        answered_by(&get(&daemon, "/fall-ill"));
        until("it is replaced", || !is_alive(first));
        assert_ne!(answered_by(&get(&daemon, "/")), first, "{socket}");
        let log = read_log(folder.path());
        assert!(log.contains("is down: it answers 503"), "{socket}: {log}");
        assert!(daemon.stop().success(), "{socket}");
    }
    // A program whose socket is gone from its path accepts no more connections.
    let settings = pool(&format!("workers = 1\nsocket = \"path\"\n{}", health("check = \"tcp\"")));
    let (folder, daemon) = serve_pool("", &settings);
    let first = answered_by(&get(&daemon, "/leave"));
    until("it is replaced", || !is_alive(first));
    assert_ne!(answered_by(&get(&daemon, "/")), first);
    assert!(read_log(folder.path()).contains("is down: no connection"));
    assert!(daemon.stop().success());
}

#[test]
fn a_client_stays_with_its_program_by_a_cookie_until_that_is_gone() {
    let cookie = |reply: &str| {
        let mut lines = reply.lines().filter_map(|line| line.strip_prefix("Set-Cookie: "));
        lines.next().map(|line| line.split(';').next().unwrap().to_owned())
    };
    for redispatch in [true, false] {
        let sticky =
            format!("workers = 3\nsticky = {{ cookie = \"worker\", redispatch = {redispatch} }}");
        let (_folder, daemon) = serve_pool("", &pool(&sticky));
        let with =
            |cookie: &str| talk(&daemon, format!("GET / HTTP/1.1\r\nCookie: {cookie}\r\n{CLOSE}"));
        let first = get(&daemon, "/");
        let (pid, bound) = (answered_by(&first), cookie(&first).expect("it is told"));
        until("others answer others", || answered_by(&get(&daemon, "/")) != pid);
        for _ in 0..4 {
            let reply = with(&bound);
            assert_eq!((answered_by(&reply), cookie(&reply)), (pid, None));
        }
        let process = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        until("its end is known", || !daemon.programs().contains(&pid));
        let reply = with(&bound);
        if !redispatch {
            assert!(reply.contains("gone"), "{reply}");
            assert_ne!(status(&reply), "200", "{reply}");
        } else {
            let (other, told) = (answered_by(&reply), cookie(&reply).expect("it is told anew"));
            assert!(other != pid && told != bound);
            assert_eq!(answered_by(&with(&told)), other);
        }
        assert!(daemon.stop().success());
    }
}

#[test]
fn a_pool_of_them_is_fallback_as_one_of_servers_is() {
    let fallback = "workers = 1\nfallback = { redirect = \"https://status.example/\", status = 307, retry_after = \"off\" }";
    let (_folder, daemon) = serve_pool("", &pool(fallback));
    answered_by(&get(&daemon, "/"));
    ctl(&daemon, &["fallback", "main", "on"]);
    let said = get(&daemon, "/");
    assert_eq!(status(&said), "307", "{said}");
    assert!(said.contains("Location: https://status.example/"), "{said}");
    ctl(&daemon, &["fallback", "main", "off"]);
    answered_by(&get(&daemon, "/"));
    assert!(daemon.stop().success());
}

#[test]
fn what_one_said_before_it_ended_reaches_a_client_that_takes_it_late() {
    let (_folder, daemon) = serve_pool("", &pool("workers = 1\nstop_timeout = \"100ms\""));
    let first = answered_by(&get(&daemon, "/"));
    let mut client = connect(&daemon);
    write!(client, "GET /last-words HTTP/1.1\r\n{CLOSE}").unwrap();
    let (mut said, mut block) = (Vec::new(), vec![0; 64 << 10]);
    while is_alive(first) {
        match client.read(&mut block).unwrap() {
            0 => break,
            count => said.extend_from_slice(&block[..count]),
        }
    }
    // Another program serves if all output of this one has arrived at the daemon. Otherwise it keeps its slot, and this
    // request waits in vain for longer than `stop_timeout`.
    get(&daemon, "/");
    client.read_to_end(&mut said).unwrap();
    until("another serves", || status(&get(&daemon, "/")) == "200");
    let head = said.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
    assert_eq!(said.len() - head - 4, LAST_WORDS, "all of it");
    assert!(daemon.stop().success());
}

#[test]
fn more_connections_than_its_backlog_takes_wait_in_the_queue() {
    let settings = "workers = 1\nsocket = \"path\"\npipeline = 64\nenv = { BACKLOG = \"0\" }";
    let (_folder, daemon) = serve_pool("", &pool(settings));
    answered_by(&get(&daemon, "/"));
    std::thread::scope(|scope| {
        let ask = || answered_by(&get(&daemon, "/nap"));
        let threads: Vec<_> = (0..48).map(|_| scope.spawn(ask)).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert!(daemon.stop().success());
}
