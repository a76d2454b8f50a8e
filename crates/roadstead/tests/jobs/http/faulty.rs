//! Servers that close, stall, reset and answer in pieces: which requests fail, and how.

use super::*;

#[test]
fn a_server_that_closes_a_link_while_it_rests_costs_no_request() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "", "");
    let mut client = connect(&daemon);
    for round in 0..20 {
        let body = format!("body {round}");
        let length = body.len();
        // The end of the connection and the next request are read in the same turn.
        daemon.stopped(|| {
            server.close_all();
            write!(client, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
                .unwrap();
        });
        let said = read_until(&mut client, &body);
        assert_eq!(status(&said), "200", "{said}");
    }
    assert_eq!(server.heads("/a").len(), 20, "nothing is made twice");
}

#[test]
fn a_server_that_stalls_in_the_middle_of_its_reply_is_given_up() {
    let stalled = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_vec();
    let half = b"HTTP/1.1 200 OK\r\nContent-Le".to_vec();
    let server =
        Server::start(&[("/body", Answer::Bytes(stalled)), ("/head", Answer::Bytes(half))]);
    let pool =
        "read_timeout = \"200ms\"\nresponse_timeout = \"200ms\"\nupstream.max_concurrent = 1";
    let (_folder, daemon) = serve(&server, "", pool);
    for _ in 0..3 {
        let said = talk(&daemon, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        assert!(said.ends_with("\r\n\r\nabc"), "{said}");
        let said = talk(&daemon, format!("POST /head HTTP/1.1\r\nContent-Length: 0\r\n{CLOSE}"));
        assert_eq!(status(&said), "504", "{said}");
    }
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["deadline"]), 6);
    // Its slot is free, and its connection was not reused.
    assert_eq!(status(&talk(&daemon, format!("GET /fine HTTP/1.1\r\n{CLOSE}"))), "200");
}

#[test]
fn a_server_that_resets_in_the_middle_of_its_reply_never_makes_it_look_whole() {
    let head = "HTTP/1.1 200 OK\r\n";
    let server = Server::start(&[
        ("/length", Answer::Cut(format!("{head}Content-Length: 10\r\n\r\nabc").into())),
        (
            "/chunks",
            Answer::Cut(format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").into()),
        ),
        ("/end", Answer::Cut(format!("{head}\r\nabc").into())),
    ]);
    let (_folder, daemon) = serve(&server, "", "health_check = \"off\"");
    for path in ["/length", "/chunks", "/end"] {
        let mut client = connect(&daemon);
        write!(client, "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").unwrap();
        let mut said = Vec::new();
        let end = client.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        let cut = status(&said) == "502" || end.is_err() || !said.ends_with("0\r\n\r\n");
        assert!(cut && server.heads(path).len() == 1, "{path}: {end:?} {said}");
        assert_eq!(status(&talk(&daemon, format!("GET /fine HTTP/1.1\r\n{CLOSE}"))), "200");
    }
}

#[test]
fn a_reply_in_single_bytes_is_the_same_reply() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pool = format!("servers = [\"{}\"]", listener.local_addr().unwrap());
    let (_folder, daemon) = serve_pool("", &pool);
    let reply = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\
                 Transfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n";
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_nodelay(true).unwrap();
        read_until(&mut socket, "\r\n\r\n");
        for byte in reply.as_bytes() {
            socket.write_all(&[*byte]).unwrap();
        }
        socket
    });
    let said = talk(&daemon, format!("GET /a HTTP/1.1\r\n{CLOSE}"));
    assert!(
        said.starts_with("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n"),
        "{said}"
    );
    assert!(said.ends_with("\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"), "{said}");
    drop(server.join().unwrap());
}
