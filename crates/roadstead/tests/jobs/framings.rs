//! Every framing on either side, with real programs: Perl if a few lines must frame bytes, and standard tools
//! otherwise.

use std::path::Path;

use serde_json::Value;

use crate::daemon::{Daemon, folder, read_log, until};

/// Starts a listener with this protocol and a pool of this program.
pub(crate) fn serve(folder: &Path, protocol: &str, program: &[&str], pool: &str) -> Daemon {
    let program: Vec<String> = program.iter().map(|word| Value::from(*word).to_string()).collect();
    let configuration = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"{protocol}\"\npool = \"main\"\n[pool.main]\nprogram = [{}]\n{pool}\n",
        program.join(", ")
    );
    Daemon::serve(folder, &configuration)
}

/// Returns a Perl program that reads frames with a packed length, and answers each with `<` and the frame.
fn packed(template: &str, bytes: usize) -> String {
    format!(
        "$| = 1; binmode STDIN; binmode STDOUT; while (read(STDIN, my $h, {bytes}) == {bytes}) \
         {{ my $n = unpack('{template}', $h); my $d = ''; read(STDIN, $d, $n) if $n; \
         $d = '<' . $d; print pack('{template}', length $d) . $d; }}"
    )
}

/// One message per line: answers a request with its parameters, a pair of them in the wrong order, and reports progress
/// if requested.
const JSONRPC: &str = r#"
import json, sys
held = None
def say(message): print(json.dumps(message), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        say({"jsonrpc": "2.0", "id": asked["id"], "result": {"serverInfo": {"name": "test"}}})
        continue
    if "id" not in asked: continue
    params = asked.get("params", {})
    token = params.get("_meta", {}).get("progressToken")
    if token is not None:
        say({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    reply = {"jsonrpc": "2.0", "id": asked["id"], "result": params}
    if asked["method"] == "first": held = reply
    else:
        say(reply)
        if held: say(held); held = None
"#;

#[test]
fn a_program_that_speaks_in_lengths_serves_clients_that_speak_in_lines() {
    for (framing, template, bytes) in [("len1", "C", 1), ("len2", "n", 2), ("len4", "N", 4)] {
        let folder = folder();
        let framed = format!("framing = \"{framing}\"\npipeline = 8\n");
        let program = packed(template, bytes);
        let daemon = serve(folder.path(), "lines", &["perl", "-e", &program], &framed);
        let mut client = daemon.connect();
        for text in ["", "a", "two words"] {
            assert_eq!(client.ask(text), format!("<{text}"), "{framing}");
        }
        // A message that the framing cannot carry is rejected before it is sent.
        if framing == "len1" {
            let reply = client.ask(&"x".repeat(300));
            assert!(reply.starts_with("!record a frame of len1"), "{reply}");
            assert_eq!(client.ask("still there"), "<still there");
        }
    }
}

#[test]
fn listeners_of_every_framing_serve_before_one_program_in_lines() {
    let cases: [(&str, &[u8], &[u8]); 7] = [
        ("nul", b"a\0two words\0", b"a\0two words\0"),
        ("len1", b"\x01a\x05hello", b"\x02+a\x06+hello"),
        ("len2", b"\0\x01a\0\x05hello", b"\0\x02+a\0\x06+hello"),
        ("len4", b"\0\0\0\x05hello", b"\0\0\0\x06+hello"),
        ("netstring", b"1:a,0:,5:hello,", b"2:+a,1:+,6:+hello,"),
        ("raw", b"all of it", b"all of it"),
        (
            "content-length",
            b"Content-Length: 37\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}",
            b"Content-Length: 37\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}",
        ),
    ];
    for (protocol, asked, expected) in cases {
        let folder = folder();
        let daemon = serve(folder.path(), protocol, &["cat"], "");
        let mut client = daemon.connect();
        client.send(asked);
        let reply = client.bytes(expected.len());
        assert_eq!(
            reply.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{protocol}"
        );
    }
}

#[test]
fn a_frame_that_cannot_be_understood_is_refused_once_and_ends_its_client() {
    let folder = folder();
    let daemon = serve(folder.path(), "netstring", &["cat"], "");
    let mut client = daemon.connect();
    client.send("1:a,nonsense");
    assert_eq!(client.bytes(5), b"2:+a,");
    let refusal = client.rest().concat();
    assert!(refusal.contains("!record a netstring begins with its length"), "{refusal}");
}

#[test]
fn a_program_that_prints_text_where_a_length_should_be_is_replaced_and_says_why() {
    let folder = folder();
    let program = "$| = 1; print 'hello, this is text'; sleep 100";
    let daemon = serve(folder.path(), "lines", &["perl", "-e", program], "framing = \"len4\"\n");
    until("it is logged", || {
        read_log(folder.path()).contains("there is text where the length of a frame should be")
    });
    assert!(daemon.stop().success());
}

#[test]
fn a_process_a_request_takes_its_input_to_the_end_and_gives_its_output_to_the_end() {
    let folder = folder();
    let pool = "framing = \"oneshot\"\nworkers = 2\n";
    let daemon = serve(folder.path(), "netstring", &["sort"], pool);
    let mut client = daemon.connect();
    client.send("6:b\na\nc\n,4:z\ny\n,0:,");
    assert_eq!(client.bytes(10), b"7:+a\nb\nc\n,");
    assert_eq!(client.bytes(8), b"5:+y\nz\n,");
    assert_eq!(client.bytes(4), b"1:+,");
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
    assert!(daemon.stop().success());
}

#[test]
fn a_process_is_started_for_its_request_and_not_before() {
    let folder = folder();
    let program = ["sh", "-c", "echo $$; exit $(cat)"];
    let daemon = serve(folder.path(), "lines", &program, "framing = \"oneshot\"\nworkers = 2\n");
    assert!(daemon.programs().is_empty());
    let mut client = daemon.connect();
    let (one, other) = (client.ask("0"), client.ask("0"));
    assert!(one != other && one.parse::<u32>().is_ok(), "{one} {other}");
    // A failure is reported, and does not stop the service.
    for _ in 0..20 {
        assert!(client.ask("1").contains("code 1"));
    }
    assert!(client.ask("0").parse::<u32>().is_ok());
    assert!(daemon.programs().is_empty());
    assert_eq!(daemon.metric("roadstead_worker_starts_total", &[]), 2, "the slots");
    assert!(daemon.stop().success());
}

#[test]
fn a_process_that_cannot_be_started_is_no_storm() {
    let folder = folder();
    let pool = "framing = \"oneshot\"\n";
    let daemon = serve(folder.path(), "lines", &["/no/such/program"], pool);
    let reply = daemon.connect().ask("a");
    assert!(reply.starts_with("!down ") || reply.starts_with("!waited "), "{reply}");
    let starts = daemon.metric("roadstead_worker_starts_total", &[]);
    assert!(starts < 40, "{starts} starts are no back-off");
}

#[test]
fn a_process_need_not_read_its_input() {
    let folder = folder();
    let program = ["sh", "-c", "echo done"];
    let daemon = serve(folder.path(), "nul", &program, "framing = \"oneshot\"\n");
    let mut client = daemon.connect();
    client.send("a\0\0");
    assert_eq!(client.bytes(12), b"done\n\0done\n\0");
}

#[test]
fn a_process_that_fails_is_no_reply() {
    let folder = folder();
    let program = ["sh", "-c", "read line; echo half; exit 3"];
    let daemon = serve(folder.path(), "lines", &program, "framing = \"oneshot\"\n");
    let reply = daemon.connect().ask("a");
    assert!(reply.starts_with("!unknown died ") && reply.contains("code 3"), "{reply}");
}

#[test]
fn a_reply_of_many_frames_ends_with_its_terminator_and_the_next_begins_behind_it() {
    let folder = folder();
    let program =
        "$| = 1; while (<STDIN>) { chomp; print \"$_ $_\\n\" for 1 .. $_; print \".\\n\" }";
    let pool = "stream = { until = \".\" }\npipeline = 4\n";
    let daemon = serve(folder.path(), "lines", &["perl", "-e", program], pool);
    let mut client = daemon.connect();
    client.send("2\n0\n1\n");
    let lines: Vec<String> = (0..6).map(|_| client.line()).collect();
    assert_eq!(
        lines,
        ["2 1 1".replace("2 ", ""), "2 2".into(), ".".into(), ".".into(), "1 1".into(), ".".into()]
    );
}

#[test]
fn a_reply_of_raw_bytes_ends_with_silence() {
    let folder = folder();
    let program = "$| = 1; while (sysread(STDIN, my $in, 100)) { print \"got $in\" }";
    let pool = "framing = \"raw\"\nstream = { idle_timeout = \"60ms\" }\n";
    let daemon = serve(folder.path(), "raw", &["perl", "-e", program], pool);
    let mut client = daemon.connect();
    client.send("one");
    assert_eq!(client.bytes(7), b"got one");
    // The program may only be asked again once its first reply has ended.
    client.send("two");
    assert_eq!(client.bytes(7), b"got two");
    assert_eq!(daemon.metric("roadstead_discarded_replies_total", &[]), 0);
}

#[test]
fn a_stream_larger_than_a_client_takes_holds_its_program_and_nobody_else() {
    let folder = folder();
    let program =
        "$| = 1; while (<STDIN>) { print 'x' x 99999, \"\\n\" for 1 .. 200; print \".\\n\" }";
    let pool = "stream = { until = \".\" }\nworkers = 2\nresponse_timeout = \"60s\"\n";
    let daemon = serve(folder.path(), "lines", &["perl", "-e", program], pool);
    let mut slow = daemon.connect();
    slow.send("go\n");
    let mut quick = daemon.connect();
    quick.send("go\n");
    let count = |client: &mut crate::client::Client| {
        let mut bytes = 0;
        loop {
            let line = client.line();
            if line == "." {
                return bytes;
            }
            bytes += line.len();
        }
    };
    assert_eq!(count(&mut quick), 200 * 99_999);
    assert_eq!(count(&mut slow), 200 * 99_999, "it was held, not cut");
}

pub(crate) fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))
}

