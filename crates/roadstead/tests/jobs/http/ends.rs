//! Clients that half-close: complete requests are answered, and queued requests are sent.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc::channel;

use super::{CLOSE, connect, read_until, rest, serve, serve_pool, status};
use crate::daemon::{Daemon, until};
use crate::http_server::{Answer, Server};

/// The default of message protocols, and an option for HTTP.
const KEEP: &str = "half_close = \"keep\"";
const GET: &str = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

/// Returns the response when these bytes and the half-close are read in one turn.
fn say_and_end(daemon: &Daemon, bytes: &str) -> String {
    let mut client = daemon.stopped(|| {
        let mut client = connect(daemon);
        client.write_all(bytes.as_bytes()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        client
    });
    rest(&mut client)
}

#[test]
fn an_answer_of_ours_is_sent_though_the_end_came_with_its_request() {
    let server = Server::start(&[]);
    let routes = "half_close = \"HALF\"\nroute = [{ path = \"/fixed\", respond = { body = \"fixed\" } }, \
                  { path = \"/moved\", redirect = { to = \"/there\", status = 308 } }, { prefix = \"/\", pool = \"main\" }]";
    for half in ["keep", "left"] {
        let (_folder, daemon) = serve(&server, &routes.replace("HALF", half), "");
        for (wanted, path, host) in
            [("400", "/", ""), ("200", "/fixed", "Host: a\r\n"), ("308", "/moved", "Host: a\r\n")]
        {
            for version in ["Connection: close\r\n", ""] {
                let ask = format!("GET {path} HTTP/1.1\r\n{host}{version}\r\n");
                let said = say_and_end(&daemon, &ask);
                assert_eq!(status(&said), wanted, "{half}: {ask}{said}");
            }
        }
        // Several requests, the last of which violates a rule.
        let fixed = "GET /fixed HTTP/1.1\r\nHost: a\r\n\r\n";
        let said = say_and_end(&daemon, &format!("{fixed}{fixed}GET / HTTP/1.1\r\n\r\n"));
        assert_eq!(said.matches("HTTP/1.1 200 ").count(), 2, "{said}");
        assert_eq!(said.matches("HTTP/1.1 400 ").count(), 1, "{said}");
    }
}

#[test]
fn a_server_answers_whoever_has_ended_its_direction_behind_whole_requests() {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, KEEP, "");
    let post = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    for _ in 0..5 {
        let said = say_and_end(&daemon, &format!("{GET}{post}{GET}"));
        assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 3, "{said}");
        assert_eq!(said.matches("\r\n\r\nabc").count(), 1, "{said}");
    }
    // A request that will never be complete is not a request.
    assert_eq!(say_and_end(&daemon, &post[..post.len() - 1]), "");
    assert_eq!(say_and_end(&daemon, "GET / HT"), "");
    assert_eq!(say_and_end(&daemon, ""), "");
    let left = ["\"left\""];
    until("it is counted", || daemon.metric("roadstead_requests_finished_total", &left) == 1);
    until("all are gone", || daemon.metric("roadstead_connections", &["main"]) == 0);
}

#[test]
fn a_late_answer_reaches_a_client_that_has_ended_its_direction_unless_that_means_that_it_left() {
    for half in ["keep", "left"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (arrived, arrives) = channel();
        let (go_on, waits) = channel::<()>();
        let serving = std::thread::spawn(move || {
            let (mut link, _) = listener.accept().unwrap();
            read_until(&mut link, "\r\n\r\n");
            arrived.send(()).unwrap();
            if half == "left" {
                // Only its end arrives.
                return assert_eq!(link.read(&mut [0]).unwrap(), 0);
            }
            waits.recv().unwrap();
            link.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate").unwrap();
            let _ = link.read(&mut [0]);
        });
        let pool = format!("servers = [\"127.0.0.1:{port}\"]");
        let (_folder, daemon) = serve_pool(&format!("half_close = \"{half}\""), &pool);
        let mut client = connect(&daemon);
        client.write_all(GET.as_bytes()).unwrap();
        arrives.recv().unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        if half == "left" {
            assert_eq!(rest(&mut client), "");
        } else {
            go_on.send(()).unwrap();
            assert!(rest(&mut client).ends_with("\r\n\r\nlate"));
        }
        drop(daemon);
        serving.join().unwrap();
    }
}

#[test]
fn what_a_client_sent_behind_its_request_does_not_hide_that_it_left() {
    for behind in ["G", GET, &GET.repeat(4000)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (_folder, daemon) = serve_pool("", &format!("servers = [\"127.0.0.1:{port}\"]"));
        let mut client = connect(&daemon);
        client.write_all(GET.as_bytes()).unwrap();
        client.write_all(behind.as_bytes()).unwrap();
        let (mut link, _) = listener.accept().unwrap();
        read_until(&mut link, "\r\n\r\n");
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(link.read(&mut [0]).unwrap(), 0, "its request is given up");
        until("it has left", || {
            daemon.metric("roadstead_requests_finished_total", &["\"left\""]) == 1
        });
        assert_eq!(rest(&mut client), "");
    }
}

#[test]
fn a_client_that_leaves_while_its_body_waits_gives_up_its_place_in_the_queue() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pool = format!("servers = [\"127.0.0.1:{port}\"]\nupstream.max_concurrent = 1");
    let (_folder, daemon) = serve_pool("", &pool);
    let mut first = connect(&daemon);
    first.write_all(GET.as_bytes()).unwrap();
    let (mut link, _) = listener.accept().unwrap();
    read_until(&mut link, "\r\n\r\n");
    // Half of a body, a complete body, and more than is read ahead.
    for (length, sent) in [(20_000, 10_000), (10_000, 10_000), (300_000, 300_000)] {
        let mut client = connect(&daemon);
        write!(client, "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").unwrap();
        client.write_all(&vec![b'x'; sent]).unwrap();
        let waiting = || daemon.metric("roadstead_queue_length", &["main"]);
        until("it waits", || waiting() == 1);
        client.shutdown(Shutdown::Write).unwrap();
        until("it waits no more", || waiting() == 0);
        until("it is gone", || daemon.metric("roadstead_connections", &["main"]) == 1);
    }
}

#[test]
fn each_direction_of_a_tunnel_ends_by_itself() {
    let server = Server::start(&[("/ws", Answer::Switch)]);
    let (_folder, daemon) = serve(&server, KEEP, "");
    let ask = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    let mut client = connect(&daemon);
    client.write_all(ask.as_bytes()).unwrap();
    assert!(read_until(&mut client, "\r\n\r\n").starts_with("HTTP/1.1 101 "));
    daemon.stopped(|| {
        client.write_all(b"the last words").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
    });
    assert_eq!(rest(&mut client), "THE LAST WORDS");
    // The same if the half-close comes before the tunnel.
    let said = say_and_end(&daemon, ask);
    assert!(said.starts_with("HTTP/1.1 101 "), "{said}");
    assert!(said.contains("upgrade"), "{said}");
    let said = rest(&mut {
        let mut client = connect(&daemon);
        write!(client, "GET /fine HTTP/1.1\r\n{CLOSE}").unwrap();
        client
    });
    assert_eq!(status(&said), "200");
}
