//! Faults between clients and programs with any framing, and the isolation of other clients.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::daemon::{folder, until};
use crate::framings::{parse, serve};

/// Answers requests, except `stall` and cancellations.
const STALLS: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or asked["method"] == "stall": continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": 1}), flush=True)
"#;

#[test]
fn silence_ends_no_reply_while_its_client_is_slow_to_read() {
    let folder = folder();
    let program = "$| = 1; while (my $l = <STDIN>) { chomp $l; print $l x 50000, \"\\n\" for 1 .. 400; print \".\\n\" }";
    let pool = "stream = { until = \".\", idle_timeout = \"2s\" }\nworkers = 1\nqueue = { timeout = \"60s\" }\n";
    let daemon = serve(folder.path(), "lines", &["perl", "-e", program], pool);
    let (mut slow, mut other) = (daemon.connect(), daemon.connect());
    slow.send("a\n");
    until("its program has it", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1);
    other.send("b\n");
    let begun = Instant::now();
    until("longer than the gap passes", || begun.elapsed() > Duration::from_secs(3));
    for (client, letter) in [(&mut slow, "a"), (&mut other, "b")] {
        for _ in 0..400 {
            let line = client.line();
            assert!(line.len() == 50_000 && line.starts_with(letter), "{}", line.len());
        }
        assert_eq!(client.line(), ".");
    }
}

#[test]
fn a_reply_may_begin_before_all_of_its_request_is_read() {
    let folder = folder();
    let listener = "len4\"\nreply = \"plain\"\nframe_max = \"1MiB";
    let pool = "framing = \"raw\"\nstream = { idle_timeout = \"1s\" }\n";
    let daemon = serve(folder.path(), listener, &["cat"], pool);
    let mut client = daemon.connect();
    let body = vec![b'x'; 900_000];
    client.send([&u32::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat());
    let mut received = 0;
    while received < body.len() {
        let head: [u8; 4] = client.bytes(4).try_into().unwrap();
        received += client.bytes(u32::from_be_bytes(head) as usize).len();
    }
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
}

#[test]
fn a_request_that_takes_long_stands_in_no_others_way() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\npipeline = 8\nresponse_timeout = \"60s\"\n";
    let listener = "jsonrpc\"\nin_flight_max = 4\nhalf_close = \"keep";
    let daemon = serve(folder.path(), listener, &["python3", "-c", STALLS], pool);
    let mut client = daemon.connect();
    client.send("{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"stall\"}\n");
    for id in 0..20 {
        client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}\n"));
        assert_eq!(parse(&client.line())["id"], id);
    }
    client.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"s\"}}\n");
    until("it is taken back", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 0);
}

#[test]
fn what_is_taken_back_at_once_reaches_no_program() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\nworkers = 1\nresponse_timeout = \"60s\"\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", STALLS], pool);
    let mut client = daemon.connect();
    client.send("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"m\"}\n");
    assert_eq!(parse(&client.line())["id"], 0, "it runs");
    let cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"s\"}}\n";
    client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"stall\"}}\n{cancel}"));
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n");
    assert_eq!(parse(&client.line())["id"], 1);
}

#[test]
fn what_needs_no_answer_does_not_go_on_to_the_next_pool() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\nthen = \"next\"\n[pool.next]\nprogram = [\"cat\"]\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", STALLS], pool);
    let mut client = daemon.connect();
    client.send("{\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n");
    assert_eq!(parse(&client.line())["id"], 1);
    assert_eq!(daemon.metric("roadstead_requests_total", &["next"]), 1);
}

#[test]
fn a_program_that_asks_and_never_listens_is_replaced() {
    let folder = folder();
    let program = r#"
import sys
while True: sys.stdout.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 1000)
"#;
    let pool = "framing = \"jsonrpc\"\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", program], pool);
    until("it is ended", || daemon.metric("roadstead_worker_failures_total", &[]) > 0);
}

#[test]
fn a_program_that_closes_its_output_before_it_has_greeted_is_replaced() {
    let folder = folder();
    let program = "import os, sys; os.close(1); sys.stdin.read(); import time; time.sleep(100)";
    let pool = "framing = \"jsonrpc\"\nhandshake = \"mcp\"\nresponse_timeout = \"600s\"\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", program], pool);
    until("it is ended", || daemon.metric("roadstead_worker_failures_total", &[]) > 0);
}

#[test]
fn a_connection_that_waits_for_its_own_program_does_not_hold_up_a_drain() {
    let folder = folder();
    let program = "$| = 1; while (<STDIN>) { print }";
    let pool = "dispatch = \"session\"\nworkers = 1\nqueue = { timeout = \"60s\" }\n[daemon]\ndrain_timeout = \"10m\"\n";
    let mut daemon = serve(folder.path(), "lines", &["perl", "-e", program], pool);
    let (mut one, mut other) = (daemon.connect(), daemon.connect());
    assert_eq!(one.ask("a"), "a");
    other.send("b\n");
    until("it waits", || daemon.metric("roadstead_queue_length", &[]) == 1);
    daemon.signal(Signal::TERM);
    assert_eq!(other.line(), "b");
    assert!(other.rest().is_empty() && one.rest().is_empty());
    drop((one, other));
    assert!(daemon.wait().success());
}

/// Sends its client a request before it answers, and reports cancellations.
const ASKS: &str = r#"
import json, sys
def say(it): print(json.dumps(it), flush=True)
waiting = None
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        say({"id": waiting, "result": ["told", message["result"]]})
    elif message["method"] == "notifications/cancelled":
        say({"id": message["params"]["requestId"], "result": "taken back"})
    elif message["method"] == "ask":
        waiting = message["id"]
        say({"id": "s1", "method": "sampling/createMessage"})
"#;

#[test]
fn a_connections_own_program_asks_it_and_hears_what_it_takes_back() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\ndispatch = \"session\"\nworkers = 1\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", ASKS], pool);
    let mut client = daemon.connect();
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ask\"}\n");
    assert_eq!(parse(&client.line())["method"], "sampling/createMessage");
    client.send("{\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"result\":5}\n");
    let told = parse(&client.line());
    assert_eq!((&told["id"], &told["result"][1]), (&1.into(), &5.into()), "{told}");
    client.send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"wait\"}\n");
    client.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}\n");
    let told = parse(&client.line());
    assert_eq!((&told["id"], &told["result"]), (&2.into(), &"taken back".into()), "{told}");
}

#[test]
fn a_length_of_gigabytes_is_refused_before_a_byte_of_it_is_kept() {
    let folder = folder();
    // The program announces 1.7 GB, and sends ten bytes.
    let program = "import sys; sys.stdin.buffer.read(5); \
                   sys.stdout.buffer.write((1_700_000_000).to_bytes(4, 'big') + b'x' * 10); \
                   sys.stdout.flush(); sys.stdin.read()";
    let pool = "framing = \"len4\"\nworkers = 1\n";
    let daemon = serve(folder.path(), "lines", &["python3", "-c", program], pool);
    let mut client = daemon.connect();
    let told = client.ask("a");
    assert!(told.starts_with("!unknown reply"), "{told}");
    // The same from a client, which receives an error immediately.
    let folder = self::folder();
    let daemon = serve(folder.path(), "len4", &["cat"], "framing = \"lines\"\n");
    let mut client = daemon.connect();
    client.send([&1_700_000_000_u32.to_be_bytes()[..], b"x"].concat());
    let length: [u8; 4] = client.bytes(4).try_into().unwrap();
    let told = client.bytes(u32::from_be_bytes(length) as usize);
    assert!(told.starts_with(b"!toolong"), "{}", told.escape_ascii());
}
