//! Requirements of the protocols of programs: the handshake and cancellation of MCP, the end of an LSP session,
//! connections of raw bytes, and rejections on binary framings.

use std::io::{ErrorKind, Read, Write};

use serde_json::{Value, json};

use crate::client::Client;
use crate::daemon::{Daemon, folder, until};
use crate::framings::{parse, serve};

/// An MCP server with all capabilities. It never answers `stall`.
const MCP: &str = r#"
import json, sys
def say(it): print(json.dumps({"jsonrpc": "2.0", **it}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        capabilities = {"logging": {}, "tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True}}
        say({"id": asked["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": capabilities}})
    elif asked["method"] == "tools/call": say({"id": asked["id"], "result": asked["params"]})
    elif "id" in asked and asked["method"] != "stall": say({"id": asked["id"], "result": asked["method"]})
"#;

fn ask(client: &mut Client, message: &Value) -> Value {
    parse(&client.ask(&message.to_string()))
}

fn initialize(client: &mut Client, version: &str) -> Value {
    let params = json!({"protocolVersion": version, "capabilities": {}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    ask(client, &message)["result"].take()
}

#[test]
fn each_client_of_a_shared_mcp_server_gets_its_own_revision_and_what_can_be_shared() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\nhandshake = \"mcp\"\nworkers = 1\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", MCP], pool);
    let told =
        [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-06-18")];
    for (asked, expected) in told {
        let mut client = daemon.connect();
        let result = initialize(&mut client, asked);
        assert_eq!(result["protocolVersion"], expected);
        let shared = json!({"tools": {"listChanged": true}, "resources": {"listChanged": true}});
        assert_eq!(result["capabilities"], shared);
        for method in ["logging/setLevel", "resources/subscribe", "tasks/list", "Tasks/list"] {
            let reply = ask(&mut client, &json!({"jsonrpc": "2.0", "id": 2, "method": method}));
            assert_eq!(reply["error"]["code"], -32601, "{reply}");
            assert_eq!(reply["error"]["data"]["cause"], "nomethod");
        }
        let params = json!({"name": "x", "task": {"ttl": 60000}});
        let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
        assert_eq!(ask(&mut client, &call)["result"], json!({"name": "x"}), "it is no task");
    }
}

#[test]
fn a_cancelled_request_of_mcp_gets_no_reply_and_one_of_lsp_does() {
    let cancels = [
        (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#, false),
        (r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}}"#, true),
    ];
    for (cancel, is_answered) in cancels {
        let folder = folder();
        let pool = "framing = \"jsonrpc\"\npipeline = 4\nworkers = 1\n";
        let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", MCP], pool);
        let mut client = daemon.connect();
        client.send("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"stall\"}\n");
        until("it has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
        client.send(format!("{cancel}\n"));
        if is_answered {
            let reply = parse(&client.line());
            assert_eq!((&reply["id"], &reply["error"]["code"]), (&7.into(), &(-32800).into()));
        }
        let reply = ask(&mut client, &json!({"jsonrpc": "2.0", "id": 8, "method": "m"}));
        assert_eq!(reply["id"], 8, "{cancel}: {reply}");
    }
}

/// A language server that answers with its process, and ends at `exit`.
const LSP: &str = r#"
import json, os, sys
source, target = sys.stdin.buffer, sys.stdout.buffer
while True:
    head = source.readline()
    if not head: break
    source.readline()
    asked = json.loads(source.read(int(head.split(b":")[1])))
    if asked["method"] == "exit": sys.exit(0)
    if "id" in asked:
        result = None if asked["method"] == "shutdown" else os.getpid()
        reply = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
        target.write(b"Content-Length: %d\r\n\r\n%s" % (len(reply), reply))
        target.flush()
"#;

fn say(client: &mut Client, message: &Value) {
    let text = message.to_string();
    client.send(format!("Content-Length: {}\r\n\r\n{text}", text.len()));
}

fn next(client: &mut Client) -> Value {
    let head = client.line();
    let length = head.trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
    assert_eq!(client.line().trim(), "");
    parse(&String::from_utf8(client.bytes(length)).unwrap())
}

fn process(client: &mut Client) -> Value {
    say(client, &json!({"jsonrpc": "2.0", "id": 1, "method": "m"}));
    next(client)["result"].take()
}

#[test]
fn exit_ends_the_connection_of_an_editor_and_no_program_that_others_share() {
    for dispatch in ["session", "tagged", "in-order"] {
        let folder = folder();
        let pool =
            format!("framing = \"content-length\"\ndispatch = \"{dispatch}\"\nworkers = 1\n");
        let daemon = serve(folder.path(), "content-length", &["python3", "-c", LSP], &pool);
        let mut editor = daemon.connect();
        let first = process(&mut editor);
        say(&mut editor, &json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}));
        let reply = next(&mut editor);
        assert_eq!((&reply["id"], &reply["result"]), (&2.into(), &Value::Null), "{reply}");
        say(&mut editor, &json!({"jsonrpc": "2.0", "method": "exit"}));
        assert!(editor.rest().is_empty(), "{dispatch}: the connection ends without a word");
        let second = process(&mut daemon.connect());
        assert_eq!(first == second, dispatch != "session", "{dispatch}");
        if dispatch != "session" {
            assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0, "{dispatch}");
        }
    }
}

fn raw(folder: &std::path::Path, program: &str, more: &str) -> Daemon {
    let pool = format!(
        "framing = \"raw\"\ndispatch = \"session\"\nstream = {{ idle_timeout = \"20ms\" }}\nworkers = 1\nmin_uptime = \"0s\"\n{more}"
    );
    serve(folder, "raw", &["sh", "-c", program], &pool)
}

#[test]
fn a_clean_exit_of_a_raw_session_adds_no_bytes_and_ends_the_connection() {
    for program in ["head -c 4; exit 0", "head -c 4 > /dev/null; exit 0"] {
        let folder = folder();
        let daemon = raw(folder.path(), program, "");
        let mut client = daemon.connect();
        client.send("data");
        let expected = if program.contains("null") { "" } else { "data" };
        assert_eq!(client.rest().concat(), expected, "{program}");
    }
}

#[test]
fn a_raw_session_that_fails_is_reset_and_gets_no_bytes_of_ours() {
    let folder = folder();
    let daemon = raw(folder.path(), "head -c 4; exit 3", "");
    let mut client = daemon.connect();
    client.send("data");
    assert_eq!(client.bytes(4), b"data");
    let mut byte = [0];
    let end = client.stream().read(&mut byte);
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_raw_session_streams_more_than_its_requests_in_flight_hold() {
    let folder = folder();
    let daemon = raw(folder.path(), "exec cat", "response_timeout = \"5s\"\n");
    let mut client = daemon.connect();
    let sent: Vec<u8> = (0..20_u32 << 20).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let mut writer = client.stream().try_clone().unwrap();
    let received = std::thread::scope(|scope| {
        scope.spawn(|| writer.write_all(&sent).unwrap());
        client.bytes(sent.len())
    });
    assert!(sent == received, "all bytes come back in their order");
    // The connection stays open.
    client.send("more");
    assert_eq!(client.bytes(4), b"more");
}

#[test]
fn the_line_that_says_ready_keeps_no_byte_of_itself_without_frames() {
    let folder = folder();
    let program = "printf ready; sleep 0.1; printf '\\n'; exec cat";
    let daemon = raw(folder.path(), program, "ready = \"line\"\n");
    let mut client = daemon.connect();
    client.send("data");
    assert_eq!(client.bytes(4), b"data");
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
}

#[test]
fn a_rejection_on_a_binary_framing_differs_from_every_reply() {
    // The program replies what looks like a rejection.
    let cases: [(&str, &[u8], &[u8]); 3] = [
        ("len1", b"\x05!full", b"\x06+!full"),
        ("len4", b"\0\0\0\x05!full", b"\0\0\0\x06+!full"),
        ("netstring", b"5:!full,", b"6:+!full,"),
    ];
    for (protocol, asked, reply) in cases {
        let folder = folder();
        let listener = format!("{protocol}\"\nframe_max = 6\nreply = \"auto");
        let daemon = serve(folder.path(), &listener, &["cat"], "");
        let mut client = daemon.connect();
        client.send(asked);
        assert_eq!(client.bytes(reply.len()), reply, "{protocol}");
        let long = b"xxxxxxx";
        match protocol {
            "len1" => client.send([&[7], &long[..]].concat()),
            "len4" => client.send([&[0, 0, 0, 7], &long[..]].concat()),
            _ => client.send("7:xxxxxxx,"),
        }
        client.finish();
        let told = client.rest().concat();
        assert!(told.contains("!toolong") && !told.contains("+!toolong"), "{protocol}: {told:?}");
    }
}
