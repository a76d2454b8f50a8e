//! `retries.on`: which failures and statuses cause a retry on another server.

use std::io::Write;

use super::{CLOSE, connect, read_until, serve_pool, status, talk};
use crate::daemon::{Daemon, read_log};
use crate::http_server::{Answer, Server};

/// Two servers; the first one fails, and gets every request first.
fn two(options: &str) -> (Server, Server, tempfile::TempDir, Daemon) {
    let (bad, good) = (Server::start(&[]), Server::start(&[]));
    let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy".to_vec();
    let chunked =
        b"HTTP/1.1 502 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n".to_vec();
    bad.answer("/busy", Answer::Bytes(busy));
    bad.answer("/chunked", Answer::Bytes(chunked));
    bad.answer("/cut", Answer::Reset);
    let pool = format!(
        "servers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\n\
         balance = \"first\"\n{options}",
        bad.port, good.port
    );
    let (folder, daemon) = serve_pool("", &pool);
    (bad, good, folder, daemon)
}

fn get(daemon: &Daemon, path: &str) -> String {
    talk(daemon, format!("GET {path} HTTP/1.1\r\n{CLOSE}"))
}

fn post(daemon: &Daemon, path: &str) -> String {
    talk(daemon, format!("POST {path} HTTP/1.1\r\nContent-Length: 3\r\n{CLOSE}abc"))
}

#[test]
fn a_response_of_a_chosen_status_is_retried_where_that_is_safe() {
    let (bad, good, _folder, daemon) = two("retries = { on = [\"500..503\"], budget = \"100%\" }");
    for path in ["/busy", "/chunked", "/busy"] {
        let said = get(&daemon, path);
        assert_eq!(status(&said), "200", "{said}");
    }
    assert_eq!((bad.heads("/busy").len(), bad.heads("/chunked").len()), (2, 1));
    assert_eq!((good.heads("/busy").len(), good.heads("/chunked").len()), (2, 1));
    assert_eq!(bad.connections(), 1, "the response was complete: its connection is used again");
    let said = post(&daemon, "/busy");
    assert!(status(&said) == "503" && said.ends_with("busy"), "{said}");
    assert_eq!(good.heads("/busy").len(), 2, "a POST may have taken effect");
}

#[test]
fn a_pool_may_declare_that_every_request_can_be_retried() {
    let options = "idempotent = \"all\"\nretries = { on = [\"503\"], budget = \"100%\" }";
    let (bad, good, _folder, daemon) = two(options);
    assert_eq!(status(&post(&daemon, "/busy")), "200");
    assert_eq!(good.seen()[0].body, b"abc", "the body was sent again");
    // A body that was incomplete when it was sent is not stored.
    let mut client = connect(&daemon);
    client.write_all(b"POST /busy HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab").unwrap();
    crate::daemon::until("it was sent", || daemon.metric("roadstead_workers", &["busy"]) == 1);
    client.write_all(b"cd").unwrap();
    assert!(read_until(&mut client, "busy").starts_with("HTTP/1.1 503 "));
    assert_eq!((bad.heads("/busy").len(), good.heads("/busy").len()), (2, 1));
}

#[test]
fn the_last_response_goes_to_the_client() {
    let (bad, good, _folder, daemon) =
        two("retries = { on = [\"503\"], budget = \"100%\", tries = 3 }");
    good.answer(
        "/busy",
        Answer::Bytes(b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\ngood".to_vec()),
    );
    let said = get(&daemon, "/busy");
    assert_eq!(status(&said), "503", "{said}");
    assert!(said.ends_with("busy") || said.ends_with("good"), "{said}");
    assert_eq!(bad.heads("/busy").len() + good.heads("/busy").len(), 3);
}

#[test]
fn failures_that_are_not_named_are_not_retried() {
    let (bad, good, _folder, daemon) = two("retries = { on = [\"connect\"], budget = \"100%\" }");
    let said = get(&daemon, "/cut");
    assert!(status(&said) == "502" && said.contains("died: "), "{said}");
    assert_eq!(status(&get(&daemon, "/busy")), "503");
    assert_eq!(good.seen().len(), 0);
    bad.kill();
    assert_eq!(status(&get(&daemon, "/")), "200", "no connection: that is named");
}

#[test]
fn without_on_failures_are_retried_and_statuses_are_not() {
    let (_bad, good, _folder, daemon) = two("retries = { budget = \"100%\" }");
    assert_eq!(status(&get(&daemon, "/cut")), "200");
    assert_eq!(status(&get(&daemon, "/busy")), "503");
    assert_eq!((good.heads("/cut").len(), good.heads("/busy").len()), (1, 0));
}

#[test]
fn a_request_that_timed_out_is_retried_where_that_is_chosen() {
    for (on, expected) in
        [("retries = { on = [\"timeout\"], budget = \"100%\" }", "200"), ("", "504")]
    {
        let (bad, _good, _folder, daemon) = two(&format!("response_timeout = \"1s\"\n{on}"));
        bad.answer("/silent", Answer::Silence);
        assert_eq!(status(&get(&daemon, "/silent")), expected, "{on}");
    }
}

#[test]
fn a_failure_that_the_budget_does_not_cover_says_so() {
    let (_bad, good, folder, daemon) = two("retries = { budget = \"0%\", min_retries = 1 }");
    assert_eq!(status(&get(&daemon, "/cut")), "200");
    assert_eq!(status(&get(&daemon, "/cut")), "502");
    assert_eq!(good.heads("/cut").len(), 1);
    let line = "not retried: the budget of `retries` is used up";
    crate::daemon::until("it is logged", || read_log(folder.path()).contains(line));
}
