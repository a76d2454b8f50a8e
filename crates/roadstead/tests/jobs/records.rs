//! Records over HTTP: a POST is a row, and its reply is the acknowledgement after the commit.

use std::path::Path;

use rusqlite::Connection;

use crate::client::Client;
use crate::daemon::{Daemon, folder, until};
use crate::questions::{Reply, ask, reply, web};
use crate::server::{Kind, Server};

const TABLE: &str = "create table hits (id bigint primary key, path varchar(20) not null)";
const INSERT: &str =
    "insert = { table = \"hits\", columns = [\"id\", \"path\"] }\nack = \"ok {id}\"\n";

fn post(client: &mut Client, body: &str) -> Reply {
    post_with(client, "", body)
}

fn post_with(client: &mut Client, line: &str, body: &str) -> Reply {
    let length = body.len();
    client.send(format!(
        "POST /hits HTTP/1.1\r\nHost: a\r\n{line}Content-Length: {length}\r\n\r\n{body}"
    ));
    reply(client, true)
}

fn sqlite(folder: &Path) -> String {
    Connection::open(folder.join("hits.db")).unwrap().execute_batch(TABLE).unwrap();
    format!("sqlite:{}", folder.join("hits.db").display())
}

#[test]
fn a_post_is_a_row_on_each_database() {
    let check = |folder: &Path, target: &str, stored: &dyn Fn() -> Vec<String>| {
        let daemon = Daemon::serve(folder, &web(target, INSERT));
        let mut client = daemon.connect();
        let found = post(&mut client, r#"{"id":1,"path":"/a"}"#);
        assert_eq!((found.status, &*found.body), (201, "ok 1"), "{target}");
        assert_eq!(found.head("content-type"), "text/plain; charset=utf-8");
        assert_eq!(stored(), ["1|/a"], "{target}: it is there before the reply");
        // The connection stays open after each request.
        for (body, status, text) in [
            ("", 400, "record: not a JSON record: "),
            ("[]", 400, "record: not a JSON record: "),
            (r#"{"id":2}"#, 400, "row: the record has no `path`\n"),
            (r#"{"id":1,"path":"/b"}"#, 400, "row: "),
            (r#"{"id":3,"path":null}"#, 400, "row: "),
        ] {
            let refused = post(&mut client, body);
            assert_eq!(refused.status, status, "{target} {body}: {}", refused.body);
            assert!(refused.body.starts_with(text), "{target} {body}: {}", refused.body);
        }
        let last = "{\"id\":4,\"path\":\"' or 1 = 1; --\"}\r\n";
        assert_eq!(post(&mut client, last).body, "ok 4");
        assert_eq!(stored(), ["1|/a", "4|' or 1 = 1; --"], "{target}");
        let other = ask(&mut client, "GET /hits HTTP/1.1");
        assert_eq!((other.status, other.head("allow")), (405, "POST"));
        assert_eq!(post(&mut client, r#"{"id":5,"path":"/c"}"#).status, 201);
        assert!(daemon.stop().success());
    };
    let folder = folder();
    let target = sqlite(folder.path());
    check(folder.path(), &target, &|| {
        let database = Connection::open(folder.path().join("hits.db")).unwrap();
        let mut rows = database.prepare("select id || '|' || path from hits order by id").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    });
    for kind in [Kind::Postgres, Kind::Mariadb] {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", TABLE);
        check(folder.path(), &target, &|| {
            server.run("hits", "select id, path from hits order by id")
        });
    }
}

#[test]
fn a_body_may_come_as_bodies_do() {
    let folder = folder();
    let pool = format!("{INSERT}input_format = \"tsv\"\n");
    let target = sqlite(folder.path());
    let configuration = web(&target, &pool).replace("protocol", "body_max = \"1KiB\"\nprotocol");
    let daemon = Daemon::serve(folder.path(), &configuration);
    let mut client = daemon.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n1\t/\r\n");
    client.send("2\r\na\n\r\n0\r\n\r\n");
    assert_eq!(reply(&mut client, true).body, "ok 1");
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    assert_eq!(client.line(), "HTTP/1.1 100 Continue\r");
    assert_eq!(client.line(), "\r");
    client.send("2\t/b");
    assert_eq!(reply(&mut client, true).body, "ok 2");
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n3\t/c");
    let other = reply(&mut client, true);
    assert_eq!((other.status, other.head("connection")), (405, "close"), "its body is not read");
    let mut client = daemon.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n");
    assert_eq!(reply(&mut client, true).status, 413);
    // A client that disconnects within a record stores nothing.
    daemon.connect().send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n9\t/half");
    assert_eq!(post(&mut daemon.connect(), "4\t/d\n").body, "ok 4");
    let database = Connection::open(folder.path().join("hits.db")).unwrap();
    let ids = "select group_concat(id || path, ' ') from (select * from hits order by id)";
    let stored: String = database.query_row(ids, [], |row| row.get(0)).unwrap();
    assert_eq!(stored, "1/a 2/b 4/d");
}

#[test]
fn a_body_in_an_encoding_is_a_415_and_not_a_broken_record() {
    let folder = folder();
    let target = sqlite(folder.path());
    let daemon = Daemon::serve(folder.path(), &web(&target, INSERT));
    let row = r#"{"id":1,"path":"/a"}"#;
    for line in ["Content-Encoding: gzip\r\n", "Content-Encoding: identity, br\r\n"] {
        let refused = post_with(&mut daemon.connect(), line, row);
        assert_eq!((refused.status, refused.head("accept-encoding")), (415, "identity"), "{line}");
        assert_eq!(refused.head("connection"), "close", "its body is not read");
        assert!(refused.body.contains("Content-Encoding"), "{}", refused.body);
    }
    let mut client = daemon.connect();
    assert_eq!(post_with(&mut client, "Content-Encoding: identity\r\n", row).body, "ok 1");
    let other = row.replace('1', "2");
    assert_eq!(post(&mut client, &other).body, "ok 2", "the connection goes on");
}

#[test]
fn a_database_that_cannot_store_is_a_503_and_says_so() {
    let mut server = Server::start(Kind::Postgres, &[]);
    let target = server.database("hits");
    server.run("hits", TABLE);
    let folder = folder();
    let pool = format!("{INSERT}retry_timeout = \"off\"\nqueue = {{ timeout = \"200ms\" }}\n");
    let daemon = Daemon::serve(folder.path(), &web(&target, &pool));
    let mut client = daemon.connect();
    assert_eq!(post(&mut client, r#"{"id":1,"path":"/a"}"#).status, 201);
    server.kill();
    // The server process of our session may run slightly longer than its parent, and may store rows.
    let mut id = 1;
    let refused = loop {
        id += 1;
        let reply = post(&mut client, &format!("{{\"id\":{id},\"path\":\"/b\"}}"));
        if reply.status != 201 {
            break reply;
        }
    };
    let lost = id;
    assert!(matches!(refused.status, 502 | 503), "{} {}", refused.status, refused.body);
    assert!(!refused.body.contains("127.0.0.1"), "where it is concerns nobody: {}", refused.body);
    server.restart();
    until("it stores again", || {
        id += 1;
        post(&mut client, &format!("{{\"id\":{id},\"path\":\"/c\"}}")).status == 201
    });
    let stored = format!("select count(*) from hits where id in (1, {lost})");
    assert_eq!(server.run("hits", &stored), ["1"]);
}
