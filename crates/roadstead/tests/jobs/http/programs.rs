//! Programs without HTTP support behind an HTTP listener.

use std::io::Write;
use std::time::Duration;

use super::{CLOSE, connect, read_until, rest, serve_pool, status, talk};
use crate::addresses::stream_from;
use crate::daemon::{Daemon, until};

/// Answers with the request as a text.
const SHOW: &str = "program = [\"sed\", \"-u\", \"s/^/got /\"]";

/// Answers with the body of the request.
const SAY: &str = "program = [\"python3\", \"-uc\", \"\"\"
import json, sys
for line in sys.stdin:
    print(json.loads(line)['body'], flush=True)
\"\"\"]";

fn body(reply: &str) -> &str {
    reply.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

fn post(daemon: &Daemon, body: &str) -> String {
    let length = body.len();
    talk(daemon, format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\n{CLOSE}{body}"))
}

fn post_from(host: u8, daemon: &Daemon, body: &str) -> String {
    let mut client = stream_from(host, daemon.address());
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let length = body.len();
    write!(client, "POST / HTTP/1.1\r\nContent-Length: {length}\r\n{CLOSE}{body}").unwrap();
    rest(&mut client)
}

#[test]
fn a_program_gets_each_request_as_one_object() {
    let (_folder, daemon) = serve_pool("", SHOW);
    let said = talk(
        &daemon,
        format!(
            "GET /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nX-A: \"1\r\nx-a: 2\r\nX-Real-IP: 1.2.3.4\r\n\r\n\
             PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
             3;x=y\r\na\nb\r\n2\r\n\u{e4}\r\n0\r\nX: y\r\n\r\n\
             HEAD /c HTTP/1.1\r\n{CLOSE}"
        ),
    );
    let replies: Vec<&str> = said.split("HTTP/1.1 200 OK\r\n").skip(1).collect();
    assert_eq!(replies.len(), 3, "{said}");
    let got = r#"got {"method":"GET","path":"/a%20b","query":"x=1","client":"127.0.0.1","headers":{"host":"h","x-a":"\"1, 2"},"body":""}"#;
    assert_eq!(body(replies[0]), got);
    assert!(replies[0].starts_with("Content-Type: text/plain; charset=utf-8\r\n"), "{said}");
    let put = r#"got {"method":"PUT","path":"/b","query":"","client":"127.0.0.1","headers":{"host":"h"},"body":"a\nbä"}"#;
    assert_eq!(body(replies[1]), put);
    assert_eq!(body(replies[2]), "", "a reply to HEAD has no body");
    assert!(daemon.stop().success());
}

#[test]
fn a_body_is_whole_before_a_program_gets_it_and_others_are_served_meanwhile() {
    let (_folder, daemon) = serve_pool("body_max = \"1KiB\"", SHOW);
    let mut slow = connect(&daemon);
    let head = "POST /slow HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n";
    write!(slow, "{head}{CLOSE}").unwrap();
    assert_eq!(read_until(&mut slow, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    slow.write_all(b"\xff\x00").unwrap();
    let other = talk(&daemon, format!("GET /other HTTP/1.1\r\n{CLOSE}"));
    assert!(body(&other).contains("/other"), "{other}");
    slow.write_all(b"ab").unwrap();
    let said = rest(&mut slow);
    assert!(said.ends_with(r#""body":"/wBhYg==","base64":true}"#), "{said}");

    assert_eq!(status(&post(&daemon, &"x".repeat(1024))), "200");
    assert_eq!(status(&post(&daemon, &"x".repeat(1025))), "413");
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n";
    let said = talk(&daemon, format!("{chunked}{CLOSE}401\r\n{}\r\n0\r\n\r\n", "x".repeat(1025)));
    assert_eq!(status(&said), "413", "{said}");
    let said = talk(&daemon, format!("{chunked}{CLOSE}1\r\nxx"));
    assert_eq!(status(&said), "400", "{said}");
    assert!(daemon.stop().success());
}

#[test]
fn bodies_that_come_hold_no_more_together_than_they_may() {
    let (_folder, daemon) = serve_pool("body_max = \"1KiB\"\nbodies_max = \"1500B\"", SHOW);
    let mut slow = stream_from(2, daemon.address());
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(slow, "POST /slow HTTP/1.1\r\nContent-Length: 1024\r\n{CLOSE}").unwrap();
    slow.write_all(&[b'a'; 1000]).unwrap();
    let mut said = String::new();
    until("its part to be counted", || {
        said = post(&daemon, &"x".repeat(600));
        status(&said) == "503"
    });
    assert!(said.contains("Retry-After: 1\r\n"), "{said}");
    assert_eq!(status(&post(&daemon, &"x".repeat(500))), "200");
    slow.write_all(&[b'a'; 24]).unwrap();
    assert_eq!(status(&rest(&mut slow)), "200");
    assert_eq!(status(&post(&daemon, &"x".repeat(1024))), "200");
    assert!(daemon.stop().success());
}

#[test]
fn bodies_of_one_address_that_do_not_end_leave_room_for_those_of_another() {
    for (trusted, most, other) in [("[\"127.0.0.9\"]", 4, "200"), ("[\"127.0.0.2\"]", 8, "503")] {
        let limits = "body_max = \"1KiB\"\nbodies_max = \"8KiB\"";
        let (_folder, daemon) = serve_pool(&format!("{limits}\ntrusted = {trusted}"), SHOW);
        let mut held = Vec::new();
        for _ in 0..most {
            let mut slow = stream_from(2, daemon.address());
            write!(slow, "POST / HTTP/1.1\r\nContent-Length: 1024\r\n{CLOSE}").unwrap();
            slow.write_all(&[b'a'; 1023]).unwrap();
            held.push(slow);
        }
        let whole = || status(&post_from(2, &daemon, &"x".repeat(1024))).to_owned();
        until("there is no room for another", || whole() == "503");
        assert_eq!(status(&post(&daemon, &"x".repeat(1024))), other, "with trusted = {trusted}");
        drop(held);
        until("it is given back", || whole() == "200");
        assert!(daemon.stop().success());
    }
}

#[test]
fn an_object_is_a_reply_and_one_against_the_rules_is_counted_by_its_reason() {
    let (_folder, daemon) = serve_pool("", SAY);
    let good = post(
        &daemon,
        r#"{"status":201,"headers":{"Location":"/x","Set-Cookie":["a=1","b=2"]},"body":"\ud83d\ude00"}"#,
    );
    assert_eq!(status(&good), "201");
    for line in ["Location: /x\r\n", "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n", "Length: 4\r\n"] {
        assert!(good.contains(line), "{good}");
    }
    assert_eq!(body(&good), "😀");
    assert_eq!(body(&post(&daemon, r#"{"body":"AAE=","base64":true}"#)), "\0\u{1}");
    assert_eq!(body(&post(&daemon, "just a text")), "just a text");
    assert_eq!(status(&post(&daemon, r#"{"status":204}"#)), "204");
    for (answer, reason) in [
        ("{nonsense", "answer"),
        (r#"{"status":200,"state":1}"#, "answer"),
        (r#"{"status":101}"#, "answer-status"),
        (r#"{"headers":{"Transfer-Encoding":"chunked"}}"#, "answer-field"),
        (r#"{"headers":{"a b":"1"}}"#, "field-name"),
        (r#"{"headers":{"a":"1\r\nSet-Cookie: c"}}"#, "control"),
    ] {
        let labels = ["side=\"reply\"", &format!("reason=\"{reason}\"")];
        let before = daemon.metric("roadstead_http_messages_rejected_total", &labels);
        // The connection stays open and the program keeps running, because it follows its framing.
        let mut client = connect(&daemon);
        let length = answer.len();
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        write!(client, "{head}{answer}GET / HTTP/1.1\r\n{CLOSE}").unwrap();
        let said = rest(&mut client);
        assert!(said.starts_with("HTTP/1.1 502 "), "{answer}: {said}");
        assert!(said.contains("\ngarbled: ") && !said.contains("Set-Cookie"), "{said}");
        assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 1, "{answer}: {said}");
        assert_eq!(
            daemon.metric("roadstead_http_messages_rejected_total", &labels),
            before + 1,
            "{answer}"
        );
    }
    assert!(daemon.stop().success());
}

#[test]
fn every_framing_that_carries_an_object_is_behind_http() {
    for (framing, program) in
        [("nul", r#"["sed", "-uz", "s/^/got /"]"#), ("oneshot", r#"["sed", "s/^/got /"]"#)]
    {
        let pool = format!("program = {program}\nframing = \"{framing}\"");
        let (_folder, daemon) = serve_pool("", &pool);
        let said = post(&daemon, "a\nb");
        assert!(said.contains(r#"got {"method":"POST""#), "{framing}: {said}");
        assert!(said.ends_with(r#""body":"a\nb"}"#), "{framing}: {said}");
        assert!(daemon.stop().success());
    }
    for framing in ["len2", "len4", "netstring"] {
        let pool = format!("program = [\"cat\"]\nframing = \"{framing}\"");
        let (_folder, daemon) = serve_pool("", &pool);
        // The echoed request is not a valid answer.
        assert_eq!(status(&post(&daemon, "a\nb")), "502", "{framing}");
        let labels = ["side=\"reply\"", "reason=\"answer\""];
        assert_eq!(
            daemon.metric("roadstead_http_messages_rejected_total", &labels),
            1,
            "{framing}"
        );
        if framing == "len2" {
            assert_eq!(status(&post(&daemon, &"x".repeat(70_000))), "400", "{framing}");
        }
        assert!(daemon.stop().success());
    }
}
