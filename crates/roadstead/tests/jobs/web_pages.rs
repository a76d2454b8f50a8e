//! A web page cannot make a browser send data to a program through a listener that does not speak HTTP.

use std::io::Write as _;
use std::net::Shutdown;

use crate::daemon::{Daemon, folder};
use crate::framings::serve;

const CLOSED: &str = "roadstead_connections_closed_total";
const ENDS: &str = "roadstead_requests_finished_total";

/// Returns a request as `fetch` with `mode: "no-cors"` sends it.
fn request(target: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: 127.0.0.1:7000\r\nConnection: keep-alive\r\nContent-Length: {}\r\n\
         Content-Type: text/plain;charset=UTF-8\r\nOrigin: https://a.example\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn is_refused(daemon: &Daemon, bytes: &[u8], by_byte: bool) -> String {
    let mut client = daemon.connect();
    if by_byte {
        for byte in bytes.chunks(1) {
            // The daemon may have closed it already.
            if client.stream().write_all(byte).is_err() {
                break;
            }
        }
    } else {
        client.send(bytes);
    }
    let _ = client.stream().shutdown(Shutdown::Write);
    client.rest().concat()
}

#[test]
fn an_http_request_is_refused_once_and_none_of_its_body_becomes_a_request() {
    let message = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}";
    let long = format!("Content-Length: {}\r\n\r\n", message.len());
    let bodies: [(&str, Vec<u8>); 8] = [
        ("lines", b"body\n".to_vec()),
        ("nul", b"\0body\0".to_vec()),
        // The method announces a frame, behind which the next one begins.
        ("len1", [&[b'x'; 600][..], &b"\x04body".repeat(40)].concat()),
        ("len2", [&[b'x'; 0x504f + 2][..], &b"\0\x04body".repeat(40)].concat()),
        ("len4", b"\0\0\0\x04body".to_vec()),
        ("netstring", b"4:body,".to_vec()),
        ("jsonrpc", [&message[..], b"\n"].concat()),
        ("content-length", [long.as_bytes(), message].concat()),
    ];
    for (protocol, body) in bodies {
        let folder = folder();
        let daemon = serve(folder.path(), protocol, &["cat"], "");
        for by_byte in [false, true] {
            let reply = is_refused(&daemon, &request("/", &body), by_byte);
            // An invalid netstring is detected at its first byte, and an invalid head at its first line.
            let is_told = protocol != "netstring" || !by_byte;
            assert!(!is_told || reply.contains("does not speak HTTP"), "{protocol}: {reply}");
            assert_eq!(reply.matches("body").count(), 0, "{protocol}: {reply}");
            assert!(reply.len() < 250, "{protocol}: {reply}");
        }
        assert_eq!(
            daemon.metric(ENDS, &["\"answered\""]),
            0,
            "{protocol}: nothing became a request"
        );
        let closed = daemon.metric(CLOSED, &["\"wrong_protocol\""]);
        // For bytes that are sent one by one, it is unknown whether they are read one by one.
        assert!(closed == 2 || protocol == "netstring" && closed == 1, "{protocol}: {closed}");
    }
}

#[test]
fn a_request_line_longer_than_a_frame_hides_nothing() {
    for over in ["skip", "end"] {
        let folder = folder();
        let listener = format!("lines\"\nframe_max = \"1KiB\"\nframe_over = \"{over}");
        let daemon = serve(folder.path(), &listener, &["cat"], "");
        let target = format!("/{}", "a".repeat(5000));
        let reply = is_refused(&daemon, &request(&target, b"body\n"), false);
        assert!(reply.contains("does not speak HTTP"), "{reply}");
        let mut client = daemon.connect();
        client.send(&request(&target, b"body\n")[..3000]);
        let reply = client.rest().concat();
        assert!(reply.contains("does not speak HTTP"), "{reply}");
    }
}

/// After DNS rebinding, a page sends any word as a method.
#[test]
fn an_unusual_method_is_http_too() {
    for protocol in ["lines", "nul"] {
        let folder = folder();
        let daemon = serve(folder.path(), protocol, &["cat"], "");
        let long = "M".repeat(3000);
        for method in ["FOO", "patch", "QUERY", "a.b-c_d", &long] {
            let request = format!("{method} / HTTP/1.1\r\nHost: x\r\n\r\nbody\n\0body\0");
            for by_byte in [false, true] {
                let reply = is_refused(&daemon, request.as_bytes(), by_byte);
                assert!(reply.contains("does not speak HTTP"), "{protocol}: {reply}");
            }
        }
        assert_eq!(daemon.metric(ENDS, &["\"answered\""]), 0, "{protocol}");
    }
}

#[test]
fn a_method_longer_than_a_frame_hides_nothing_and_a_long_line_is_only_skipped() {
    let folder = folder();
    let daemon = serve(folder.path(), "lines\"\nframe_max = \"1KiB", &["cat"], "");
    let long = "M".repeat(3000);
    let request = format!("{long} / HTTP/1.1\r\nHost: x\r\n\r\nbody\n");
    let reply = is_refused(&daemon, request.as_bytes(), false);
    assert!(reply.contains("does not speak HTTP") && !reply.contains("body"), "{reply}");
    assert_eq!(daemon.metric(ENDS, &["\"answered\""]), 0);
    let reply = is_refused(&daemon, format!("{long}\nbody\nhost: x\n").as_bytes(), false);
    assert!(reply.starts_with("!toolong") && reply.ends_with("bodyhost: x"), "{reply}");
}

#[test]
fn a_first_line_that_only_begins_as_a_request_is_answered_at_once() {
    let folder = folder();
    let daemon = serve(folder.path(), "lines", &["cat"], "");
    for line in ["GET", "GET key", "POST /x", "GET a b HTTP/1.1", "PUT key HTTP", "hello"] {
        let mut client = daemon.connect();
        assert_eq!(client.ask(line), format!("+{line}").replacen('+', "", 1), "{line}");
        // Only the first line of a connection is checked.
        assert_eq!(client.ask("GET / HTTP/1.1"), "GET / HTTP/1.1");
    }
    assert_eq!(daemon.metric(CLOSED, &["\"wrong_protocol\""]), 0);
}

#[test]
fn a_client_whose_first_message_is_no_json_is_closed() {
    let message = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n";
    let folder = folder();
    let daemon = serve(folder.path(), "jsonrpc", &["cat"], "");
    let reply = is_refused(&daemon, format!("X: y\n{message}").as_bytes(), false);
    assert_eq!(reply.matches("jsonrpc").count(), 1, "{reply}");
    assert!(reply.contains("it is not one JSON value"), "{reply}");
    assert_eq!(daemon.metric(CLOSED, &["\"wrong_protocol\""]), 1);
    assert_eq!(daemon.metric(ENDS, &["\"answered\""]), 0);
}