#[test]
fn clients_share_a_json_rpc_program_whatever_their_ids() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\npipeline = 64\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", JSONRPC], pool);
    let mut clients: Vec<_> = (0..10).map(|_| daemon.connect()).collect();
    for (who, client) in clients.iter_mut().enumerate() {
        client.send(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{{\"who\":{who}}}}}\n"
        ));
    }
    for (who, client) in clients.iter_mut().enumerate() {
        let reply = parse(&client.line());
        assert_eq!((&reply["id"], &reply["result"]["who"]), (&Value::from(1), &Value::from(who)));
    }
    // The replies to one client arrive when they are ready.
    let client = &mut clients[0];
    client.send("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"first\"}\n{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"second\"}\n");
    assert_eq!(parse(&client.line())["id"], "b");
    assert_eq!(parse(&client.line())["id"], "a");
    // A notification has no answer. An invalid message is answered with an error without an id.
    client.send("{\"jsonrpc\":\"2.0\",\"method\":\"note\"}\nnonsense\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"m\"}\n");
    let (one, other) = (parse(&client.line()), parse(&client.line()));
    let error = if one["id"].is_null() { &one } else { &other };
    assert_eq!(error["error"]["code"], -32600);
    assert!(one["id"] == 3 || other["id"] == 3);
}

