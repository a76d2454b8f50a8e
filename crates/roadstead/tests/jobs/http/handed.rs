//! Requests that are passed from a pool to a fallback pool of any kind.

use std::path::Path;

use rusqlite::Connection;

use super::{CLOSE, serve_pool, status, talk};
use crate::balance::ctl;
use crate::daemon::{Daemon, folder};
use crate::http_server::Server;

/// Answers with the request as a text.
const SHOW: &str = "program = [\"sed\", \"-u\", \"s/^/got /\"]";

fn ask(daemon: &Daemon, method: &str, body: &str) -> String {
    let length = body.len();
    talk(daemon, format!("{method} /x?a=7 HTTP/1.1\r\nContent-Length: {length}\r\n{CLOSE}{body}"))
}

fn get(daemon: &Daemon) -> String {
    talk(daemon, format!("GET /x?a=7 HTTP/1.1\r\n{CLOSE}"))
}

fn body(reply: &str) -> &str {
    reply.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// A record, and the value that is stored.
const RECORD: &str = r#"{"a":"abc"}"#;

/// Returns a pool with a database in this folder and this action.
fn database(folder: &Path, name: &str, what: &str) -> String {
    let file = folder.join(name);
    Connection::open(&file).unwrap().execute_batch("create table t (a text)").unwrap();
    format!("database = {}\n{what}", serde_json::Value::from(format!("sqlite:{}", file.display())))
}

const STORE: &str = "insert = { table = \"t\", columns = [\"a\"] }\ninput_format = \"json\"";
const QUERY: &str = "query = \"select :a as a\"";

/// For each kind of original pool: the fallback pool `other`, with the options that `of` returns, answers.
fn each_kind(of: impl Fn(&Path) -> String, check: impl Fn(&Daemon, &str, &Path)) {
    for kind in ["servers", "program", "store", "query"] {
        let folder = folder();
        let main = match kind {
            "servers" => "servers = [\"127.0.0.1:1\"]".to_owned(),
            "program" => SHOW.to_owned(),
            "store" => database(folder.path(), "main.db", STORE),
            _ => database(folder.path(), "main.db", QUERY),
        };
        let other = of(folder.path());
        let text = format!(
            "[admin]\nlisten = \"127.0.0.1:0\"\n\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
             protocol = \"http\"\npool = \"main\"\n\n[pool.main]\n{main}\n\
             fallback = {{ pool = \"other\" }}\n\n[pool.other]\n{other}\n"
        );
        let daemon = Daemon::serve(folder.path(), &text);
        let (done, told) = ctl(&daemon, &["fallback", "main", "on"]);
        assert!(done, "{told}");
        check(&daemon, kind, folder.path());
        assert!(daemon.stop().success());
    }
}

#[test]
fn servers_answer_for_pools_of_any_kind() {
    let server = Server::start(&[]);
    let other = format!("servers = [\"127.0.0.1:{}\"]", server.port);
    each_kind(
        |_| other.clone(),
        |daemon, kind, _| {
            let (said, due) = match kind {
                "query" => (get(daemon), ""),
                _ => (ask(daemon, "POST", "abc"), "abc"),
            };
            assert_eq!((status(&said), body(&said)), ("200", due), "{kind}: {said}");
            let seen = server.seen();
            let seen = seen.last().unwrap();
            assert!(seen.head.contains(" /x?a=7 HTTP/1.1\r\n"), "{kind}: {}", seen.head);
            assert!(seen.head.contains("X-Forwarded-For: 127.0.0.1\r\n"), "{kind}: {}", seen.head);
            assert_eq!(seen.body, due.as_bytes(), "{kind}");
        },
    );
}

#[test]
fn programs_answer_for_pools_of_any_kind() {
    each_kind(
        |_| SHOW.to_owned(),
        |daemon, kind, _| {
            let (said, due) = match kind {
                "query" => (get(daemon), r#""method":"GET","path":"/x","query":"a=7""#),
                _ => (ask(daemon, "POST", "abc"), r#""body":"abc""#),
            };
            assert_eq!(status(&said), "200", "{kind}: {said}");
            assert!(said.contains("Content-Type: text/plain"), "{kind}: {said}");
            assert!(
                body(&said).starts_with("got {") && body(&said).contains(due),
                "{kind}: {said}"
            );
        },
    );
}

#[test]
fn databases_store_for_pools_of_any_kind_what_is_posted() {
    each_kind(
        |folder| database(folder, "other.db", STORE),
        |daemon, kind, folder| {
            if kind == "query" {
                assert_eq!(status(&get(daemon)), "400", "nothing was posted");
                return;
            }
            let said = ask(daemon, "POST", RECORD);
            assert_eq!(status(&said), "201", "{kind}: {said}");
            let stored = Connection::open(folder.join("other.db")).unwrap();
            let row: String = stored.query_row("select a from t", [], |row| row.get(0)).unwrap();
            assert_eq!(row, "abc", "{kind}");
            if kind != "store" {
                let said = get(daemon);
                assert_eq!(status(&said), "400", "{kind}: {said}");
                assert!(body(&said).contains("only what is POSTed is stored"), "{kind}: {said}");
            }
        },
    );
}

#[test]
fn queries_answer_for_pools_of_any_kind() {
    each_kind(
        |folder| database(folder, "other.db", QUERY),
        |daemon, kind, _| {
            if kind == "store" {
                assert_eq!(status(&ask(daemon, "POST", "")), "400", "a query is asked with GET");
                return;
            }
            let said = get(daemon);
            assert_eq!(status(&said), "200", "{kind}: {said}");
            assert!(said.contains("Content-Type: application/json"), "{kind}: {said}");
            assert!(body(&said).contains('7'), "{kind}: {said}");
        },
    );
}

#[test]
fn a_body_that_came_in_chunks_goes_on_whole_and_one_that_still_comes_does_not() {
    each_kind(
        |_| SHOW.to_owned(),
        |daemon, kind, _| {
            if kind == "query" {
                return;
            }
            let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n";
            let said = talk(daemon, format!("{chunked}{CLOSE}2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n"));
            assert!(body(&said).contains(r#""body":"abc""#), "{kind}: {said}");
            if kind == "servers" {
                let head = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n";
                let said = talk(daemon, format!("{head}{CLOSE}"));
                assert_eq!(status(&said), "400", "{said}");
                assert!(body(&said).contains("its body is still coming"), "{said}");
            }
        },
    );
}

#[test]
fn only_the_body_of_an_answer_is_handed_on_and_a_failure_is_the_reply() {
    const FIRST: &str = "program = [\"python3\", \"-uc\", \"\"\"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({'status': int(asked['query'][2:]), 'body': 'said'}), flush=True)
\"\"\"]";
    let pool = format!("{FIRST}\nthen = \"next\"\n\n[pool.next]\n{SHOW}\n");
    let (_folder, daemon) = serve_pool("", &pool);
    for (asked, status_due, due) in [(200, "200", "got said"), (418, "418", "said")] {
        let said = talk(&daemon, format!("GET /?s={asked} HTTP/1.1\r\n{CLOSE}"));
        assert_eq!((status(&said), body(&said)), (status_due, due), "{said}");
    }
    assert!(daemon.stop().success());
}
