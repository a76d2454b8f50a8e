//! Tests of Roadstead as a library: handlers of an embedding program, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roadstead::embed::{
    Embed, EmbedError, ReloadError, Reloaded, Request, Response, Running, text,
};

fn configuration(pool: &str) -> String {
    format!(
        "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"connect\"\npool = \"main\"\n\
         [pool.main]\nhandler = \"ours\"\n{pool}\n"
    )
}

fn connect(server: &Running) -> TcpStream {
    TcpStream::connect(server.address("main").unwrap()).unwrap()
}

fn said(mut client: &TcpStream) -> String {
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn a_connection_is_a_request_and_its_reply_ends_with_it() {
    let size = 300_000;
    let server = Embed::from_text(&configuration("workers = \"2..8\""))
        .unwrap()
        .answering("ours", move || Ok(move |_: &_| vec![b'x'; size].into()))
        .start()
        .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            let server = &server;
            scope
                .spawn(move || (0..5).for_each(|_| assert_eq!(said(&connect(server)).len(), size)));
        }
    });
    let status = server.status().unwrap();
    assert_eq!(status.listeners[0].accepted, 100);
    assert_eq!(status.pools[0].workers.iter().map(|worker| worker.served).sum::<u64>(), 100);
    assert!(server.metrics().contains("100"), "{}", server.metrics());
    assert!(server.drain().is_clean());
}

#[test]
fn the_body_is_who_connected_and_what_he_says_is_discarded() {
    let server = Embed::from_text(&configuration(""))
        .unwrap()
        .answering("ours", || Ok(|request: &_| text(request).into_owned().into()))
        .start()
        .unwrap();
    let mut client = connect(&server);
    client.write_all(&[b'?'; 100_000]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(said(&client), client.local_addr().unwrap().to_string());
    assert!(server.drain().is_clean());
}

#[test]
fn who_is_not_admitted_hears_nothing_and_is_counted() {
    let mut admitted = 0;
    let server = Embed::from_text(&configuration(""))
        .unwrap()
        .answering("ours", || Ok(|_: &_| "welcome".into()))
        .admit(move |listener, _peer| {
            assert_eq!(listener, "main");
            admitted += 1;
            admitted <= 2
        })
        .start()
        .unwrap();
    assert_eq!(
        (said(&connect(&server)), said(&connect(&server))),
        ("welcome".into(), "welcome".into())
    );
    let mut nothing = Vec::new();
    // The connection may end with a reset, because none of the sent bytes were read.
    let _ = connect(&server).read_to_end(&mut nothing);
    assert!(nothing.is_empty());
    assert_eq!(server.status().unwrap().listeners[0].accepted, 2);
    assert!(server.drain().is_clean());
}

#[test]
fn a_handler_that_panics_is_an_unknown_outcome_and_another_takes_its_place() {
    let first = Arc::new(Mutex::new(true));
    let server = Embed::from_text(&configuration("workers = 1"))
        .unwrap()
        .answering("ours", move || {
            let first = Arc::clone(&first);
            Ok(move |_: &_| {
                assert!(!std::mem::take(&mut *first.lock().unwrap_or_else(|it| it.into_inner())));
                "again".into()
            })
        })
        .start()
        .unwrap();
    let reply = said(&connect(&server));
    assert!(reply.starts_with("!unknown handler"), "{reply}");
    assert_eq!(said(&connect(&server)), "again");
}

#[test]
fn a_full_queue_is_told_so() {
    let (entered, entering) = channel();
    let (let_go, gone) = channel::<()>();
    let gone = Arc::new(Mutex::new(gone));
    let server = Embed::from_text(&configuration("workers = 1\nqueue = { max_requests = 1 }"))
        .unwrap()
        .answering("ours", move || {
            let (entered, gone) = (entered.clone(), Arc::clone(&gone));
            Ok(move |_: &_| {
                entered.send(()).unwrap();
                let _ = gone.lock().unwrap().recv();
                "served".into()
            })
        })
        .start()
        .unwrap();
    let served = connect(&server);
    entering.recv().unwrap();
    let waits = connect(&server);
    // They are accepted in the order in which they connected.
    let refused = connect(&server);
    let (one, other) = std::thread::scope(|scope| {
        let refused = scope.spawn(|| said(&refused));
        let one = refused.join().unwrap();
        drop(let_go);
        (one, said(&waits))
    });
    assert!(one.starts_with("!full "), "{one}");
    assert_eq!((said(&served), other), ("served".into(), "served".into()));
}

#[test]
fn a_handler_that_nobody_registered_is_named() {
    let embed = Embed::from_text(&configuration("")).unwrap();
    let error = embed.answering("theirs", || Ok(|_: &_| "".into())).start().unwrap_err();
    assert!(matches!(error, EmbedError::Build(_)));
    let told = error.to_string();
    assert!(told.contains("`ours`") && told.contains("theirs"), "{told}");
}

#[test]
fn a_datagram_is_a_request_and_its_reply_goes_to_its_sender() {
    let text_of = "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"datagrams\"\n\
                   frame_max = 100\npool = \"main\"\n[pool.main]\nhandler = \"ours\"\n";
    let server = Embed::from_text(text_of)
        .unwrap()
        .answering("ours", || Ok(|request: &_| text(request).to_uppercase().into()))
        .admit(|_, peer| !peer.to_string().ends_with(":1"))
        .start()
        .unwrap();
    let clients: Vec<UdpSocket> = (0..5)
        .map(|_| {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.connect(server.address("main").unwrap()).unwrap();
            client
        })
        .collect();
    for round in 0..20 {
        for (place, client) in clients.iter().enumerate() {
            client.send(format!("round {round} of {place}").as_bytes()).unwrap();
        }
        for (place, client) in clients.iter().enumerate() {
            assert_eq!(reply(client), format!("ROUND {round} OF {place}"));
        }
    }
    clients[0].send(&[b'x'; 101]).unwrap();
    assert!(reply(&clients[0]).starts_with("!toolong "));
    assert_eq!(server.status().unwrap().listeners[0].accepted, 100);
    assert!(server.drain().is_clean());
}

fn reply(client: &UdpSocket) -> String {
    let mut bytes = [0; 1000];
    let count = client.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..count]).trim_end().to_owned()
}

