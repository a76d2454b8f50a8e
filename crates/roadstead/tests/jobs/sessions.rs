//! Programs that send unsolicited messages. Messages of a program that serves one connection (`dispatch = "session"`)
//! go to its client, and never to the next one. Messages of a shared program go to all of its clients, or to none.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::client::Client;
use crate::daemon::{folder, read_log, until};
use crate::framings::{parse, serve};

/// A small language server: it publishes messages after a notification, and sends its client requests that no request
/// of the client depends on.
const EDITOR: &str = r#"
import json, sys
read, write = sys.stdin.buffer, sys.stdout.buffer
def say(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    write.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    write.flush()
while True:
    max_requests = 0
    while (line := read.readline().strip()):
        length = int(line.split(b":")[1])
    if not length: break
    message = json.loads(read.read(length))
    method, params = message.get("method"), message.get("params")
    if method == "textDocument/didOpen":
        say({"method": "textDocument/publishDiagnostics", "params": params})
        say({"id": "c1", "method": "workspace/configuration", "params": params})
    elif method is None:
        say({"method": "told", "params": message["result"]})
    elif "id" in message:
        say({"id": message["id"], "result": params})
"#;

fn say(client: &mut Client, message: &Value) {
    let body = message.to_string();
    client.send(format!("Content-Length: {}\r\n\r\n{body}", body.len()));
}

fn hear(client: &mut Client) -> Value {
    let head = client.line();
    let length = head.strip_prefix("Content-Length: ").unwrap_or_else(|| panic!("{head:?}"));
    let length = length.trim().parse().unwrap();
    assert_eq!(client.line().trim(), "");
    serde_json::from_slice(&client.bytes(length)).unwrap()
}

/// An editor opens a file, receives the published message, and answers the request. Nothing else is in flight.
fn opens(client: &mut Client, file: &str) {
    say(client, &json!({"method": "textDocument/didOpen", "params": file}));
    let told = hear(client);
    assert_eq!(told["method"], "textDocument/publishDiagnostics", "{told}");
    assert_eq!(told["params"], file);
    let asked = hear(client);
    assert_eq!((&asked["id"], &asked["method"]), (&json!("c1"), &json!("workspace/configuration")));
    say(client, &json!({"id": "c1", "result": [file]}));
    assert_eq!(hear(client)["params"], json!([file]), "its answer goes back");
}

#[test]
fn what_a_language_server_says_unasked_reaches_its_editor_and_nobody_else() {
    for shards in [1, 2] {
        let folder = folder();
        let pool = format!(
            "framing = \"content-length\"\ndispatch = \"session\"\nworkers = 4\n\
             [daemon]\nshards = {shards}\n"
        );
        let daemon = serve(folder.path(), "content-length", &["python3", "-c", EDITOR], &pool);
        let mut editors: Vec<_> = (0..4).map(|_| daemon.connect()).collect();
        for round in 0..3 {
            for (place, editor) in editors.iter_mut().enumerate() {
                opens(editor, &format!("{place}/{round}"));
            }
        }
        for (place, editor) in editors.iter_mut().enumerate() {
            say(editor, &json!({"id": 7, "method": "where", "params": place}));
            let reply = hear(editor);
            assert_eq!((&reply["id"], &reply["result"]), (&json!(7), &json!(place)));
        }
        assert_eq!(daemon.metric("roadstead_discarded_replies_total", &[]), 0);
        assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
        assert!(daemon.stop().success());
    }
}

/// Answers the last of three requests first, and ends before it has answered the first.
const BACKWARDS: &str = r#"
import json, sys
asked = [json.loads(sys.stdin.readline())["id"] for _ in range(3)]
for id in asked[:0:-1]:
    print(json.dumps({"id": id, "result": id}), flush=True)
"#;

#[test]
fn a_connections_own_program_may_answer_in_any_order() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\ndispatch = \"session\"\nworkers = 1\nmin_uptime = \"0s\"\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", BACKWARDS], pool);
    // The second client waits until the first has used its program. Its requests are then sent together.
    let mut clients: Vec<_> = (0..2).map(|_| daemon.connect()).collect();
    for client in &mut clients {
        for id in ["a", "b", "c"] {
            client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"m\"}}\n"));
        }
    }
    for client in &mut clients {
        let said: Vec<_> = (0..3).map(|_| parse(&client.line())).collect();
        assert_eq!((&said[0]["result"], &said[1]["result"]), (&json!("c"), &json!("b")));
        assert_eq!(said[2]["id"], "a", "the one that it owed: {}", said[2]);
        assert!(said[2]["error"]["message"].as_str().unwrap().contains("died"), "{}", said[2]);
    }
}

