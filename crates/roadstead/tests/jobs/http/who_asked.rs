//! What servers learn about the client, and Unix sockets on both sides, on which clients have no address.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use super::{CLOSE, read_until, serve, status, talk};
use crate::daemon::{Daemon, folder};
use crate::http_server::Server;

/// Forwarding fields that a client sends.
const SAID: &str = "X-Forwarded-For: 10.9.9.9\r\nX-Forwarded-Proto: https\r\nForwarded: for=10.9.9.9;proto=https\r\n";

/// Returns the head that a server receives for a request with such fields.
fn seen(listener: &str) -> String {
    let server = Server::start(&[]);
    let (_folder, daemon) = serve(&server, listener, "");
    assert_eq!(status(&talk(&daemon, format!("GET /a HTTP/1.1\r\n{SAID}{CLOSE}"))), "200");
    server.seen().remove(0).head
}

#[test]
fn whoever_asks_is_told_to_the_server_and_what_he_says_is_kept_of_the_trusted_alone() {
    let ours = "X-Forwarded-For: 127.0.0.1\r\n";
    let theirs = "X-Forwarded-For: 10.9.9.9\r\n";
    let head = seen("");
    assert!(head.contains(ours) && !head.contains("10.9.9.9"), "{head}");
    assert!(head.contains("X-Forwarded-Proto: http\r\n"), "{head}");
    let head = seen("trusted = [\"127.0.0.0/8\"]");
    assert!(head.contains(theirs) && head.contains(ours), "{head}");
    assert!(head.contains("X-Forwarded-Proto: https\r\n"), "{head}");
    assert!(seen("trusted = [\"127.0.0.2\"]").contains(ours));
    assert!(!seen("trusted = [\"127.0.0.2\"]").contains("10.9.9.9"), "another is trusted");
    let head = seen("forwarded = \"standard\"");
    assert!(head.contains("Forwarded: for=127.0.0.1;proto=http"), "{head}");
    assert!(!head.contains("10.9.9.9") && !head.contains("X-Forwarded"), "{head}");
    let head = seen("forwarded = \"standard\"\ntrusted = [\"127.0.0.1\"]");
    assert!(head.contains("for=10.9.9.9;proto=https") && head.contains("for=127.0.0.1"), "{head}");
    let head = seen("forwarded = \"off\"");
    assert!(!head.contains("orwarded"), "{head}");
}

#[test]
fn clients_and_servers_of_unix_sockets_speak_http_as_well() {
    let folder = folder();
    let (front, back) = (folder.path().join("front.sock"), folder.path().join("back.sock"));
    let server = UnixListener::bind(&back).unwrap();
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"unix:{}\"\nprotocol = \"http\"\n\
         pool = \"main\"\n[pool.main]\nservers = [\"unix:{}\"]\n",
        front.display(),
        back.display()
    );
    let daemon = Daemon::serve(folder.path(), &text);
    let mut client = UnixStream::connect(&front).unwrap();
    write!(client, "GET /a HTTP/1.1\r\n{SAID}{CLOSE}").unwrap();
    let (mut link, _) = server.accept().unwrap();
    let head = read_until(&mut link, "\r\n\r\n");
    assert!(head.starts_with("GET /a HTTP/1.1\r\n"), "{head}");
    // The mode of the socket file decides who can connect, so the fields of such a client are trusted.
    assert!(head.contains("X-Forwarded-For: 10.9.9.9\r\n"), "{head}");
    link.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(status(&said) == "200" && said.ends_with("\r\n\r\nhi"), "{said}");
    assert!(daemon.stop().success());
}
