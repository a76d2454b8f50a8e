//! Nothing that one client sends changes the bytes of another client's request or reply.

use super::*;

const CLEAN: &str = "GET /clean HTTP/1.1\r\nHost: a\r\n\r\n";

/// Requests a path on a new connection. One shard reads in the order of arrival, so when the reply arrives, everything
/// sent before has been read.
fn ask(daemon: &Daemon, path: &str) {
    let mut client = connect(daemon);
    write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(status(&read_until(&mut client, "\r\n\r\n")), "200");
}

fn request_lines(server: &Server) -> Vec<String> {
    server.seen().iter().map(|seen| seen.head.lines().next().unwrap().to_owned()).collect()
}

#[test]
fn an_empty_line_of_one_client_does_not_change_the_request_of_another() {
    // The number of bytes of the clean request that are read first.
    for first in [1, 2, 5, CLEAN.len()] {
        let server = Server::start(&[]);
        let (_folder, daemon) = serve(&server, "", "");
        let mut dirty = connect(&daemon);
        dirty.write_all(b"\r\n").unwrap();
        ask(&daemon, "/other");
        // There are more clients than free objects, so one of them gets the object of the first client.
        let mut clean: Vec<TcpStream> = (0..3).map(|_| connect(&daemon)).collect();
        for client in &mut clean {
            client.write_all(&CLEAN.as_bytes()[..first]).unwrap();
        }
        ask(&daemon, "/other");
        for client in &mut clean {
            client.write_all(&CLEAN.as_bytes()[first..]).unwrap();
            assert_eq!(status(&read_until(client, "\r\n\r\n")), "200", "{first}");
        }
        dirty.write_all(CLEAN.as_bytes()).unwrap();
        assert_eq!(status(&read_until(&mut dirty, "\r\n\r\n")), "200", "{first}");
        let mut lines = request_lines(&server);
        lines.retain(|line| line != "GET /other HTTP/1.1");
        assert_eq!(lines, ["GET /clean HTTP/1.1"; 4], "{first}");
    }
}

#[test]
fn an_empty_line_that_comes_in_two_pieces_starts_no_timeout() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "request_read_timeout = \"100ms\"", "");
    let mut client = connect(&daemon);
    client.write_all(b"\r").unwrap();
    ask(&daemon, "/other");
    client.write_all(b"\n").unwrap();
    ask(&daemon, "/other");
    // A head that was begun later has timed out, and so would the empty line.
    let said = talk(&daemon, "GET /late HTTP/1.1\r\nHos");
    assert_eq!(status(&said), "408", "{said}");
    client.write_all(CLEAN.as_bytes()).unwrap();
    assert_eq!(status(&read_until(&mut client, "\r\n\r\n")), "200");
}
