//! Each rule of docs/http1.md through the daemon: violations are rejected with their reason, in requests and in
//! replies, and counted by that reason.

mod page;

use std::sync::{Arc, Mutex};

use wire::http1::Refusal;

use super::*;

const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\n";
const CHUNKS: &str = "Transfer-Encoding: chunked\r\n\r\n";

/// Requests that violate a rule, and the reason of each rejection.
fn requests() -> Vec<(Refusal, String)> {
    use Refusal::*;
    let post = |rest: &str| format!("{POST}{rest}\r\n\r\n");
    let get = |rest: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{rest}\r\n\r\n");
    let line = |line: &str| format!("{line}\r\nHost: a\r\n\r\n");
    let chunks = |body: &str| format!("{POST}{CHUNKS}{body}");
    let long = |length| "x".repeat(length);
    vec![
        (LengthAndCoding, post("Content-Length: 1\r\nTransfer-Encoding: chunked")),
        (Coding, post("Transfer-Encoding: gzip")),
        (CodingRepeated, post("Transfer-Encoding: chunked, chunked")),
        (CodingVersion, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()),
        (Length, post("Content-Length: +1")),
        (Lengths, post("Content-Length: 1\r\nContent-Length: 2")),
        (ChunkSize, chunks("0x1\r\n")),
        (ChunkEnd, chunks("1\r\nab\r\n")),
        (ChunkExtension, chunks(&format!("1;{}\r\n", long(257)))),
        (LineFeed, "GET / HTTP/1.1\nHost: a\n\n".to_owned()),
        (CarriageReturn, get("A: b\rc")),
        (Control, get("A: b\0c")),
        (FieldName, get("A : b")),
        (Folded, get("A: b\r\n c")),
        (NoColon, get("A")),
        (RequestLine, line("GET /  HTTP/1.1")),
        (Method, line("G=T / HTTP/1.1")),
        (Target, line("GET /a#b HTTP/1.1")),
        (Version, line("GET / HTTP/2.1")),
        (Trace, line("TRACE / HTTP/1.1")),
        (MaxForwards, line("OPTIONS / HTTP/1.1\r\nMax-Forwards: x")),
        (Connect, line("CONNECT a:443 HTTP/1.1")),
        (NoHost, "GET / HTTP/1.1\r\n\r\n".to_owned()),
        (HostTwice, get("Host: a")),
        (Host, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned()),
        (HostTarget, line("GET http://b/ HTTP/1.1")),
        (Expect, post("Expect: 200-ok\r\nContent-Length: 1")),
        (UpgradeBody, post("Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 1")),
        (Connection, get("Connection: host")),
        (LineTooLong, line(&format!("GET /{} HTTP/1.1", long(9000)))),
        (HeadTooLong, get(&format!("A: {}", long(17_000)))),
        (TooManyFields, get(&["A: b"; 100].join("\r\n"))),
        (FieldTooLong, get(&format!("{}: b", long(300)))),
        (Cookies, get(&format!("Cookie: {}", "a=b;".repeat(181)))),
        (BodyTooLong, post("Content-Length: 1048577")),
        (Trailers, chunks("0\r\nA b: c\r\n\r\n")),
    ]
}

