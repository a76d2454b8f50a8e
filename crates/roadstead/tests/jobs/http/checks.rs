//! Health checks of idle servers: how a server is excluded and included again.

use std::fs;

use super::balance::{named, who};
use super::{CLOSE, serve_pool, status, talk};
use crate::daemon::{Daemon, read_log, until};
use crate::http_server::{Answer, Server};

/// Frequent checks, so that a test does not wait.
const OFTEN: &str = "interval = \"20ms\", timeout = \"5s\"";

/// A pool of these servers whose `health_check` has these options.
fn pool(servers: &[&Server], health: &str) -> String {
    let servers: Vec<String> =
        servers.iter().map(|server| format!("\"127.0.0.1:{}\"", server.port)).collect();
    format!("servers = [{}]\nhealth_check = {{ {OFTEN}, {health} }}", servers.join(", "))
}

/// Returns the state of the server at an index, and the result of its last check.
fn held(daemon: &Daemon, place: usize) -> (String, String) {
    let of = &daemon.status()["pools"][0]["places"][place];
    let text = |name: &str| of[name].as_str().unwrap_or_default().to_owned();
    (text("health"), text("check"))
}

fn becomes(daemon: &Daemon, place: usize, health: &str) -> String {
    until(health, || {
        let (held, said) = held(daemon, place);
        held == health && !said.is_empty()
    });
    held(daemon, place).1
}

