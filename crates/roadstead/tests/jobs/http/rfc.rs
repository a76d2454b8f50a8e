//! What RFC 9110 and RFC 9112 require of a proxy, through the daemon: one test for each requirement.

use super::*;

/// Returns everything until the connection ends, unchanged.
fn raw(daemon: &Daemon, bytes: impl AsRef<[u8]>) -> String {
    let mut client = connect(daemon);
    client.write_all(bytes.as_ref()).unwrap();
    let mut said = Vec::new();
    client.read_to_end(&mut said).unwrap();
    String::from_utf8(said).unwrap()
}

/// The values of the fields of this name in the last head of these bytes, in their order.
fn values<'a>(said: &'a str, name: &str) -> Vec<&'a str> {
    let head = said.rfind("HTTP/1.1 ").map_or(said, |start| &said[start..]);
    let head = head.split("\r\n\r\n").next().unwrap();
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let named = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value.trim()).collect()
}

fn is_date(value: &str) -> bool {
    let shape: String = value.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let words: Vec<&str> = shape.split(' ').collect();
    let [day, "00", month, "0000", "00:00:00", "GMT"] = words[..] else { return false };
    day.len() == 4 && day.ends_with(',') && month.len() == 3
}

#[test]
fn forwarded_messages_have_a_via_both_ways() {
    let reply = b"HTTP/1.1 200 OK\r\nVia: 1.0 origin\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(&[("/via", Answer::Bytes(reply.to_vec()))]);
    let (_folder, daemon) = serve(&server, "", "");
    let said = raw(&daemon, format!("GET /via HTTP/1.1\r\nVia: 1.1 first\r\n{CLOSE}"));
    assert_eq!(values(&said, "via"), ["1.0 origin", "1.1 roadstead"]);
    assert_eq!(values(&server.heads("/via")[0], "via"), ["1.1 first", "1.1 roadstead"]);
    raw(&daemon, "GET /old HTTP/1.0\r\n\r\n");
    assert_eq!(values(&server.heads("/old")[0], "via"), ["1.0 roadstead"]);
    let said = raw(&daemon, "GET  / HTTP/1.1\r\n\r\n");
    assert_eq!(values(&said, "via"), [""; 0], "our own answers are not forwarded");

    let (_folder, named) = serve(&server, "via = \"edge.example:8080\"", "");
    let said = raw(&named, format!("GET /a HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(values(&said, "via"), ["1.1 edge.example:8080"]);
    let (_folder, off) = serve(&server, "via = \"off\"", "");
    let said = raw(&off, format!("GET /off HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(values(&said, "via"), [""; 0]);
    assert_eq!(values(&server.heads("/off")[0], "via"), [""; 0]);
}

#[test]
fn every_answer_has_one_date() {
    let dated =
        b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(&[("/dated", Answer::Bytes(dated.to_vec()))]);
    let listener = "[[listener.main.route]]\npath = \"/fixed\"\nrespond = { body = \"x\" }\n\
         [[listener.main.route]]\npath = \"/away\"\nredirect = { to = \"https://b/\" }\n\
         [[listener.main.route]]\npath = \"/edited\"\nrespond = { body = \"x\" }\n\
         response_headers = { set = { x-a = \"b\" } }\n\
         [[listener.main.route]]\npath = \"/program\"\npool = \"program\"\n\
         [pool.program]\nprogram = [\"sed\", \"-u\", \"s/.*/hello/\"]\n";
    let (_folder, daemon) = serve(&server, listener, "");
    for request in [
        "GET /fixed HTTP/1.1",
        "GET /away HTTP/1.1",
        "GET /edited HTTP/1.1",
        "GET /program HTTP/1.1",
        "GET /undated HTTP/1.1",
        "HEAD /fixed HTTP/1.1",
        "TRACE / HTTP/1.1",
        "GET / HTTP/2.0",
    ] {
        let said = raw(&daemon, format!("{request}\r\n{CLOSE}"));
        let dates = values(&said, "date");
        assert!(dates.len() == 1 && is_date(dates[0]), "{request}: {said}");
    }
    let said = raw(&daemon, format!("GET /dated HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(values(&said, "date"), ["Sun, 06 Nov 1994 08:49:37 GMT"]);
}

#[test]
fn a_connection_over_the_limit_is_told_the_date() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let pool = format!("servers = [\"{}\"]", server.local_addr().unwrap());
    let (_folder, daemon) = serve_pool("connections_max = 1", &pool);
    let mut first = connect(&daemon);
    first.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    // Its request is in flight, so that it is not closed as an idle one.
    let _in_flight = server.accept().unwrap();
    let said = raw(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"));
    assert!(status(&said) == "503" && values(&said, "date").len() == 1, "{said}");
}

#[test]
fn trace_is_rejected_unless_the_listener_allows_it() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    let trace = format!("TRACE /trace HTTP/1.1\r\n{CLOSE}");
    assert_eq!(status(&raw(&daemon, &trace)), "501");
    assert_eq!(server.heads("/trace"), [""; 0]);
    let (_folder, daemon) = serve(&server, "allow_trace = true", "");
    assert_eq!(status(&raw(&daemon, &trace)), "200");
    assert_eq!(server.heads("/trace").len(), 1);
}

#[test]
fn max_forwards_is_counted_down_and_ends_here_at_zero() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "allow_trace = true", "");
    let ask = |method: &str, path: &str, hops: &str| {
        let fields = format!("Max-Forwards: {hops}\r\nCookie: secret\r\n");
        raw(&daemon, format!("{method} {path} HTTP/1.1\r\n{fields}{CLOSE}"))
    };
    for method in ["TRACE", "OPTIONS"] {
        let path = format!("/{method}");
        assert_eq!(status(&ask(method, &path, "3")), "200");
        assert_eq!(values(&server.heads(&path)[0], "max-forwards"), ["2"], "{method}");
        let said = ask(method, &path, "0");
        assert_eq!(status(&said), "200", "{said}");
        assert_eq!(server.heads(&path).len(), 1, "{method}: it went no further");
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        if method == "TRACE" {
            assert!(head.contains("Content-Type: message/http"), "{said}");
            assert!(body.starts_with("TRACE /TRACE HTTP/1.1\r\nMax-Forwards: 0\r\n"), "{said}");
            assert!(!body.contains("secret"), "{said}");
        } else {
            assert!(head.contains("Content-Length: 0") && body.is_empty(), "{said}");
        }
    }
    assert_eq!(status(&ask("GET", "/GET", "0")), "200");
    assert_eq!(
        values(&server.heads("/GET")[0], "max-forwards"),
        ["0"],
        "of others it means nothing"
    );
}

#[test]
fn a_response_before_the_end_of_its_request_announces_the_close() {
    let early = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pool = format!("servers = [\"{}\"]", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        read_until(&mut socket, "\r\n\r\n");
        socket.write_all(early).unwrap();
        rest(&mut socket);
    });
    let (_folder, daemon) = serve_pool("", &pool);
    let said = raw(&daemon, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    assert!(said.ends_with("no"), "{said}");
    assert_eq!(values(&said, "connection"), ["close"]);
    server.join().unwrap();
}

#[test]
fn framing_is_forwarded_in_one_spelling() {
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length:\t002 \r\n\r\nok";
    let chunks =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\tCHUNKED\r\n\r\n002 \r\nok\r\n00\t; x\r\n\r\n";
    let server = Server::start(&[
        ("/length", Answer::Bytes(reply.to_vec())),
        ("/chunks", Answer::Bytes(chunks.to_vec())),
    ]);
    let (_folder, daemon) = serve(&server, "", "");
    let said =
        raw(&daemon, format!("POST /length HTTP/1.1\r\nContent-Length:\t\t005\t\r\n{CLOSE}hello"));
    assert!(said.contains("\r\nContent-Length: 2\r\n") && said.ends_with("ok"), "{said}");
    let seen = server.seen();
    assert!(seen[0].head.contains("\r\nContent-Length: 5\r\n"), "{}", seen[0].head);
    assert_eq!(seen[0].body, b"hello");
    let said = raw(&daemon, format!("GET /chunks HTTP/1.1\r\n{CLOSE}"));
    assert!(said.contains("\r\nTransfer-Encoding: chunked\r\n"), "{said}");
    assert!(said.ends_with("\r\n\r\n2\r\nok\r\n0\r\n\r\n"), "{said}");
}

#[test]
fn blanks_behind_a_chunk_size_are_accepted() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    let mut client = connect(&daemon);
    // The trailer keeps it in chunks.
    let head = "POST /blanks HTTP/1.1\r\nTransfer-Encoding: chunked\r\n";
    let body = "5  \r\nhello\r\n006\t;a=b\r\n world\r\n0 \r\nServer-Timing: a\r\n\r\n";
    client.write_all(format!("{head}{CLOSE}{body}").as_bytes()).unwrap();
    let said = rest(&mut client);
    assert!(said.ends_with("hello world"), "{said}");
    assert_eq!(server.seen()[0].body, b"hello world");
}

#[test]
fn a_higher_minor_version_is_served_as_1_1() {
    let reply = b"HTTP/1.3 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let server = Server::start(&[("/a", Answer::Bytes(reply.to_vec()))]);
    let (_folder, daemon) = serve(&server, "", "");
    let said =
        raw(&daemon, format!("GET /a HTTP/1.2\r\nHost: a\r\n\r\nGET /a HTTP/1.9\r\n{CLOSE}"));
    assert_eq!(said.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{said}");
    for head in server.heads("/a") {
        assert!(head.starts_with("GET /a HTTP/1.1\r\n"), "{head}");
    }
}

#[test]
fn a_426_keeps_its_upgrade() {
    let reply = b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: TLS/1.2\r\nConnection: upgrade\r\n\
          Content-Length: 0\r\n\r\n";
    let server = Server::start(&[("/a", Answer::Bytes(reply.to_vec()))]);
    let (_folder, daemon) = serve(&server, "", "");
    let said = raw(&daemon, format!("GET /a HTTP/1.1\r\n{CLOSE}"));
    assert_eq!(values(&said, "upgrade"), ["TLS/1.2"]);
    assert_eq!(values(&said, "connection"), ["upgrade", "close"]);
}

#[test]
fn a_status_above_599_is_forwarded_and_counts_as_a_failure() {
    let odd =
        |status: u16| format!("HTTP/1.1 {status} Odd\r\nContent-Length: 2\r\n\r\nok").into_bytes();
    let failing =
        Server::start(&[("/600", Answer::Bytes(odd(600))), ("/999", Answer::Bytes(odd(999)))]);
    let other = Server::start(&[]);
    let pool = format!(
        "servers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\n\
         health_check = {{ max_fails = 2, unhealthy_status = \"500..599\", fail_duration = \"1h\" }}",
        failing.port, other.port
    );
    let (_folder, daemon) = serve_pool("", &pool);
    for path in ["/600", "/999", "/600", "/999"] {
        let said = raw(&daemon, format!("GET {path} HTTP/1.1\r\n{CLOSE}"));
        let from_other = status(&said) == "200";
        assert!(from_other || status(&said) == &path[1..] && said.ends_with("ok"), "{said}");
    }
    until("it is ejected", || daemon.status()["pools"][0]["places"][0]["health"] == "ejected");
    assert!(!failing.seen().is_empty());
}

#[test]
fn the_port_of_the_scheme_in_an_absolute_target_says_nothing() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    for (target, host) in [("http://a:80/x", "a"), ("http://a/x", "a:80")] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&raw(&daemon, request)), "200", "{target} {host}");
    }
    let hosts: Vec<String> =
        server.heads("/x").iter().map(|head| values(head, "host").join(",")).collect();
    assert_eq!(hosts, ["a:80", "a"], "the target replaces the field");
    let other = "GET http://a:80/x HTTP/1.1\r\nHost: a:81\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&raw(&daemon, other)), "400");
}

