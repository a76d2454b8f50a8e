//! JSON-RPC messages, from the smallest to those that carry files, and those that are too large.

use std::path::Path;

use serde_json::Value;

use crate::client::Client;
use crate::daemon::{Daemon, folder};
use crate::framings::{parse, serve};

/// Answers each request with its parameters, in the frames of either framing.
const ECHO: &str = r#"
import json, sys
source, target = sys.stdin.buffer, sys.stdout.buffer
framing = sys.argv[1]
while True:
    line = source.readline()
    if not line: break
    if framing == "content-length":
        length = int(line.split(b":")[1])
        source.readline()
        line = source.read(length)
    asked = json.loads(line)
    if "id" not in asked: continue
    reply = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": asked.get("params")}).encode()
    if framing == "content-length": target.write(b"Content-Length: %d\r\n\r\n%s" % (len(reply), reply))
    else: target.write(reply + b"\n")
    target.flush()
"#;

fn echo(folder: &Path, protocol: &str, more: &str) -> Daemon {
    let pool = format!("framing = \"{protocol}\"\nworkers = 1\n{more}");
    serve(folder, protocol, &["python3", "-c", ECHO, protocol], &pool)
}

fn send(protocol: &str, client: &mut Client, message: &str) {
    match protocol {
        "jsonrpc" => client.send(format!("{message}\n")),
        _ => client.send(format!("Content-Length: {}\r\n\r\n{message}", message.len())),
    }
}

fn next(protocol: &str, client: &mut Client) -> Value {
    if protocol == "jsonrpc" {
        return parse(&client.line());
    }
    let head = client.line();
    let length = head.trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
    assert_eq!(client.line().trim(), "");
    parse(&String::from_utf8(client.bytes(length)).unwrap())
}

fn request(id: &str, bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"echo\",\"params\":\"{text}\"}}")
}

#[test]
fn messages_that_carry_files_pass_in_both_directions() {
    for protocol in ["jsonrpc", "content-length"] {
        for dispatch in ["tagged", "session"] {
            let folder = folder();
            let daemon = echo(folder.path(), protocol, &format!("dispatch = \"{dispatch}\"\n"));
            let mut client = daemon.connect();
            for bytes in [0, 100_000, 3_000_000] {
                send(protocol, &mut client, &request("\"a\"", bytes));
                let reply = next(protocol, &mut client);
                assert_eq!((&reply["id"], reply["error"].is_null()), (&"a".into(), true));
                assert_eq!(reply["result"].as_str().unwrap().len(), bytes, "{protocol} {dispatch}");
            }
        }
    }
}

#[test]
fn a_message_over_the_limit_is_rejected_by_its_id() {
    let filler = "x".repeat(3_000);
    let cases = [
        (request("\"seven\"", 3_000), [Some("\"seven\""); 2]),
        (format!(r#"{{"method":"echo","id":7,"params":"{filler}"}}"#), [Some("7"); 2]),
        // If the connection is closed, its id is not in the part that was read.
        (
            format!(r#"{{"method":"echo","params":"{}","id":7}}"#, "x".repeat(200_000)),
            [Some("7"), Some("null")],
        ),
        // A notification expects no answer. If the connection is closed, the message may have been a request.
        (format!(r#"{{"method":"note","params":"{filler}"}}"#), [None, Some("null")]),
        (format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{filler}"}}"#), [None; 2]),
    ];
    for protocol in ["jsonrpc", "content-length"] {
        for (place, over) in ["skip", "end"].into_iter().enumerate() {
            for (message, ids) in &cases {
                let id = ids[place];
                let folder = folder();
                let listener = format!(
                    "[listener.small]\nlisten = \"127.0.0.1:0\"\nprotocol = \"{protocol}\"\n\
                                        pool = \"main\"\nframe_max = 1000\nframe_over = \"{over}\"\n"
                );
                let daemon = echo(folder.path(), protocol, &listener);
                let mut client = Client::connect(&daemon.listeners["small"]);
                send(protocol, &mut client, message);
                if let Some(id) = id {
                    let reply = next(protocol, &mut client);
                    assert_eq!(reply["id"].to_string(), id, "{protocol} {over} {reply}");
                    assert_eq!(reply["error"]["code"], -32600);
                    assert_eq!(reply["error"]["data"]["cause"], "toolong");
                }
                if over == "skip" {
                    send(protocol, &mut client, &request("8", 10));
                    assert_eq!(next(protocol, &mut client)["id"], 8, "{protocol} {message}");
                } else {
                    assert!(client.rest().is_empty());
                }
            }
        }
    }
}

#[test]
fn a_message_over_the_limit_of_which_a_client_sends_no_more_is_rejected() {
    for (message, replies) in [
        (format!(r#"{{"method":"echo","params":"{}"#, "x".repeat(200_000)), 1),
        (format!(r#"{{"method":"note","params":"{}"}}"#, "x".repeat(200_000)), 0),
        (format!(r#"{{"method":"note","params":"{}"}}"#, "x".repeat(1_500)), 0),
    ] {
        let folder = folder();
        let listener = "[listener.small]\nlisten = \"127.0.0.1:0\"\nprotocol = \"jsonrpc\"\n\
                        pool = \"main\"\nframe_max = 1000\n";
        let daemon = echo(folder.path(), "jsonrpc", listener);
        let mut client = Client::connect(&daemon.listeners["small"]);
        client.send(&message);
        client.finish();
        let rest = client.rest();
        assert_eq!(rest.len(), replies, "{rest:?}");
        assert!(rest.iter().all(|reply| reply.contains("toolong")), "{rest:?}");
    }
}