/// Answers a line with four lines, except `quiet`, and prints another line on a signal.
const CHATTY: &str = r#"
$| = 1; my $last; $SIG{USR1} = sub { print "late $last\n" };
while (1) {
    my $line = <STDIN>;
    if (!defined $line) { next if $!{EINTR}; last }
    chomp($last = $line); print "$$ $last\n"; next if $last eq 'quiet'; print "and $_ $last\n" for 1 .. 3;
}
"#;

#[test]
fn what_a_program_of_lines_says_unasked_is_its_clients_and_not_the_next_ones() {
    let folder = folder();
    let pool = "dispatch = \"session\"\nreset = \"forget\"\nworkers = 1\nmin_uptime = \"0s\"\n";
    let daemon = serve(folder.path(), "lines", &["perl", "-e", CHATTY], pool);
    let mut pids = Vec::new();
    for client in ["one", "two"] {
        let mut own = daemon.connect();
        for word in ["a", "b"] {
            let word = format!("{client}-{word}");
            let reply = own.ask(&word);
            let (pid, said) = reply.split_once(' ').unwrap();
            pids.push(pid.parse::<i32>().unwrap());
            assert_eq!(said, word);
            for number in 1..4 {
                assert_eq!(own.line(), format!("and {number} {word}"));
            }
        }
        // And long after its reply, when no client waits.
        kill_process(Pid::from_raw(*pids.last().unwrap()).unwrap(), Signal::USR1).unwrap();
        assert_eq!(own.line(), format!("late {client}-b"));
    }
    assert!(pids[0] == pids[1] && pids[2] == pids[3], "{pids:?}");
    // Its answer to the reset could not be distinguished from its other output.
    assert_ne!(pids[1], pids[2], "one that speaks unasked is replaced after its client");
    // Other programs of the pool get no reset either, because they may send output at any time.
    let quiet: Vec<String> = (0..2).map(|_| daemon.connect().ask("quiet")).collect();
    assert!(quiet.iter().all(|said| said.ends_with(" quiet")) && quiet[0] != quiet[1], "{quiet:?}");
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0, "as one that is used up");
}

#[test]
fn a_connections_program_is_not_trusted_when_it_speaks_after_its_client_has_gone() {
    let folder = folder();
    let program = "$| = 1; $SIG{USR1} = sub { print \"late\\n\" }; \
                   while (1) { my $l = <STDIN>; if (!defined $l) { next if $!{EINTR}; last } print \"$$\\n\" }";
    let pool = "dispatch = \"session\"\nreset = \"forget\"\nworkers = 1\nmin_uptime = \"0s\"\n";
    let daemon = serve(folder.path(), "lines", &["perl", "-e", program], pool);
    let mut client = daemon.connect();
    let pid: i32 = client.ask("a").parse().unwrap();
    drop(client);
    until("it has forgotten", || daemon.status()["pools"][0]["workers"][0]["served"] == 2);
    kill_process(Pid::from_raw(pid).unwrap(), Signal::USR1).unwrap();
    until("it is ended", || read_log(folder.path()).contains("spoke though nothing was asked"));
    let other: i32 = daemon.connect().ask("b").parse().unwrap();
    assert_ne!(other, pid);
    assert_eq!(daemon.metric("roadstead_discarded_replies_total", &[]), 1);
}

