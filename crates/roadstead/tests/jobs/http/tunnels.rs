//! Data in both directions after a 101, and the end of the tunnel.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::long::memory;
use super::*;
use crate::daemon::PATIENCE;

const ASK: &str = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
const YES: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";

/// Opens a tunnel.
fn tunnel(address: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(ASK.as_bytes()).unwrap();
    // The head is read byte by byte, so that bytes sent directly after it are not read with it.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    client
}

/// Starts a server that changes the protocol for this number of connections and then calls this function with each.
fn switching(
    tunnels: usize,
    then: impl Fn(TcpStream) + Send + Sync + 'static,
) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let then = Arc::new(then);
    let thread = std::thread::spawn(move || {
        let talks: Vec<_> = (0..tunnels)
            .map(|_| {
                let (mut socket, _) = listener.accept().unwrap();
                let then = Arc::clone(&then);
                std::thread::spawn(move || {
                    read_until(&mut socket, "\r\n\r\n");
                    socket.write_all(YES).unwrap();
                    then(socket);
                })
            })
            .collect();
        talks.into_iter().for_each(|talk| talk.join().unwrap());
    });
    (port, thread)
}

fn reset(socket: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
    drop(socket);
}

#[test]
fn a_client_that_says_no_more_gets_the_rest() {
    let server = Server::start(&[("/ws", Answer::Switch)]);
    let (_folder, daemon) = serve(&server, "", "");
    let mut client = tunnel(daemon.address());
    let (mut writer, said) = (client.try_clone().unwrap(), "abc".repeat(500_000));
    let due = said.to_uppercase();
    let writing = std::thread::spawn(move || {
        writer.write_all(said.as_bytes()).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut heard = String::new();
    client.read_to_string(&mut heard).expect("it ends in order");
    writing.join().unwrap();
    assert!(heard == due, "{} bytes of {}", heard.len(), due.len());
    assert_eq!(daemon.stop().code(), Some(0));
}

/// More than the buffers of the kernel in both directions and the output of a connection hold.
const LENGTH: usize = 64 << 20;

/// Writes [`LENGTH`] bytes and half-closes; `written` counts them.
fn speak(mut socket: TcpStream, written: &Arc<AtomicUsize>) -> JoinHandle<()> {
    let written = Arc::clone(written);
    std::thread::spawn(move || {
        let part = vec![b'x'; 64 << 10];
        for _ in 0..LENGTH / part.len() {
            socket.write_all(&part).unwrap();
            written.fetch_add(part.len(), Ordering::Relaxed);
        }
        socket.shutdown(Shutdown::Write).unwrap();
    })
}

fn listen(mut socket: &TcpStream) -> usize {
    usize::try_from(io::copy(&mut socket, &mut io::sink()).expect("it ends in order")).unwrap()
}

/// Both sides of each tunnel send, and neither reads before both sides of all tunnels are blocked.
fn all_wait(daemon: &Daemon, addresses: &[&str], go: &Sender<()>, server_wrote: &AtomicUsize) {
    let client_wrote = Arc::new(AtomicUsize::new(0));
    let clients: Vec<TcpStream> = addresses.iter().map(|address| tunnel(address)).collect();
    let memory_before = memory(daemon);
    let speaking: Vec<_> =
        clients.iter().map(|client| speak(client.try_clone().unwrap(), &client_wrote)).collect();
    // As much as the buffers between hold.
    let (mut before, mut stood) = ((0, 0), 0);
    until("both sides to be made to wait", || {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let now = (load(&client_wrote), load(server_wrote));
        stood = if now == before { stood + 1 } else { 0 };
        before = now;
        now.0 > 0 && now.1 > 0 && stood > 40
    });
    let all = LENGTH * clients.len();
    assert!(before.0 < all && before.1 < all, "nobody took it");
    let grown = memory(daemon).saturating_sub(memory_before);
    assert!(grown < clients.len() * (4 << 20), "{grown} bytes are kept");
    for _ in &clients {
        go.send(()).unwrap();
    }
    let listening = clients.into_iter().map(|client| std::thread::spawn(move || listen(&client)));
    let listening: Vec<_> = listening.collect();
    for listener in listening {
        assert_eq!(listener.join().unwrap(), LENGTH);
    }
    speaking.into_iter().for_each(|one| one.join().unwrap());
}

/// Starts a server with this number of tunnels that sends immediately and reads when it is told to.
fn speaker(tunnels: usize, wrote: &Arc<AtomicUsize>) -> (u16, JoinHandle<()>, Sender<()>) {
    let (go, gone): (_, Receiver<()>) = channel();
    let (gone, wrote) = (std::sync::Mutex::new(gone), Arc::clone(wrote));
    let (port, server) = switching(tunnels, move |socket| {
        let speaking = speak(socket.try_clone().unwrap(), &wrote);
        gone.lock().unwrap().recv().unwrap();
        assert_eq!(listen(&socket), LENGTH, "all of it comes, and then its end");
        speaking.join().unwrap();
    });
    (port, server, go)
}

#[test]
fn who_speaks_faster_than_the_other_listens_is_made_to_wait() {
    let wrote = Arc::new(AtomicUsize::new(0));
    let (port, server, go) = speaker(1, &wrote);
    let (_folder, daemon) =
        serve_pool("send_timeout = \"1h\"", &format!("servers = [\"127.0.0.1:{port}\"]"));
    all_wait(&daemon, &[daemon.address()], &go, &wrote);
    server.join().unwrap();
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn who_speaks_faster_than_the_other_listens_waits_across_shards() {
    let wrote = Arc::new(AtomicUsize::new(0));
    let (port, server, go) = speaker(4, &wrote);
    let folder = folder();
    // Two pools, each owned by one shard: on any shard, a client uses one pool that this shard does not own.
    let both = ["a", "b"].map(|name| {
        format!(
            "[listener.{name}]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"{name}\"\n\
             send_timeout = \"1h\"\n[pool.{name}]\nservers = [\"127.0.0.1:{port}\"]\nmax_concurrent = 10\n"
        )
    });
    let text =
        format!("[daemon]\nshards = 2\n[admin]\nlisten = \"127.0.0.1:0\"\n{}", both.concat());
    let daemon = Daemon::serve(folder.path(), &text);
    let (a, b) = (&*daemon.listeners["a"], &*daemon.listeners["b"]);
    all_wait(&daemon, &[a, b, a, b], &go, &wrote);
    server.join().unwrap();
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn a_tunnel_occupies_its_slot_to_the_end_on_every_shard() {
    let server = Server::start(&[("/ws", Answer::Switch)]);
    let folder = folder();
    let text = format!(
        "[daemon]\nshards = 2\n[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"http\"\npool = \"main\"\n[pool.main]\nservers = [\"127.0.0.1:{}\"]\n\
         upstream.max_concurrent = 1\n",
        server.port
    );
    let daemon = Daemon::serve(folder.path(), &text);
    let client = tunnel(daemon.address());
    let mut others: Vec<TcpStream> = (0..6).map(|_| connect(&daemon)).collect();
    for other in &mut others {
        other.write_all(format!("GET /fine HTTP/1.1\r\n{CLOSE}").as_bytes()).unwrap();
    }
    until("the others to wait", || daemon.metric("roadstead_queue_length", &[]) == 6);
    assert_eq!(server.heads("/fine"), [""; 0]);
    client.shutdown(Shutdown::Write).unwrap();
    for other in &mut others {
        assert_eq!(status(&rest(other)), "200");
    }
    drop(client);
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn a_tunnel_that_its_server_cuts_does_not_look_ended() {
    let (port, server) = switching(1, |mut socket| {
        read_until(&mut socket, "hello");
        reset(socket);
    });
    let (_folder, daemon) = serve_pool("", &format!("servers = [\"127.0.0.1:{port}\"]"));
    let mut client = tunnel(daemon.address());
    client.write_all(b"hello").unwrap();
    let cut = client.read(&mut [0; 10]);
    assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    server.join().unwrap();
}

#[test]
fn a_tunnel_that_its_client_cuts_does_not_look_ended() {
    let (port, server) = switching(1, |mut socket| {
        read_until(&mut socket, "hello");
        socket.write_all(b"go").unwrap();
        let cut = socket.read(&mut [0; 10]);
        assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    });
    let (_folder, daemon) = serve_pool("", &format!("servers = [\"127.0.0.1:{port}\"]"));
    let mut client = tunnel(daemon.address());
    client.write_all(b"hello").unwrap();
    read_until(&mut client, "go");
    reset(client);
    server.join().unwrap();
    let left = ["\"left\""];
    until("it is counted", || daemon.metric("roadstead_requests_finished_total", &left) == 1);
}

#[test]
fn a_server_that_ends_a_tunnel_is_heard_to_its_last_word() {
    let (port, server) =
        switching(1, |mut socket| socket.write_all(&b"x".repeat(1 << 20)).unwrap());
    let (_folder, daemon) = serve_pool("", &format!("servers = [\"127.0.0.1:{port}\"]"));
    let mut client = tunnel(daemon.address());
    let mut heard = String::new();
    client.read_to_string(&mut heard).expect("it ends in order");
    assert_eq!(heard.len(), 1 << 20);
    server.join().unwrap();
}

#[test]
fn a_server_that_says_no_more_hears_its_client_to_the_end() {
    let (port, server) = switching(1, |mut socket| {
        socket.write_all(b"that is all").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(listen(&socket), 1 << 20);
    });
    let (_folder, daemon) = serve_pool("", &format!("servers = [\"127.0.0.1:{port}\"]"));
    let mut client = tunnel(daemon.address());
    let mut heard = String::new();
    client.read_to_string(&mut heard).expect("it ends in order");
    assert_eq!(heard, "that is all");
    client.write_all(&b"x".repeat(1 << 20)).unwrap();
    drop(client);
    server.join().unwrap();
    let answered = ["\"answered\""];
    until("it is counted", || daemon.metric("roadstead_requests_finished_total", &answered) == 1);
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn a_client_that_cuts_a_tunnel_gives_its_slot_back() {
    let server = Server::start(&[("/ws", Answer::Switch)]);
    let (_folder, daemon) = serve(&server, "", "upstream.max_concurrent = 1");
    for _ in 0..3 {
        reset(tunnel(daemon.address()));
    }
    assert_eq!(status(&talk(&daemon, format!("GET /fine HTTP/1.1\r\n{CLOSE}"))), "200");
}

#[test]
fn to_head_no_tunnel_begins_and_no_body_is_sent_or_waited_for() {
    let told = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n".to_vec();
    let server = Server::start(&[
        ("/told", Answer::Bytes(told)),
        ("/open", Answer::Last(b"HTTP/1.0 200 OK\r\n\r\n".to_vec())),
        ("/ws", Answer::Switch),
    ]);
    let (_folder, daemon) = serve(&server, "", "read_timeout = \"5s\"");
    let ask = |path: &str| {
        format!("HEAD {path} HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    };
    let last = format!("GET /echo HTTP/1.1\r\n{CLOSE}");
    let said = talk(&daemon, ask("/told") + &ask("/open") + &ask("/open") + &last);
    assert_eq!(
        said,
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n\
         HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let heads: String = server.seen().into_iter().map(|seen| seen.head).collect();
    assert!(!heads.to_lowercase().contains("upgrade"), "{heads}");
    let said = talk(&daemon, ask("/ws") + &last);
    assert_eq!(status(&said), "502", "it was not asked to change the protocol: {said}");
    assert_eq!(daemon.stop().code(), Some(0));
}

#[test]
fn where_a_tunnel_was_asked_for_a_reply_may_have_no_body() {
    let answer = |status: &str| {
        Answer::Bytes(format!("HTTP/1.1 {status}\r\nETag: \"a\"\r\n\r\n").into_bytes())
    };
    let server =
        Server::start(&[("/204", answer("204 No Content")), ("/304", answer("304 Not Modified"))]);
    let (_folder, daemon) = serve(&server, "", "read_timeout = \"5s\"");
    let ask = |path: &str| ASK.replace("/ws", path);
    let last = format!("GET /echo HTTP/1.1\r\n{CLOSE}");
    let said = talk(&daemon, ask("/204") + &ask("/304") + &last);
    assert_eq!(
        said,
        "HTTP/1.1 204 No Content\r\nETag: \"a\"\r\n\r\n\
         HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(daemon.stop().code(), Some(0));
}