#[test]
fn progress_reaches_the_client_that_asked_and_only_that_one() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\npipeline = 8\nhandshake = \"mcp\"\n";
    let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", JSONRPC], pool);
    let mut asking = daemon.connect();
    let mut other = daemon.connect();
    asking.send("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\"}\n");
    assert_eq!(parse(&asking.line())["result"]["serverInfo"]["name"], "test");
    asking
        .send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{\"progressToken\":\"mine\"}}}\n");
    let progress = parse(&asking.line());
    assert_eq!(progress["params"]["progressToken"], "mine");
    assert_eq!(parse(&asking.line())["id"], 1);
    other.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n");
    assert_eq!(parse(&other.line())["id"], 1);
}

#[test]
fn a_client_takes_a_request_back_and_the_program_serves_on() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\npipeline = 2\nresponse_timeout = \"60s\"\n";
    let program = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "stall": continue
    # What is taken back is answered all the same, too late.
    id = asked["params"]["requestId"] if asked["method"] == "notifications/cancelled" else asked["id"]
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": 1}), flush=True)
"#;
    let leaving = "jsonrpc\"\nhalf_close = \"left";
    let daemon = serve(folder.path(), leaving, &["python3", "-c", program], pool);
    let mut client = daemon.connect();
    client.send("{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"stall\"}\n{\"jsonrpc\":\"2.0\",\"id\":\"t\",\"method\":\"stall\"}\n");
    until("both slots are taken until these are taken back", || {
        daemon.status()["pools"][0]["workers"][0]["in_flight"] == 2
    });
    for id in ["s", "t"] {
        client.send(format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":\"{id}\"}}}}\n"
        ));
    }
    client.send("{\"jsonrpc\":\"2.0\",\"id\":\"u\",\"method\":\"m\"}\n");
    assert_eq!(parse(&client.line())["id"], "u", "and nothing of those that were taken back");
    let late = || daemon.metric("roadstead_discarded_replies_total", &[]);
    until("their replies came too late", || late() == 2);
    // And when a client leaves.
    let mut leaving = daemon.connect();
    leaving.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"stall\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"stall\"}\n");
    until("both are with the program", || {
        daemon.status()["pools"][0]["workers"][0]["in_flight"] == 2
    });
    drop(leaving);
    until("their slots are free", || daemon.status()["pools"][0]["workers"][0]["in_flight"] == 0);
    until("so did those", || late() == 4);
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
}