/// Heads of replies that break a rule.
fn replies() -> Vec<(Refusal, String)> {
    use Refusal::*;
    let ok = |rest: &str| format!("HTTP/1.1 200 OK\r\n{rest}\r\n\r\n");
    let line = |line: &str| format!("{line}\r\n\r\n");
    let long = |length| "x".repeat(length);
    vec![
        (LengthAndCoding, ok("Content-Length: 1\r\nTransfer-Encoding: chunked")),
        (Coding, ok("Transfer-Encoding: gzip")),
        (CodingRepeated, ok("Transfer-Encoding: gzip, chunked")),
        (CodingVersion, line("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked")),
        (Length, ok("Content-Length: +1")),
        (Lengths, ok("Content-Length: 1\r\nContent-Length: 2")),
        (LineFeed, "HTTP/1.1 200 OK\n\n".to_owned()),
        (CarriageReturn, ok("A: b\rc")),
        (Control, ok("A: b\0")),
        (FieldName, ok("A : b")),
        (Folded, ok("A: b\r\n c")),
        (NoColon, ok("A")),
        (Version, line("HTTP/2.1 200 OK")),
        (Switched, line("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x")),
        (Connection, ok("Connection: transfer-encoding")),
        (StatusLine, line("HTTP/1.1 20 OK")),
        (Interim, "HTTP/1.1 100 Continue\r\n\r\n".repeat(9)),
        (LineTooLong, line(&format!("HTTP/1.1 200 {}", long(9000)))),
        (HeadTooLong, ok(&format!("A: {}", long(40_000)))),
        (TooManyFields, ok(&["A: b"; 101].join("\r\n"))),
        (FieldTooLong, ok(&format!("{}: b", long(300)))),
    ]
}

/// Bodies of replies that violate a rule, after valid heads; the server closes the connection.
fn reply_bodies() -> Vec<(Refusal, String)> {
    use Refusal::*;
    let chunks = |body: &str| format!("HTTP/1.1 200 OK\r\n{CHUNKS}{body}");
    vec![
        (ChunkSize, chunks("1\r\na\r\n0x1\r\nb\r\n0\r\n\r\n")),
        (ChunkEnd, chunks("1\r\nab\r\n0\r\n\r\n")),
        (ChunkExtension, chunks(&format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(257)))),
        (Trailers, chunks("1\r\na\r\n0\r\nA b: c\r\n\r\n")),
        (Truncated, chunks("1\r\na\r\n")),
        (Truncated, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcd".to_owned()),
    ]
}