#[test]
fn what_an_embedded_data_plane_cannot_do_is_an_error_of_its_start() {
    let start = |text: &str, name: &str, opens: bool| {
        let open = move || match opens {
            true => Ok(|_: &_| "served".into()),
            false => Err("no such device".to_owned()),
        };
        Embed::from_text(text).unwrap().answering(name, open).start().map(drop)
    };
    let error = |text: &str, name: &str, opens| start(text, name, opens).unwrap_err().to_string();
    let text = configuration("");
    assert!(start(&text, "ours", true).is_ok());
    assert_eq!(error(&text, "ours", false), "handler `ours` cannot be opened: no such device");
    let spare = Embed::from_text(&text)
        .unwrap()
        .answering("ours", || Ok(|_: &_| "served".into()))
        .answering("spare", || Ok(|_: &_| "served".into()));
    assert!(matches!(spare.start(), Err(EmbedError::UnusedHandler(name)) if name == "spare"));
    for (section, what) in [
        ("[access_log]\nto = \"stderr\"\n", "`[access_log]`"),
        ("[daemon]\nevent = \"poll\"\n", "`event`"),
    ] {
        let told = error(&format!("{section}{text}"), "ours", true);
        assert!(told.starts_with(what), "{told}");
    }
}

const WAIT: Duration = Duration::from_secs(60);

#[test]
fn it_is_ready_when_every_pool_has_started_its_workers() {
    let (open, opens) = channel::<()>();
    let opens = Mutex::new(opens);
    let first = AtomicBool::new(true);
    let server = Embed::from_text(&configuration("workers = 2"))
        .unwrap()
        .answering("ours", move || {
            // The first call is the test at the start.
            if !first.swap(false, Ordering::Relaxed) {
                let _ = opens.lock().unwrap().recv();
            }
            Ok(|_: &_| "served".into())
        })
        .start()
        .unwrap();
    let told = server.ready(Duration::from_millis(20)).unwrap_err();
    assert_eq!(told.missing, ["pool `main` has started 0 of 2 workers"]);
    assert!(told.to_string().starts_with("the data plane is not ready: pool `main`"), "{told}");
    drop(open);
    server.ready(WAIT).unwrap();
    assert_eq!(server.status().unwrap().pools[0].workers.len(), 2);
    assert!(server.drain().is_clean());
}

#[test]
fn a_handler_that_cannot_be_opened_any_more_is_what_is_missing() {
    let first = AtomicBool::new(true);
    let server = Embed::from_text(&configuration("workers = 1"))
        .unwrap()
        .answering("ours", move || match first.swap(false, Ordering::Relaxed) {
            true => Ok(|_: &_| "served".into()),
            false => Err("no such device".to_owned()),
        })
        .start()
        .unwrap();
    let told = server.ready(Duration::from_millis(50)).unwrap_err();
    assert!(told.to_string().contains("pool `main` has started 0 of 1 workers"), "{told}");
}

