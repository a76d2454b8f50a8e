//! Programs without pending requests: notifications have limits as requests have, and a hanging program is detected
//! even if each client cancels its request.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::daemon::{Daemon, folder, until};
use crate::framings::{parse, serve};

/// Returns a notification of slightly more than this size.
fn notice(bytes: usize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":[\"{}\"]}}\n", "x".repeat(bytes))
}

/// Returns the peak memory of a process in bytes.
fn resident_max(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Starts a program whose first process acts as given. Each later process answers requests with the number of
/// notifications received before.
fn first(folder: &Path, does: &str) -> String {
    let mark = folder.join("first");
    format!(
        r#"
import json, os, sys, time
if not os.path.exists({mark:?}):
    open({mark:?}, "w").close()
    {does}
told = 0
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "note": told += 1
    if "id" in asked: print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": told}}), flush=True)
"#
    )
}

fn deaths(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_worker_failures_total", &[])
}

#[test]
fn what_only_tells_something_is_limited_where_nobody_reads_it() {
    for dispatch in ["tagged", "in-order", "session"] {
        let folder = folder();
        let pool = format!(
            "framing = \"jsonrpc\"\ndispatch = \"{dispatch}\"\nworkers = 1\nresponse_timeout = \"1s\"\nmin_uptime = \"0s\"\n\
             queue = {{ max_requests = 8 }}\n"
        );
        let daemon = serve(folder.path(), "jsonrpc", &["sleep", "1000"], &pool);
        let client = daemon.connect();
        let message = notice(60 << 10);
        // The client may be paused until the hanging program is detected.
        let mut stream = client.stream();
        for _ in 0..1600 {
            if deaths(&daemon) > 0 {
                break;
            }
            stream.write_all(message.as_bytes()).unwrap();
        }
        until("one that reads nothing is replaced", || deaths(&daemon) > 0);
        let most = resident_max(daemon.pid());
        assert!(most < 48 << 20, "{dispatch}: {most} bytes of 96 MB");
    }
}

#[test]
fn a_program_that_reads_nothing_is_replaced_though_it_owes_nothing() {
    let folder = folder();
    let program = first(folder.path(), "time.sleep(1000)");
    let pool = "framing = \"jsonrpc\"\npipeline = 8\nworkers = 1\nsend_timeout = \"1s\"\nmin_uptime = \"0s\"\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", &program], pool);
    let mut client = daemon.connect();
    // A pipe accepts the first of them, and a part of the next.
    client.send(notice(60 << 10).repeat(6));
    until("it is found out", || deaths(&daemon) == 1);
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"count\"}\n");
    let told = parse(&client.line())["result"].as_u64().unwrap();
    assert!((4..6).contains(&told), "what never left us goes to the next: {told}");
}

#[test]
fn what_only_tells_something_reaches_a_program_that_reads_late() {
    for dispatch in ["tagged", "in-order", "session"] {
        let folder = folder();
        let go = folder.path().join("go");
        let waits = format!("while not os.path.exists({go:?}): time.sleep(0.01)");
        let program = first(folder.path(), &waits);
        let pool = format!(
            "framing = \"jsonrpc\"\ndispatch = \"{dispatch}\"\nworkers = 1\nresponse_timeout = \"60s\"\n"
        );
        let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", &program], &pool);
        let mut client = daemon.connect();
        client.send(notice(60 << 10).repeat(10));
        until("it came", || daemon.metric("roadstead_requests_total", &["main"]) == 10);
        fs::write(go, "").unwrap();
        client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"count\"}\n");
        assert_eq!(parse(&client.line())["result"], 10, "{dispatch}");
        assert_eq!(deaths(&daemon), 0);
    }
}

/// Sends a request, and cancels it some time after the program has received it.
fn takes_back(daemon: &Daemon, client: &mut Client, id: u32) {
    client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}\n"));
    let has_it = || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 1;
    until("the program has it, or has had its time", || has_it() || deaths(daemon) > 0);
    // Silence counts only while requests are in flight.
    let begun = Instant::now();
    until("a moment passes", || begun.elapsed() > Duration::from_millis(100));
    client.send(format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
    ));
    until("it is taken back", || !has_it() || deaths(daemon) > 0);
}

#[test]
fn a_program_that_hangs_is_replaced_though_each_client_gives_up_before_its_deadline() {
    let folder = folder();
    let program = first(folder.path(), "sys.stdin.read()");
    let pool =
        "framing = \"jsonrpc\"\nworkers = 1\nresponse_timeout = \"1s\"\nmin_uptime = \"0s\"\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", &program], pool);
    let mut client = daemon.connect();
    let mut id = 0;
    while deaths(&daemon) == 0 {
        takes_back(&daemon, &mut client, id);
        id += 1;
    }
    let served = || {
        let mut client = daemon.connect();
        client.send("{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"m\"}\n");
        parse(&client.line())["result"] == 0
    };
    until("another serves", served);
}

#[test]
fn a_program_may_leave_unanswered_what_was_taken_back() {
    let folder = folder();
    let program = first(
        folder.path(),
        "print(\"ready\", flush=True)\n    for line in sys.stdin:\n        asked = json.loads(line)\n        if asked.get(\"id\") and asked[\"method\"] == \"last\": \
         print(json.dumps({\"id\": asked[\"id\"], \"result\": 1}), flush=True)\n",
    );
    let pool = "framing = \"jsonrpc\"\nready = \"line\"\nworkers = 1\nresponse_timeout = \"2s\"\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", &program], pool);
    let mut client = daemon.connect();
    takes_back(&daemon, &mut client, 1);
    let begun = Instant::now();
    until("longer than the deadline passes", || begun.elapsed() > Duration::from_millis(2500));
    client.send("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"last\"}\n");
    assert_eq!(parse(&client.line())["id"], 7);
    assert_eq!(deaths(&daemon), 0);
}