#[test]
fn what_raw_bytes_a_program_writes_after_a_silence_still_reach_its_client() {
    let folder = folder();
    // The second half comes long after the silence that ends a reply.
    let program = "$| = 1; while (sysread(STDIN, my $in, 100)) { print \"got $in\"; \
                   select(undef, undef, undef, 0.3); print ', really' }";
    let pool = "framing = \"raw\"\nstream = { idle_timeout = \"20ms\" }\ndispatch = \"session\"\n";
    let daemon = serve(folder.path(), "raw", &["perl", "-e", program], pool);
    let mut client = daemon.connect();
    client.send("one");
    assert_eq!(client.bytes(15), b"got one, really");
    client.send("two");
    assert_eq!(client.bytes(15), b"got two, really");
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
}

/// Returns the peak memory of a process in bytes.
fn resident_max(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_program_that_says_more_than_its_client_takes_waits_for_it() {
    for shards in [1, 2] {
        let folder = folder();
        let program =
            "$| = 1; while (<STDIN>) { print \"go\\n\"; print 'x' x 99999, \"\\n\" for 1 .. 700 }";
        let pool = format!(
            "dispatch = \"session\"\nworkers = 2\nsend_timeout = \"2s\"\n[daemon]\nshards = {shards}\n"
        );
        let daemon = serve(folder.path(), "lines", &["perl", "-e", program], &pool);
        // With two shards, one of them is likely to be accepted by the other shard.
        let mut clients: Vec<_> = (0..2).map(|_| daemon.connect()).collect();
        for client in &mut clients {
            assert_eq!(client.ask("a"), "go");
        }
        let begun = Instant::now();
        until("nobody reads for a while", || begun.elapsed() > Duration::from_millis(500));
        for client in &mut clients {
            (0..700).for_each(|_| assert_eq!(client.line().len(), 99_999));
        }
        let most = resident_max(daemon.pid());
        assert!(most < 64 << 20, "{most} bytes, of 140 MB");
        assert_eq!(daemon.metric("roadstead_undelivered_replies_total", &[]), 0);
        assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
    }
}

#[test]
fn a_program_that_cannot_write_is_not_killed_for_reading_nothing() {
    let folder = folder();
    let listener = "len4\"\nreply = \"plain\"\nframe_max = \"32MiB";
    let pool = "framing = \"raw\"\nstream = { idle_timeout = \"100ms\" }\nsend_timeout = \"1s\"\n";
    let daemon = serve(folder.path(), listener, &["cat"], pool);
    let mut client = daemon.connect();
    let body = vec![b'x'; 24 << 20];
    client.send([&u32::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat());
    let begun = Instant::now();
    until("longer than `send_timeout` passes", || begun.elapsed() > Duration::from_millis(2500));
    let mut received = 0;
    while received < body.len() {
        let head: [u8; 4] = client.bytes(4).try_into().unwrap();
        let part = client.bytes(u32::from_be_bytes(head) as usize);
        assert!(
            part.iter().all(|byte| *byte == b'x'),
            "{}",
            part[..part.len().min(100)].escape_ascii()
        );
        received += part.len();
    }
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
}

/// Sends a notification that its tools changed, and one that concerns a single client, before it answers.
const CHANGES: &str = r#"
import json, sys
def say(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "change":
        say({"method": "notifications/tools/list_changed"})
        say({"method": "notifications/message", "params": {"level": "info", "data": "for whom?"}})
    say({"id": asked["id"], "result": asked["method"]})
"#;

#[test]
fn what_a_shared_program_offers_anew_all_its_clients_hear_and_nobody_what_is_one_clients() {
    for shards in [1, 2] {
        let folder = folder();
        let pool = format!(
            "framing = \"jsonrpc\"\ndispatch = \"tagged\"\nworkers = 1\n[daemon]\nshards = {shards}\n"
        );
        let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", CHANGES], &pool);
        let mut clients: Vec<_> = (0..5).map(|_| daemon.connect()).collect();
        let (quiet, asking) = clients.split_first_mut().unwrap();
        let ask = |client: &mut Client, method: &str| {
            client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\"}}\n"));
        };
        for client in asking.iter_mut() {
            ask(client, "hello");
            assert_eq!(parse(&client.line())["result"], "hello");
        }
        for round in 1..4 {
            ask(&mut asking[0], "change");
            for (place, client) in asking.iter_mut().enumerate() {
                let mut heard = vec![parse(&client.line())];
                if place == 0 {
                    heard.push(parse(&client.line()));
                    heard.sort_by_key(|it| it["id"].is_number());
                    assert_eq!(heard[1]["result"], "change");
                }
                assert_eq!(heard[0]["method"], "notifications/tools/list_changed");
            }
            assert_eq!(daemon.metric("roadstead_discarded_replies_total", &[]), round);
        }
        // A client without a request receives its own reply first.
        ask(quiet, "hello");
        assert_eq!(parse(&quiet.line())["result"], "hello");
    }
}

/// A JSON login service. Its argument selects what it does on a reset: `late` prints something of its client 10 ms
/// after the reply, `early` just before it, `cut` begins a message after it, `refuses` replies with an error and keeps
/// its state.
const LOGINS: &str = r#"
import json, os, sys, time
kind, user = sys.argv[1], None
def text(message): return json.dumps({"jsonrpc": "2.0", **message}) + "\n"
def say(text): sys.stdout.write(text); sys.stdout.flush()
for line in sys.stdin:
    asked = json.loads(line)
    reply = text({"id": asked["id"], "result": [os.getpid(), user]})
    if asked["method"] == "login":
        user = asked["params"]
    elif kind == "refuses":
        reply = text({"id": asked["id"], "error": {"code": -32601, "message": "no such method"}})
    elif asked["method"] == "reset":
        secret, user = text({"method": "notice", "params": f"secret of {user}"}), None
        if kind == "early": reply = secret + reply
        if kind == "cut": reply += secret[:9]
        say(reply)
        if kind == "late": time.sleep(0.01); say(secret)
        continue
    say(reply)
"#;

/// Logs in. Returns the reply: the process, and the user who was logged in before.
fn logs_in(client: &mut Client, user: &str) -> (i64, Value) {
    let asked = json!({"jsonrpc": "2.0", "id": user, "method": "login", "params": user});
    client.send(format!("{asked}\n"));
    let reply = parse(&client.line());
    assert_eq!(reply["id"], user, "not the reply to {user}: {reply}");
    (reply["result"][0].as_i64().unwrap(), reply["result"][1].clone())
}

/// Three clients, one after the other: the process of each.
fn logins(kind: &str, log: impl FnOnce(&str)) -> Vec<i64> {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\ndispatch = \"session\"\nworkers = 1\nmin_uptime = \"0s\"\n\
                reset = '{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"reset\"}'\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", LOGINS, kind], pool);
    let pids = ["one", "two", "three"].map(|user| {
        let mut client = daemon.connect();
        let (pid, before) = logs_in(&mut client, user);
        assert_eq!(before, Value::Null);
        // The second request is answered before anything else.
        let (_, own) = logs_in(&mut client, user);
        assert_eq!(own, user);
        pid
    });
    log(&read_log(folder.path()));
    pids.to_vec()
}

