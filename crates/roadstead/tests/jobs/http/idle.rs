//! Many clients that send one request and stay connected.

use std::io::Write;
use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::long::memory;
use super::{CLOSE, connect, read_until, serve, status, talk};
use crate::http_server::Server;

const IDLE: usize = 9500;
/// The maximum number of bytes per client. In tables it is 112 for its session, 104 for its stream, 40 for its alarm
/// and 16 for its role, each with its generation.
const EACH_MAX: usize = 350;

fn ask(client: &mut TcpStream) {
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(read_until(client, "\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

#[test]
fn nine_thousand_idle_clients_cost_little_and_leave_the_others_alone() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, "connections_max = 10000", "");
    let before = memory(&daemon);
    let mut idle: Vec<TcpStream> = (0..IDLE)
        .map(|_| {
            let mut client = connect(&daemon);
            ask(&mut client);
            client
        })
        .collect();
    let each = memory(&daemon).saturating_sub(before) / IDLE;
    assert!(each <= EACH_MAX, "{each} bytes");
    for _ in 0..100 {
        assert_eq!(status(&talk(&daemon, format!("GET /fine HTTP/1.1\r\n{CLOSE}"))), "200");
    }
    for client in idle.iter_mut().step_by(100) {
        ask(client);
    }
    drop(idle);
    assert_eq!(status(&talk(&daemon, format!("GET /fine HTTP/1.1\r\n{CLOSE}"))), "200");
    assert_eq!(daemon.stop().code(), Some(0));
}