#[test]
fn a_reload_changes_everything_or_nothing() {
    let (text, more) = (configuration("workers = 1"), configuration("workers = 3"));
    let server = Embed::from_text(&text)
        .unwrap()
        .answering("ours", || Ok(|_: &_| "served".into()))
        .start()
        .unwrap();
    server.ready(WAIT).unwrap();
    let open = connect(&server);
    let told = server.reload_text("[listener.main]\nlisten = 7\n").unwrap_err();
    assert!(matches!(told, ReloadError::Invalid(_)), "{told}");
    let moved = more.replace("127.0.0.1:0", "127.0.0.2:0");
    let told = server.reload_text(&moved).unwrap_err();
    let ReloadError::Rejected(remarks) = &told else { panic!("{told}") };
    assert_eq!(remarks[0].path, ["listener", "main", "listen"], "{told}");
    let logged = format!("[access_log]\nto = \"stderr\"\n{more}");
    let told = server.reload_text(&logged).unwrap_err();
    assert!(matches!(told, ReloadError::Unsupported(_)), "{told}");
    assert_eq!(server.status().unwrap().pools[0].workers.len(), 1, "nothing changed");
    let told = server.reload_text(&more).unwrap();
    assert_eq!(told, Reloaded { late: 0, warnings: Vec::new() });
    server.ready(WAIT).unwrap();
    assert_eq!(server.status().unwrap().pools[0].workers.len(), 3);
    assert_eq!(said(&open), "served", "a connection stays");
    assert!(server.drain().is_clean());
}

fn http(server: &Running, request: &str) -> String {
    let mut client = connect(server);
    client.write_all(request.as_bytes()).unwrap();
    said(&client)
}

#[test]
fn a_handler_behind_http_sees_the_head_and_answers_with_one() {
    let text_of = "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
                   [listener.lines]\nlisten = \"127.0.0.1:0\"\npool = \"main\"\n\
                   [pool.main]\nhandler = \"ours\"\nworkers = 2\n";
    let server = Embed::from_text(text_of)
        .unwrap()
        .responding("ours", || {
            Ok(|request: &Request| {
                let Some(head) = request.head() else {
                    return Response::new(500).body(&request.body);
                };
                let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let host = head.header("HOST").map(shown).unwrap_or_default();
                match head.path() {
                    b"/bad" => Response::new(200).header("X", "a\r\nY: b"),
                    b"/none" => Response::new(204),
                    b"/panics" => panic!("as the test wants"),
                    path => Response::new(201)
                        .header("X-Method", head.method())
                        .header("X-Two", "1")
                        .header("X-Two", "2")
                        .body(format!(
                            "{} {:?} {host} {:?} {}",
                            shown(path),
                            head.query().map(shown),
                            head.header("connection"),
                            text(request),
                        )),
                }
            })
        })
        .start()
        .unwrap();
    let host = "Host: example.org\r\nConnection: close\r\n";
    let reply = http(&server, &format!("GET /a%20b?x=1 HTTP/1.1\r\n{host}\r\n"));
    assert!(reply.starts_with("HTTP/1.1 201 Created\r\n"), "{reply}");
    let lines: Vec<&str> = reply.lines().collect();
    for line in ["X-Method: GET", "X-Two: 1", "X-Two: 2"] {
        assert!(lines.contains(&line), "{line} in {reply}");
    }
    assert!(reply.ends_with("\r\n\r\n/a%20b Some(\"x=1\") example.org None "), "{reply}");
    // A body in chunks is complete and plain.
    let chunks = format!(
        "POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n3\r\nbod\r\n1\r\ny\r\n0\r\n\r\n"
    );
    let reply = http(&server, &chunks);
    assert!(reply.contains("X-Method: POST") && reply.ends_with(" None body"), "{reply}");
    let reply = http(&server, &format!("HEAD /a HTTP/1.1\r\n{host}\r\n"));
    assert!(reply.starts_with("HTTP/1.1 201 ") && reply.ends_with("\r\n\r\n"), "{reply}");
    let reply = http(&server, &format!("GET /none HTTP/1.1\r\n{host}\r\n"));
    assert!(reply.starts_with("HTTP/1.1 204 ") && reply.ends_with("\r\n\r\n"), "{reply}");
    let reply = http(&server, &format!("GET /bad HTTP/1.1\r\n{host}\r\n"));
    assert!(reply.starts_with("HTTP/1.1 502 ") && !reply.contains("Y: b"), "{reply}");
    let reply = http(&server, &format!("GET /panics HTTP/1.1\r\n{host}\r\n"));
    assert!(reply.starts_with("HTTP/1.1 502 "), "{reply}");
    // Lines of the same pool have no head.
    let mut client = TcpStream::connect(server.address("lines").unwrap()).unwrap();
    client.write_all(b"a line\n").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(said(&client), "a line\n");
    assert!(server.drain().is_clean());
}

#[test]
fn a_handler_of_bytes_behind_http_answers_with_plain_text() {
    let text_of = "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
                   [pool.main]\nhandler = \"ours\"\n";
    let server = Embed::from_text(text_of)
        .unwrap()
        // It is text, also if it looks like the JSON object with which a program answers.
        .answering("ours", || Ok(|_: &_| "{\"status\":404}".into()))
        .start()
        .unwrap();
    let reply = http(&server, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    assert!(reply.contains("Content-Type: text/plain"), "{reply}");
    assert!(reply.ends_with("\r\n\r\n{\"status\":404}"), "{reply}");
    assert!(server.drain().is_clean());
}