const RESETS_OFF: &str = "programs of this pool are replaced instead of reset";

#[test]
fn a_message_of_the_last_client_after_the_reply_to_reset_reaches_no_other_client() {
    for kind in ["late", "cut"] {
        let pids = logins(kind, |log| {
            assert_eq!(log.matches(RESETS_OFF).count(), 1, "{log}");
            assert_eq!(log.matches("spoke though nothing was asked").count(), 1, "{log}");
        });
        assert!(pids[0] != pids[1] && pids[1] != pids[2], "{kind}: {pids:?}");
    }
}

#[test]
fn a_message_before_the_reply_to_reset_is_discarded_and_a_silent_program_is_reused() {
    for kind in ["early", "silent"] {
        let pids = logins(kind, |log| assert!(!log.contains(RESETS_OFF), "{log}"));
        assert!(pids[0] == pids[1] && pids[1] == pids[2], "{kind}: {pids:?}");
    }
}

#[test]
fn a_program_that_replies_to_reset_with_an_error_is_replaced() {
    let pids = logins("refuses", |log| assert!(!log.contains(RESETS_OFF), "{log}"));
    assert!(pids[0] != pids[1] && pids[1] != pids[2], "{pids:?}");
}

/// The same with lines: `late` prints a line 10 ms after the reply to the reset, `early` before it.
const LINES: &str = r#"
import os, sys, time
kind, user = sys.argv[1], None
def say(text): sys.stdout.write(text); sys.stdout.flush()
for line in sys.stdin:
    word = line.strip()
    if word == "forget":
        if kind == "early": say(f"secret of {user}\n"); time.sleep(0.01)
        say("forgotten\n")
        if kind == "late": time.sleep(0.01); say(f"secret of {user}\n")
        user = None
    else:
        say(f"{os.getpid()} {user} {word}\n")
        user = word