#[test]
fn two_spaces_are_no_version() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    for line in ["GET /  HTTP/1.1", "GET  / HTTP/1.1", "GET / HTTP/1.1 "] {
        let said = raw(&daemon, format!("{line}\r\n{CLOSE}"));
        assert!(status(&said) == "400" && said.contains("request-line: "), "{line}: {said}");
    }
}

#[test]
fn the_head_of_a_response_has_limits_of_its_pool() {
    let many = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n", "A: b\r\n".repeat(150));
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(40_000));
    let server = Server::start(&[
        ("/many", Answer::Bytes(many.into_bytes())),
        ("/long", Answer::Bytes(long.into_bytes())),
    ]);
    let ask = |daemon: &Daemon, path: &str| {
        status(&raw(daemon, format!("POST {path} HTTP/1.1\r\nContent-Length: 0\r\n{CLOSE}")))
            .to_owned()
    };
    let (_folder, usual) = serve(&server, "", "health_check = \"off\"");
    assert_eq!([ask(&usual, "/many"), ask(&usual, "/long")], ["502", "502"]);
    let limits = "health_check = \"off\"\nresponse_head_max = \"48KiB\"\nresponse_fields_max = 151";
    let (_folder, raised) = serve(&server, "", limits);
    assert_eq!([ask(&raised, "/many"), ask(&raised, "/long")], ["200", "200"]);
    let limits = "health_check = \"off\"\nresponse_head_max = \"256B\"\nresponse_fields_max = 150";
    let (_folder, lowered) = serve(&server, "", limits);
    assert_eq!([ask(&lowered, "/many"), ask(&lowered, "/long")], ["502", "502"]);
}
