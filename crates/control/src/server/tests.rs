use std::time::Duration;

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

const LIMITS: Limits =
    Limits { connections: 1, anonymous: 4, header_timeout: Duration::from_secs(10) };

fn peer() -> Peer {
    Peer::Unix { uid: Some(0), pid: None }
}

fn place() -> Arc<ConnectionSlot> {
    ConnectionSlots::new(1, 1).take_anonymous()
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

/// The paused clock advances only when everything waits, so no limit takes real time.
#[tokio::test(start_paused = true)]
async fn headers_that_do_not_end_are_not_waited_for() {
    let begun = tokio::time::Instant::now();
    let (mut client, server) = duplex(4096);
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").await.expect("room");
    connection(server, hello(), peer(), place(), LIMITS).await;
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed() {
    let (mut client, server) = duplex(4096);
    let served = tokio::spawn(connection(server, hello(), peer(), place(), LIMITS));
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
    let served = tokio::spawn(connection(server, large, peer(), place(), LIMITS));
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("room");
    let begun = tokio::time::Instant::now();
    served.await.expect("it ends");
    assert_eq!(begun.elapsed(), LIFETIME_MAX);
}

const TOKEN: &str = "0123456789abcdef";
/// The request of an operator.
const OPERATOR: &str =
    "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n";
const ANONYMOUS: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn gate() -> Arc<Gate> {
    let mut token = route::Authenticator::new("roadstead").expect("a realm");
    token.token(TOKEN).expect("a token");
    Arc::new(Gate {
        hosts: Vec::new(),
        token: Some(token),
        anonymous: true,
        user: rustix::process::geteuid().as_raw(),
        group_has_access: false,
        own_process: None,
        bodies: tokio::sync::Semaphore::new(crate::gate::BODIES_MAX),
        audit: Arc::default(),
    })
}

/// Serves on a port, with the checks.
fn serve_on_a_port(connections: usize) -> std::net::SocketAddr {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.set_nonblocking(true).expect("it is a socket");
    let address = socket.local_addr().expect("it is bound");
    let (gate, limits) = (gate(), Limits { connections, ..LIMITS });
    let router = crate::protected(hello(), Arc::clone(&gate));
    tokio::spawn(serve(Socket::Internet(socket), router, gate, limits));
    address
}

/// Reads one reply. Returns false if the connection ends before it.
async fn reply(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        match stream.read_u8().await {
            Ok(byte) => answer.push(byte),
            Err(_) => return false,
        }
    }
    true
}

#[tokio::test]
async fn connections_over_the_limit_wait_for_their_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("admin.sock");
    let socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    socket.set_nonblocking(true).expect("it is a socket");
    let router = crate::protected(hello(), gate());
    tokio::spawn(serve(Socket::Unix(socket), router, gate(), LIMITS));
    let mut first = UnixStream::connect(&path).await.expect("it listens");
    first.write_all(ANONYMOUS.as_bytes()).await.expect("it reads");
    assert!(reply(&mut first).await);
    let mut second = UnixStream::connect(&path).await.expect("it listens");
    second.write_all(ANONYMOUS.as_bytes()).await.expect("it is in the backlog");
    // The server gets a few more chances to run. A client that is served at all is served by then.
    for _ in 0..3 {
        first.write_all(ANONYMOUS.as_bytes()).await.expect("it reads");
        tokio::select! {
            biased;
            served = reply(&mut first) => assert!(served),
            _ = second.readable() => panic!("it is over the limit"),
        }
    }
    drop(first);
    assert!(reply(&mut second).await);
}

#[tokio::test]
async fn silent_connections_do_not_keep_the_operator_out() {
    let address = serve_on_a_port(4);
    let mut operator = TcpStream::connect(address).await.expect("it listens");
    operator.write_all(OPERATOR.as_bytes()).await.expect("it reads");
    assert!(reply(&mut operator).await);
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(TcpStream::connect(address).await.expect("it listens"));
    }
    // A client that is already connected, and a new one.
    operator.write_all(OPERATOR.as_bytes()).await.expect("it is open");
    assert!(reply(&mut operator).await);
    let mut another = TcpStream::connect(address).await.expect("it listens");
    another.write_all(OPERATOR.as_bytes()).await.expect("it reads");
    assert!(reply(&mut another).await);
    assert_eq!(silent[0].read(&mut [0]).await.ok(), Some(0), "the oldest was closed");
}

/// Each connection can replace another only after a tenth of a second, and in the order of the backlog.
#[tokio::test]
async fn a_flood_of_connections_does_not_delay_the_operator() {
    let address = serve_on_a_port(4);
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(address).await.expect("it listens"));
    }
    let served = timeout(Duration::from_secs(5), async {
        let mut operator = TcpStream::connect(address).await.expect("it listens");
        operator.write_all(OPERATOR.as_bytes()).await.expect("it reads");
        reply(&mut operator).await
    });
    assert_eq!(served.await, Ok(true));
}

/// The page may cost more than everything else that the address does.
#[tokio::test(start_paused = true)]
async fn a_request_of_a_client_that_left_is_given_up() {
    let slow = Router::new().route(
        "/",
        get(|| async {
            std::future::pending::<()>().await;
            "hello"
        }),
    );
    let (mut client, server) = duplex(4096);
    client.write_all(ANONYMOUS.as_bytes()).await.expect("room");
    drop(client);
    let served = connection(server, slow, peer(), place(), LIMITS);
    let served = timeout(Duration::from_secs(60), served).await;
    assert!(served.is_ok(), "it is served although its client left");
}

#[tokio::test]
async fn a_connection_ends_with_a_reply_to_a_request_without_a_valid_token() {
    let address = serve_on_a_port(4);
    let wrong = OPERATOR.replace("abcdef", "ghijkl");
    for (request, served) in [(ANONYMOUS, true), (wrong.as_str(), false)] {
        let mut client = TcpStream::connect(address).await.expect("it listens");
        client.write_all(OPERATOR.as_bytes()).await.expect("it reads");
        assert!(reply(&mut client).await);
        client.write_all(request.as_bytes()).await.expect("it is open");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("it ends");
        assert_eq!(answer.ends_with("hello"), served, "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
}

/// A proxy in front of the server might use the other one.
#[tokio::test(start_paused = true)]
async fn a_body_with_a_length_and_a_coding_is_rejected() {
    for (fields, status) in [
        ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "400"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "400"),
        ("Transfer-Encoding: chunked\r\n", "400"),
        ("Content-Length: 2\r\n", "200"),
    ] {
        let (mut client, server) = duplex(4096);
        let guarded = crate::protected(hello(), gate());
        let served = tokio::spawn(connection(server, guarded, peer(), place(), LIMITS));
        let head = OPERATOR.trim_end().to_owned() + "\r\nConnection: close\r\n" + fields + "\r\n";
        let body = if status == "200" { "{}" } else { "0\r\n\r\n" };
        client.write_all((head + body).as_bytes()).await.expect("room");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("it ends");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{fields}: {answer}");
        served.await.expect("it ends");
    }
}