"#;

#[test]
fn a_line_that_is_no_reply_to_reset_reaches_no_other_client() {
    for kind in ["late", "early"] {
        let folder = folder();
        let pool = "dispatch = \"session\"\nreset = \"forget\"\nworkers = 1\nmin_uptime = \"0s\"\n";
        let daemon = serve(folder.path(), "lines", &["python3", "-c", LINES, kind], pool);
        let mut pids = Vec::new();
        for user in ["one", "two", "three"] {
            let reply = daemon.connect().ask(user);
            let (pid, said) = reply.split_once(' ').unwrap();
            assert_eq!(said, format!("None {user}"), "{kind}: {reply}");
            pids.push(pid.to_owned());
        }
        assert!(pids[0] != pids[1] && pids[1] != pids[2], "{kind}: {pids:?}");
        let log = read_log(folder.path());
        assert_eq!(log.matches(RESETS_OFF).count(), 1, "{kind}: {log}");
    }
}

#[test]
fn after_a_reload_programs_are_reset_again_until_one_is_found_out() {
    let folder = folder();
    let pool = "dispatch = \"session\"\nreset = \"forget\"\nworkers = 1\nmin_uptime = \"0s\"\n";
    let daemon = serve(folder.path(), "lines", &["python3", "-c", LINES, "late"], pool);
    for round in 1..3 {
        for user in ["one", "two", "three"] {
            assert!(daemon.connect().ask(user).ends_with(&format!("None {user}")));
        }
        let log = read_log(folder.path());
        assert_eq!(log.matches(RESETS_OFF).count(), round, "{log}");
        daemon.reload().unwrap();
    }
}

#[test]
fn a_line_that_a_program_may_take_for_several_cannot_outlast_the_reset() {
    let rejects = |pool: &str| {
        let folder = folder();
        let pool = format!("dispatch = \"session\"\nworkers = 1\n{pool}");
        let daemon = serve(folder.path(), "lines", &["cat"], &pool);
        daemon.connect().ask("a\rb").starts_with("!record ")
    };
    assert!(rejects("reset = \"forget\"\n"), "it would serve another client");
    assert!(!rejects("reset = \"forget\"\nline_breaks = \"keep\"\n"));
    assert!(!rejects(""), "it serves one client only");
}

/// Reports each request as finished when it receives the next one.
const TALKATIVE: &str = r#"
import json, sys
before = None
for line in sys.stdin:
    message = json.loads(line)
    if before:
        print(json.dumps({"jsonrpc": "2.0", "method": "made", "params": before}))
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": "done"}), flush=True)
    before = message["params"]
"#;

