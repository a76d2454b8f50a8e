use std::time::Duration;

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

const LIMITS: Limits = Limits { connections: 1, header_timeout: Duration::from_secs(10) };

fn peer() -> Peer {
    Peer::Unix { uid: Some(0), pid: None }
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

/// The clock stands still unless everything waits, so no limit takes real time.
#[tokio::test(start_paused = true)]
async fn headers_that_do_not_end_are_not_waited_for() {
    let begun = tokio::time::Instant::now();
    let (mut client, server) = duplex(4096);
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").await.expect("room");
    connection(server, hello(), peer(), LIMITS).await;
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed() {
    let (mut client, server) = duplex(4096);
    let served = tokio::spawn(connection(server, hello(), peer(), LIMITS));
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("room");
    let begun = tokio::time::Instant::now();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("it ends");
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(begun.elapsed().as_secs(), 10);
    served.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_not_read_does_not_hold_its_connection_for_ever() {
    let (mut client, server) = duplex(64);
    let large = Router::new().route("/", get(|| async { "x".repeat(1 << 20) }));
    let served = tokio::spawn(connection(server, large, peer(), LIMITS));
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("room");
    let begun = tokio::time::Instant::now();
    served.await.expect("it ends");
    assert_eq!(begun.elapsed(), LIFETIME_MAX);
}

/// Reads one reply.
async fn reply(stream: &mut tokio::net::TcpStream) {
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        answer.push(stream.read_u8().await.expect("it is served"));
    }
}

#[tokio::test]
async fn connections_over_the_limit_wait_for_their_turn() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.set_nonblocking(true).expect("it is a socket");
    let address = socket.local_addr().expect("it is bound");
    tokio::spawn(serve(Socket::Internet(socket), hello(), LIMITS));
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut first = tokio::net::TcpStream::connect(address).await.expect("it listens");
    first.write_all(request).await.expect("it reads");
    reply(&mut first).await;
    let mut second = tokio::net::TcpStream::connect(address).await.expect("it listens");
    second.write_all(request).await.expect("it is in the backlog");
    // The server turns some more times: whoever is served at all would be served by then.
    for _ in 0..3 {
        first.write_all(request).await.expect("it reads");
        tokio::select! {
            biased;
            () = reply(&mut first) => {}
            _ = second.readable() => panic!("it is over the limit"),
        }
    }
    drop(first);
    reply(&mut second).await;
}