/// Counts its lines, and resets the count on request.
const COUNTER: &str = "$| = 1; while (<STDIN>) { chomp; if ($_ eq 'forget') { $n = 0; print \"ok\\n\"; next } \
                       if ($_ eq 'die') { exit 1 } $n++; print \"$$ $n $_\\n\" }";

/// Sends three requests and returns the process that answered all of them, with the first count.
fn three(client: &mut crate::client::Client) -> (String, String) {
    let replies: Vec<String> = (0..3).map(|it| client.ask(&it.to_string())).collect();
    let words: Vec<Vec<&str>> = replies.iter().map(|it| it.split(' ').collect()).collect();
    assert!(words.iter().all(|it| it[0] == words[0][0]), "one program a connection: {replies:?}");
    (words[0][0].to_owned(), words[0][1].to_owned())
}

#[test]
fn a_connection_has_a_program_of_its_own_until_it_ends() {
    let folder = folder();
    let pool = "dispatch = \"session\"\nworkers = 2\n";
    let daemon = serve(folder.path(), "lines", &["perl", "-e", COUNTER], pool);
    let (mut one, mut other) = (daemon.connect(), daemon.connect());
    let (first, second) = (three(&mut one), three(&mut other));
    assert_ne!(first.0, second.0);
    // A third connection waits until a program is released, and gets one without state.
    let mut third = daemon.connect();
    third.send("a\nb\n");
    until("it waits", || daemon.metric("roadstead_queue_length", &[]) == 1);
    drop(one);
    let reply = third.line();
    assert!(reply.ends_with(" 1 a") && !reply.starts_with(&first.0), "{reply}");
    assert!(third.line().ends_with(" 2 b"));
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
    assert!(daemon.stop().success(), "connections that are open do not hold up a drain");
}

#[test]
fn a_program_that_can_forget_is_kept() {
    let folder = folder();
    let pool = "dispatch = \"session\"\nreset = \"forget\"\nworkers = 1\n";
    let daemon = serve(folder.path(), "lines", &["perl", "-e", COUNTER], pool);
    let mut client = daemon.connect();
    let first = three(&mut client);
    drop(client);
    assert_eq!(three(&mut daemon.connect()), first, "the same process, and it counts anew");
    assert_eq!(daemon.metric("roadstead_worker_starts_total", &[]), 1);
}

#[test]
fn a_connection_whose_program_has_ended_is_told_so() {
    let folder = folder();
    let pool = "dispatch = \"session\"\nworkers = 1\nmin_uptime = \"0s\"\n";
    let daemon = serve(folder.path(), "lines", &["perl", "-e", COUNTER], pool);
    let mut client = daemon.connect();
    three(&mut client);
    let died = client.ask("die");
    assert!(died.starts_with("!unknown died "), "{died}");
    let lost = client.ask("a");
    assert!(lost.starts_with("!lost "), "{lost}");
    let mut another = daemon.connect();
    assert_eq!(three(&mut another).1, "1");
}

/// A language server that sends messages before and after each reply, and requests to its client.
const TALKATIVE: &str = r#"
import json, sys
def say(message): print(json.dumps(message), flush=True)
say({"method": "window/logMessage", "params": {"message": "hello"}})
for line in sys.stdin:
    asked = json.loads(line)
    if "method" not in asked: continue
    say({"method": "note", "params": asked.get("id")})
    say({"id": "mine", "method": "workspace/configuration"})
    if json.loads(sys.stdin.readline()).get("id") != "mine": sys.exit(3)
    say({"id": asked["id"], "result": asked["id"]})
"#;

#[test]
fn what_a_program_says_beside_its_replies_is_not_taken_for_one() {
    for dispatch in ["in-order", "session"] {
        let folder = folder();
        let pool = format!("framing = \"jsonrpc\"\ndispatch = \"{dispatch}\"\n");
        let daemon = serve(folder.path(), "jsonrpc", &["python3", "-c", TALKATIVE], &pool);
        let mut client = daemon.connect();
        for id in 1..4 {
            client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}\n"));
            let mut line = parse(&client.line());
            while line["method"] == "window/logMessage" {
                line = parse(&client.line());
            }
            if dispatch == "session" {
                assert_eq!((&line["method"], &line["params"]), (&"note".into(), &id.into()));
                // Requests of its own program are answered by the client; with a shared program, by the daemon.
                assert_eq!(parse(&client.line())["method"], "workspace/configuration");
                client.send("{\"jsonrpc\":\"2.0\",\"id\":\"mine\",\"result\":[]}\n");
                line = parse(&client.line());
            }
            // A notification of a shared program cannot be attributed to a client.
            assert_eq!(line["result"], id, "{line}");
        }
        assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
    }
}