#[test]
fn what_a_program_says_beside_its_replies_in_order_reaches_none_of_its_clients() {
    for alignment in ["auto", "strict", "off"] {
        let folder = folder();
        let pool = format!(
            "framing = \"jsonrpc\"\ndispatch = \"in-order\"\nalignment = \"{alignment}\"\nworkers = 1\n"
        );
        let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", TALKATIVE], &pool);
        for user in 0..5 {
            let request = json!({"jsonrpc": "2.0", "id": user, "method": "make", "params": [user]});
            let reply: Value =
                serde_json::from_str(&daemon.connect().ask(&request.to_string())).unwrap();
            assert_eq!((&reply["id"], &reply["result"]), (&json!(user), &json!("done")), "{reply}");
        }
        until("what it says beside them is counted", || {
            daemon.metric("roadstead_discarded_replies_total", &[]) == 4
        });
    }
}

/// Answers every two requests in the wrong order.
const SWAPS: &str = r#"
import json, sys
for line in sys.stdin:
    for asked in [sys.stdin.readline(), line]:
        reply = {"jsonrpc": "2.0", "id": json.loads(asked)["id"], "result": 0}
        print(json.dumps(reply), flush=True)
"#;

#[test]
fn a_reply_with_the_id_of_another_request_reaches_nobody() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\ndispatch = \"in-order\"\npipeline = 2\nworkers = 1\nmin_uptime = \"0s\"\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", SWAPS], pool);
    let mut clients = [daemon.connect(), daemon.connect()];
    for (id, client) in clients.iter_mut().enumerate() {
        say_line(client, id);
    }
    for (id, client) in clients.iter_mut().enumerate() {
        let reply: Value = serde_json::from_str(&client.line()).unwrap();
        assert_eq!(reply["id"], id, "{reply}");
        assert!(reply["error"].is_object(), "the program cannot be trusted: {reply}");
    }
}

/// Answers as JSON-RPC 2.0 requires, and before that reports a parse error.
const CANNOT_READ: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "secret"}}))
    if asked.get("id") is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": asked["method"]}))
    sys.stdout.flush()
"#;

#[test]
fn a_reply_without_an_id_is_nobodys_where_replies_come_in_order() {
    for alignment in ["auto", "strict", "off"] {
        let folder = folder();
        let pool = format!(
            "framing = \"jsonrpc\"\ndispatch = \"in-order\"\nalignment = \"{alignment}\"\nworkers = 1\n"
        );
        let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", CANNOT_READ], &pool);
        let (mut first, mut second) = (daemon.connect(), daemon.connect());
        first.send("{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":[\"secret\"]}\n");
        for id in 0..3 {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": "mine"});
            let reply: Value = serde_json::from_str(&second.ask(&request.to_string())).unwrap();
            assert_eq!((&reply["id"], &reply["result"]), (&json!(id), &json!("mine")), "{reply}");
        }
        until("they are counted", || daemon.metric("roadstead_discarded_replies_total", &[]) == 4);
        assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0, "{alignment}");
    }
}

#[test]
fn what_a_program_in_order_may_read_in_two_ways_never_reaches_it() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\ndispatch = \"in-order\"\npipeline = 4\nworkers = 1\nmin_uptime = \"0s\"\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", CANNOT_READ], pool);
    let (mut first, mut second) = (daemon.connect(), daemon.connect());
    for rest in [
        r#""id":null,"method":"m""#,
        r#""id":1.0,"method":"m""#,
        r#""id":7,"method":"m","params":"secret""#,
    ] {
        let reply: Value =
            serde_json::from_str(&first.ask(&format!("{{\"jsonrpc\":\"2.0\",{rest}}}"))).unwrap();
        assert_eq!(reply["error"]["code"], -32600, "{reply}");
    }
    let reply: Value = serde_json::from_str(&first.ask("{\"id\":7,\"method\":\"m\"}")).unwrap();
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(7), &json!(-32600)), "{reply}");
    first.send("{\"method\":\"note\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":1}\n");
    for client in [&mut first, &mut second] {
        say_line(client, 3);
        let reply: Value = serde_json::from_str(&client.line()).unwrap();
        assert_eq!((&reply["id"], &reply["result"]), (&json!(3), &json!("m")), "{reply}");
    }
    assert_eq!(daemon.metric("roadstead_discarded_replies_total", &[]), 2, "it got two messages");
}

fn say_line(client: &mut Client, id: usize) {
    client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}\n"));
}