fn reply(status: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Bytes(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").into())
}

#[test]
fn a_server_that_says_it_is_ill_gets_nothing_until_it_says_it_is_well() {
    let [a, b] = ["a", "b"].map(named);
    a.answer("/healthz", reply("200 OK", "all well"));
    b.answer("/healthz", reply("200 OK", "all well"));
    let health = "check = \"http\", path = \"/healthz\", host = \"app.example\", body = \"well\"";
    let (folder, daemon) = serve_pool("", &pool(&[&a, &b], health));
    assert!(becomes(&daemon, 0, "up").starts_with("it answers 200 and what is expected"));
    a.answer("/healthz", reply("503 Service Unavailable", "all well"));
    let said = becomes(&daemon, 0, "down");
    assert!(said.starts_with("it answers 503, "), "{said}");
    for _ in 0..6 {
        assert_eq!(who(&daemon), "b");
    }
    let why = daemon.page("/pools/main/why");
    assert!(why.contains(&format!("out: 127.0.0.1:{} down", a.port)), "{why}");
    a.answer("/healthz", reply("200 OK", "ill"));
    until("its body is looked at", || held(&daemon, 0).1.contains("without `well`"));
    a.answer("/healthz", reply("200 OK", "well"));
    becomes(&daemon, 0, "up");
    until("it serves again", || who(&daemon) == "a");
    let head = &a.heads("/healthz")[0];
    assert!(head.contains("Host: app.example\r\n"), "{head}");
    assert!(daemon.metric("roadstead_health_check_failures_total", &[]) >= 3);
    assert!(daemon.metric("roadstead_health_checks_total", &[]) > 5);
    let log = read_log(folder.path());
    assert!(log.contains("is down: it answers 503"), "{log}");
}

#[test]
fn every_way_a_check_can_fail_is_told_and_leaves_the_server_out() {
    let ill = Server::start(&[
        ("/silence", Answer::Silence),
        ("/reset", Answer::Reset),
        ("/garbage", Answer::Bytes(b"HELLO\r\n\r\n".to_vec())),
        ("/short", Answer::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_vec())),
        ("/moved", Answer::Bytes(b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n".to_vec())),
    ]);
    for (path, more, said) in [
        ("/silence", "timeout = \"50ms\"", "no answer in time"),
        ("/reset", "timeout = \"5s\"", "it ended the connection before its answer was whole"),
        ("/garbage", "timeout = \"5s\"", "it answers against the rules"),
        ("/short", "timeout = \"5s\", body = \"x\"", "it answers 200 without `x`"),
        ("/moved", "timeout = \"5s\", status = \"200\"", "it answers 301"),
    ] {
        let text = format!(
            "servers = [\"127.0.0.1:{}\"]\nhealth_check = {{ check = \"http\", path = \"{path}\", interval = \"20ms\", \
             {more} }}\nqueue = {{ timeout = \"30s\" }}",
            ill.port
        );
        let (_folder, daemon) = serve_pool("", &text);
        let told = becomes(&daemon, 0, "down");
        assert!(told.starts_with(said), "{path}: {told}");
        let refused = talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"));
        assert_eq!(status(&refused), "503", "{refused}");
    }
}

#[test]
fn an_ejected_server_returns_only_when_its_checks_pass_and_the_log_says_why() {
    let [a, b] = ["a", "b"].map(named);
    a.answer("/", reply("500 Internal Server Error", "ill"));
    a.answer("/healthz", reply("500 Internal Server Error", "ill"));
    b.answer("/healthz", reply("200 OK", "well"));
    // Health checks alone would never exclude it.
    let health = "check = \"http\", path = \"/healthz\", fall = 1000, \
                  max_fails = 3, unhealthy_status = \"500..599\", fail_duration = \"50ms\"";
    let (folder, daemon) = serve_pool("", &pool(&[&a, &b], health));
    until("it is ejected", || {
        talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"));
        daemon.metric("roadstead_worker_ejections_total", &[]) == 1
    });
    let said = becomes(&daemon, 0, "down");
    assert!(said.starts_with("it answers 500"), "{said}");
    let place = &daemon.status()["pools"][0]["places"][0];
    assert_eq!(place["health_cause"], "checks", "{place}");
    assert!(place["health_since_ms"].is_number() && place["ejected_for_ms"].is_null(), "{place}");
    let before = a.heads("/").len();
    for _ in 0..20 {
        assert_eq!(who(&daemon), "b");
    }
    assert_eq!(a.heads("/").len(), before, "it gets nothing though its time is over");
    a.answer("/healthz", reply("200 OK", "well"));
    becomes(&daemon, 0, "up");
    let log = read_log(folder.path());
    for line in [
        "is ejected for 50.0ms: failures in a row",
        "is down: it answers 500",
        "serves again: it answers 200",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
}

#[test]
fn a_server_that_fails_a_third_of_its_requests_is_ejected() {
    let [a, b] = ["a", "b"].map(named);
    a.answer("/ill", reply("500 Internal Server Error", "ill"));
    let text = format!(
        "servers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\nhealth_check = {{ fail_rate = \"30%\", fail_min_requests = 9, \
         unhealthy_status = \"500..599\", fail_duration = \"1h\" }}",
        a.port, b.port
    );
    let folder = crate::daemon::folder();
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[daemon]\nshards = 1\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"http\"\npool = \"main\"\n[pool.main]\n{text}\n"
    );
    let daemon = Daemon::serve(folder.path(), &text);
    // Each server gets every other request; at `a`, every third of them fails.
    for request in 0..18 {
        let path = if request % 6 < 2 { "/ill" } else { "/" };
        talk(&daemon, format!("GET {path} HTTP/1.1\r\n{CLOSE}"));
    }
    until("it is ejected", || {
        talk(&daemon, format!("GET /ill HTTP/1.1\r\n{CLOSE}"));
        held(&daemon, 0).0 == "ejected"
    });
    let log = read_log(folder.path());
    assert!(log.contains("is ejected for 3600.0s: fail rate"), "{log}");
}

#[test]
fn a_server_that_was_killed_is_out_at_its_next_request_and_comes_back_by_itself() {
    let [a, b] = ["a", "b"].map(named);
    let (_folder, daemon) = serve_pool("", &pool(&[&a, &b], "check = \"tcp\", fall = 2"));
    becomes(&daemon, 0, "up");
    let port = a.kill();
    for _ in 0..20 {
        let said = talk(&daemon, format!("POST / HTTP/1.1\r\nContent-Length: 1\r\n{CLOSE}x"));
        assert_eq!(status(&said), "200", "{said}");
    }
    let said = becomes(&daemon, 0, "down");
    assert!(said.starts_with("no connection: "), "{said}");
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nA".to_vec();
    let _again = Server::start_at(port, &[("/", Answer::Bytes(reply))]);
    becomes(&daemon, 0, "up");
    until("it serves again", || who(&daemon) == "A");
}

#[test]
fn a_new_server_may_have_to_be_checked_first() {
    let a = named("a");
    a.answer("/healthz", Answer::Silence);
    let health = "check = \"http\", path = \"/healthz\", checked_first = true";
    let text = pool(&[&a], health).replace("timeout = \"5s\"", "timeout = \"50ms\"");
    let (_folder, daemon) = serve_pool("", &text);
    let said = talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(status(&said), "503", "{said}");
    a.answer("/healthz", reply("204 No Content", ""));
    becomes(&daemon, 0, "up");
    assert_eq!(who(&daemon), "a");
}

#[test]
fn a_program_of_the_operator_can_say_who_is_well() {
    let [a, b] = ["a", "b"].map(named);
    let text = pool(&[&a, &b], "check = \"program\", command = [\"sh\", \"check.sh\"]");
    let text = text.replace(
        "[\"sh\", \"check.sh\"]",
        "[\"sh\", \"-c\", \"echo looked; test ! -e $ROADSTEAD_WORKER\"]",
    );
    let (folder, daemon) = serve_pool("", &text);
    assert!(becomes(&daemon, 0, "up").starts_with("exit code 0"));
    let ill = folder.path().join(format!("127.0.0.1:{}", a.port));
    fs::write(&ill, "").unwrap();
    assert!(becomes(&daemon, 0, "down").starts_with("exit code 1"));
    assert_eq!((who(&daemon), who(&daemon)), ("b".to_owned(), "b".to_owned()));
    fs::remove_file(&ill).unwrap();
    becomes(&daemon, 0, "up");
}

#[test]
fn health_can_be_off() {
    let a = named("a");
    let text = format!("servers = [\"127.0.0.1:{}\"]\nhealth_check = \"off\"", a.port);
    let (_folder, daemon) = serve_pool("", &text);
    assert_eq!(who(&daemon), "a");
    assert_eq!(held(&daemon, 0), ("up".to_owned(), String::new()));
    assert_eq!(daemon.metric("roadstead_health_checks_total", &[]), 0);
}

#[test]
fn replies_of_a_failing_status_leave_their_server_out_where_that_is_wanted() {
    let [a, b] = ["a", "b"].map(named);
    a.answer("/", reply("500 Internal Server Error", "ill"));
    for (failing, expected) in [("", "up"), (", unhealthy_status = \"500..599\"", "ejected")] {
        let pool = format!(
            "servers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\nhealth_check = {{ max_fails = 3, fail_duration = \"1h\"{failing} }}",
            a.port, b.port
        );
        let (_folder, daemon) = serve_pool("", &pool);
        let ask = || status(&talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"))).to_owned();
        let said: Vec<String> = (0..20).map(|_| ask()).collect();
        assert!(said.contains(&"500".to_owned()) && said.contains(&"200".to_owned()), "{said:?}");
        until(expected, || daemon.status()["pools"][0]["places"][0]["health"] == expected);
        if expected == "ejected" {
            until("all know", || (0..8).all(|_| ask() == "200"));
        } else {
            assert!((0..8).any(|_| ask() == "500"), "a reply is a reply");
        }
    }
}
