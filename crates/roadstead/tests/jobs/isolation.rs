// tidy: tests
//! Replies that some JSON libraries write and others cannot read: they end the request of the client that caused them,
//! and no request of another client of the same program.

use std::path::Path;

use crate::client::Client;
use crate::daemon::{Daemon, folder, until};
use crate::framings::{parse, serve};

/// Replies with the parsed argument `v`, one level deeper and with the id last. `v` may be the name of a value that it
/// generates. With `wait` it continues only when such a file exists.
const ECHO: &str = r#"
import json, os, sys, time
def nested(depth):
    return "[" * depth + "]" * depth
made = {"infinity": "Infinity", "nan": "[NaN]", "deep": nested(500), "half": '"\\ud800"', "twice": '{"a":1,"a":2}'}
for line in sys.stdin:
    asked = json.loads(line)
    params = asked.get("params", asked)
    while "wait" in params and not os.path.exists(params["wait"]): time.sleep(0.01)
    if params["v"] == "nameless":
        print("[1]\n" * 8, end="", flush=True)
        continue
    value = made.get(params["v"]) if isinstance(params["v"], str) else json.dumps(params["v"])
    value = value or json.dumps(params["v"])
    version = '"jsonrpc":"2.0",' if "jsonrpc" in asked else ""
    print('{"result":%s,%s"id":%s}' % (value, version, json.dumps(asked["id"])), flush=True)
"#;

fn echo(folder: &Path, protocol: &str, pool: &str) -> Daemon {
    let pool = format!(
        "workers = 1\npipeline = 16\nresponse_timeout = \"5m\"\nmin_uptime = \"0s\"\n{pool}\n"
    );
    serve(folder, protocol, &["python3", "-c", ECHO], &pool)
}

fn deaths(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_worker_failures_total", &[])
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// A message with this id and this argument; with a file it waits for that.
fn message(id: &str, value: &str, file: Option<&Path>) -> String {
    let wait = file.map_or(String::new(), |file| format!(",\"wait\":{file:?}"));
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\",\"params\":{{\"v\":{value}{wait}}}}}\n"
    )
}

/// The same as a line for a program that finds requests by their member `id`.
fn line(id: &str, value: &str, file: Option<&Path>) -> String {
    let wait = file.map_or(String::new(), |file| format!(",\"wait\":{file:?}"));
    format!("{{\"id\":{id},\"v\":{value}{wait}}}\n")
}

type Write = fn(&str, &str, Option<&Path>) -> String;

/// One client sends a request with each of these values; between them are requests of another one.
fn replies_beside_another_client(
    folder: &Path,
    daemon: &Daemon,
    write: Write,
    values: &[&str],
) -> Vec<String> {
    let (mut other, mut client) = (daemon.connect(), daemon.connect());
    let next = |client: &mut Client| client.line();
    let in_flight = || daemon.status()["pools"][0]["workers"][0]["in_flight"].clone();
    let mut replies = Vec::new();
    for (round, value) in values.iter().enumerate() {
        let file = folder.join(format!("go-{round}"));
        other.send(write("\"first\"", "1", Some(&file)));
        until("it is with the program", || in_flight() == 1);
        client.send(write("\"a\"", value, None));
        other.send(write("\"second\"", "2", None));
        // A rejected request does not wait, and a program that answers in order may be reserved for one client.
        if in_flight() == 1 && daemon.status()["pools"][0]["queued"] == 0 {
            until("they were read", || {
                in_flight() != 1 || daemon.status()["pools"][0]["queued"] != 0
            });
        }
        std::fs::write(file, "").unwrap();
        replies.push(next(&mut client));
        for (id, result) in [("first", 1), ("second", 2)] {
            let reply = parse(&next(&mut other));
            assert_eq!((&reply["id"], &reply["result"]), (&id.into(), &result.into()), "{value}");
        }
    }
    assert_eq!(deaths(daemon), 0);
    replies
}

#[test]
fn a_shared_program_outlives_replies_of_any_depth() {
    let folder = folder();
    let daemon = echo(folder.path(), "jsonrpc", "framing = \"jsonrpc\"");
    let (fits, deep, deepest) = (nested(62), nested(63), nested(126));
    let mut values = vec!["\"deep\""; 9];
    values.extend([&fits[..], &deep, &deepest, "1e400"]);
    let replies = replies_beside_another_client(folder.path(), &daemon, message, &values);
    let codes: Vec<_> = replies.iter().map(|it| parse(it)["error"]["code"].as_i64()).collect();
    let garbled = [Some(-32076); 9];
    assert_eq!(codes[..9], garbled, "{replies:?}");
    assert_eq!(codes[9..], [None, Some(-32600), Some(-32600), Some(-32600)], "{replies:?}");
}

#[test]
fn a_program_that_replies_in_order_outlives_replies_that_are_not_json() {
    let folder = folder();
    let pool = "framing = \"jsonrpc\"\ndispatch = \"in-order\"";
    let daemon = echo(folder.path(), "jsonrpc", pool);
    let values = ["\"infinity\"", "\"nan\"", "\"deep\"", "1e400"];
    let replies = replies_beside_another_client(folder.path(), &daemon, message, &values);
    let codes: Vec<_> = replies.iter().map(|it| parse(it)["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [-32076, -32076, -32076, -32600].map(Some), "{replies:?}");
}

#[test]
fn a_program_with_match_outlives_replies_that_are_not_json() {
    let folder = folder();
    let daemon = echo(folder.path(), "lines", "match = \"{id}\"");
    let deep = nested(100);
    let values = ["\"infinity\"", "\"nan\"", "\"deep\"", "\"half\"", "\"twice\"", "1e400", &deep];
    let replies = replies_beside_another_client(folder.path(), &daemon, line, &values);
    for (value, reply) in values.iter().zip(&replies) {
        let is_refused = reply.starts_with("!record ");
        assert_eq!(is_refused, !value.starts_with('"'), "{value}: {reply}");
    }
}

#[test]
fn when_a_program_is_killed_for_messages_that_name_no_request_none_of_them_is_blamed() {
    let folder = folder();
    let daemon = echo(folder.path(), "jsonrpc", "framing = \"jsonrpc\"");
    let file = folder.path().join("go");
    let (mut other, mut client) = (daemon.connect(), daemon.connect());
    other.send(message("1", "1", Some(&file)));
    let in_flight = || daemon.status()["pools"][0]["workers"][0]["in_flight"].clone();
    until("it is with the program", || in_flight() == 1);
    client.send(message("2", "\"nameless\"", None));
    client.send(message("3", "\"nameless\"", None));
    until("they are with the program", || in_flight() == 3);
    std::fs::write(file, "").unwrap();
    assert_eq!(parse(&other.line())["result"], 1);
    let codes = [client.line(), client.line()].map(|it| parse(&it)["error"]["code"].clone());
    assert_eq!(codes[0], codes[1], "one as the other");
    until("the end of the program is counted", || deaths(&daemon) == 1);
}
