//! Tests of Roadstead as a library: handlers of an embedding program, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use roadstead::embed::{Embed, EmbedError, Running, text};

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