/// Replies with excess bytes, after which their connections are closed.
fn reply_excesses() -> Vec<(Refusal, String)> {
    use Refusal::*;
    let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    vec![
        (Bodiless, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n".to_owned()),
        (Bodiless, format!("HTTP/1.1 103 Hints\r\nContent-Length: 5\r\n\r\n{empty}")),
        (Unasked, format!("{empty}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")),
    ]
}

/// Invalid answers of a program.
fn answers() -> Vec<(Refusal, String)> {
    use Refusal::*;
    [
        (Answer, "{nonsense"),
        (AnswerStatus, r#"{"status":101}"#),
        (AnswerField, r#"{"headers":{"Transfer-Encoding":"chunked"}}"#),
        (FieldName, r#"{"headers":{"a b":"1"}}"#),
        (Control, r#"{"headers":{"a":"1\r\nb: c"}}"#),
    ]
    .map(|(refusal, answer)| (refusal, answer.to_owned()))
    .to_vec()
}

fn counted(daemon: &Daemon, side: &str, refusal: Refusal) -> u64 {
    let labels = [&*format!("side=\"{side}\""), &*format!("reason=\"{}\"", refusal.as_str())];
    daemon.metric("roadstead_http_messages_rejected_total", &labels)
}

#[test]
fn a_request_that_breaks_a_rule_is_refused_with_its_reason_and_is_the_last() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    for (number, (refusal, request)) in requests().into_iter().enumerate() {
        let said = talk(&daemon, format!("{request}GET /canary HTTP/1.1\r\n{CLOSE}"));
        let shown = request.escape_debug();
        assert_eq!(status(&said), refusal.status().to_string(), "{shown}: {said}");
        assert!(said.contains(&format!("{}: {}", refusal.as_str(), refusal.message())), "{said}");
        assert_eq!(said.matches("Connection: close\r\n").count(), 1, "{shown}: {said}");
        assert_eq!(counted(&daemon, "request", refusal), 1, "{shown}");
        let all = daemon.metric("roadstead_http_messages_rejected_total", &[]);
        assert_eq!(all, number as u64 + 1, "{shown}");
    }
    assert_eq!(server.heads("/canary"), [""; 0]);
}

#[test]
fn a_refused_head_request_gets_no_body() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    let mut asked = 0;
    // An upgrade of HEAD is ignored, and so allowed to have a body.
    for (refusal, request) in requests().into_iter().filter(|it| it.0 != Refusal::UpgradeBody) {
        let Some((_, rest)) =
            request.split_once(' ').filter(|(it, _)| ["GET", "POST"].contains(it))
        else {
            continue;
        };
        for before in ["", "\r\n"] {
            let said = talk(&daemon, format!("{before}HEAD {rest}"));
            let (head, body) = said.split_once("\r\n\r\n").unwrap();
            assert_eq!(status(head), refusal.status().to_string(), "{rest}: {said}");
            assert!(head.contains("Content-Length: "), "{said}");
            assert_eq!(body, "", "{rest}");
            asked += 1;
        }
    }
    assert!(asked > 60, "{asked} requests");
    // If even the method cannot be read, the response has a body with the reason.
    let said = talk(&daemon, "HEAD\t/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(!said.ends_with("\r\n\r\n"), "{said}");
}

#[test]
fn a_request_whose_client_ends_before_it_is_whole_is_counted_as_truncated() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    let bodies = ["Content-Length: 5\r\n\r\nabcd".to_owned(), format!("{CHUNKS}5\r\nabcd")];
    for (number, body) in bodies.iter().enumerate() {
        let mut client = connect(&daemon);
        client.write_all(format!("{POST}{body}").as_bytes()).unwrap();
        // While a connection to the server is being made, the client is not read, so its half-close is not seen as the
        // end of the body. The connection is made when a later request has its reply.
        talk(&daemon, format!("GET /canary HTTP/1.1\r\n{CLOSE}"));
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(&mut client), "");
        assert_eq!(counted(&daemon, "request", Refusal::Truncated), number as u64 + 1);
    }
    assert_eq!(server.heads("/"), [""; 0], "the end of its bytes is that of a request");
}

#[test]
fn a_reply_that_breaks_a_rule_is_a_502_and_is_counted_by_its_reason() {
    let replies = replies();
    let paths: Vec<String> = replies.iter().map(|(it, _)| format!("/{}", it.as_str())).collect();
    let answers: Vec<(&str, Answer)> = paths
        .iter()
        .zip(&replies)
        .map(|(path, (_, reply))| (path.as_str(), Answer::Bytes(reply.as_bytes().to_vec())))
        .collect();
    let server = Server::start(&answers);
    let (_folder, daemon) = serve(&server, "", "health_check = \"off\"");
    for ((refusal, reply), path) in replies.iter().zip(&paths) {
        // The request may have taken effect, so it is not retried.
        let head = format!("POST {path} HTTP/1.1\r\nContent-Length: 0\r\n");
        let said = talk(&daemon, format!("{head}{CLOSE}"));
        let end = said.find("HTTP/1.1 502 ").unwrap_or_else(|| panic!("{refusal:?}: {said}"));
        assert!(said[..end].replace("HTTP/1.1 100 Continue\r\n\r\n", "").is_empty(), "{said}");
        assert_eq!(counted(&daemon, "reply", *refusal), 1, "{}", reply.escape_debug());
        assert_eq!(server.heads(path).len(), 1, "{refusal:?}");
    }
    assert_eq!(daemon.metric("roadstead_http_messages_rejected_total", &[]), replies.len() as u64);
    assert_eq!(status(&talk(&daemon, format!("GET /fine HTTP/1.1\r\n{CLOSE}"))), "200");
}

#[test]
fn a_body_of_a_reply_that_breaks_a_rule_never_looks_whole() {
    for (refusal, reply) in reply_bodies() {
        let server = Server::start(&[("/a", Answer::Last(reply.into_bytes()))]);
        let (_folder, daemon) = serve(&server, "", "health_check = \"off\"");
        let said = talk(&daemon, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        let whole = said.ends_with("0\r\n\r\n") || said.ends_with("\r\n\r\nabcde");
        assert!(!whole, "{refusal:?}: {said}");
        assert_eq!(counted(&daemon, "reply", refusal), 1, "{refusal:?}");
        assert_eq!(status(&talk(&daemon, format!("GET /fine HTTP/1.1\r\n{CLOSE}"))), "200");
    }
}

#[test]
fn a_server_that_says_more_than_its_reply_is_not_asked_again_on_that_link() {
    for (refusal, reply) in reply_excesses() {
        let server = Server::start(&[("/a", Answer::Bytes(reply.clone().into_bytes()))]);
        let (_folder, daemon) = serve(&server, "", "upstream.max_concurrent = 1");
        let said =
            talk(&daemon, format!("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\n{CLOSE}"));
        assert!(!said.contains("evil") && !said.contains("502"), "{refusal:?}: {said}");
        let ours =
            said.ends_with("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        assert!(ours, "{refusal:?}: {said}");
        assert_eq!(counted(&daemon, "reply", refusal), 1, "{refusal:?}");
        assert_eq!(server.connections(), 2, "{refusal:?}");
    }
}

#[test]
fn a_server_that_speaks_though_nothing_was_asked_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pool = format!("servers = [\"{}\"]", listener.local_addr().unwrap());
    let (_folder, daemon) = serve_pool("", &pool);
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        read_until(&mut socket, "\r\n\r\n");
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        (listener, socket)
    });
    let first = talk(&daemon, format!("GET /a HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(status(&first), "200");
    let (listener, mut socket) = server.join().unwrap();
    // The bytes are sent only now, because they must arrive while the connection is idle.
    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").unwrap();
    assert_eq!(rest(&mut socket), "", "its link is closed");
    assert_eq!(counted(&daemon, "reply", Refusal::Unasked), 1);
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        read_until(&mut socket, "\r\n\r\n");
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood").unwrap();
    });
    assert!(talk(&daemon, format!("GET /b HTTP/1.1\r\n{CLOSE}")).ends_with("good"));
    server.join().unwrap();
}

/// A server that answers each head immediately, before the body, and the bytes that it received on each connection.
fn hasty() -> (u16, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let (noted, mut head) = (Arc::clone(&noted), Vec::new());
            let place = {
                let mut all = noted.lock().unwrap();
                all.push(Vec::new());
                all.len() - 1
            };
            std::thread::spawn(move || {
                let (mut bytes, mut answered) = ([0; 4096], false);
                while let Ok(count @ 1..) = socket.read(&mut bytes) {
                    head.extend_from_slice(&bytes[..count]);
                    noted.lock().unwrap()[place].clone_from(&head);
                    if !answered && head.windows(4).any(|end| end == b"\r\n\r\n") {
                        answered = true;
                        let reply = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
                        let _ = socket.write_all(reply);
                    }
                }
            });
        }
    });
    (port, seen)
}

#[test]
fn a_server_that_answers_early_is_not_asked_again_on_that_link() {
    let (port, seen) = hasty();
    let pool = format!("servers = [\"127.0.0.1:{port}\"]\nupstream.max_concurrent = 1");
    let (_folder, daemon) = serve_pool("body_max = \"64MiB\"", &pool);
    for round in 1..=3 {
        let mut client = connect(&daemon);
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000000\r\n\r\n";
        client.write_all(head.as_bytes()).unwrap();
        // This happens before any byte of the body is received. The following bytes are never read as a request.
        let said = read_until(&mut client, "\r\n\r\nno");
        assert_eq!(status(&said), "413", "{said}");
        assert!(said.contains("\r\nConnection: close\r\n"), "{said}");
        let _ = client.write_all(b"GET /canary HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(rest(&mut client), "");
        assert_eq!(counted(&daemon, "reply", Refusal::Early), round);
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3, "each has a link of its own");
    for bytes in seen.iter() {
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(text.matches(" HTTP/1.1\r\n").count(), 1, "{text}");
    }
}
