//! Queries that are answered over HTTP.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use crate::client::Client;
use crate::daemon::{Daemon, folder, until};
use crate::server::{Kind, Server, eventually};

const HITS: &str = "create table hits (id bigint, path varchar(20), status integer);\
    insert into hits values (1, '/a', 200), (2, '/b\"', null), (3, '/a', 404)";

/// Returns an HTTP listener with a pool of a database at this target.
pub(crate) fn web(target: &str, pool: &str) -> String {
    format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"http\"\npool = \"main\"\n[pool.main]\ndatabase = \"{target}\"\n{pool}\n"
    )
}

fn sqlite(folder: &Path) -> String {
    Connection::open(folder.join("hits.db")).unwrap().execute_batch(HITS).unwrap();
    format!("sqlite:{}", folder.join("hits.db").display())
}

/// A reply: its status, its head with names in lower case, its body.
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn head(&self, name: &str) -> &str {
        self.head.get(name).map_or("", String::as_str)
    }
}

pub(crate) fn ask(client: &mut Client, line: &str) -> Reply {
    client.send(format!("{line}\r\nHost: a\r\n\r\n"));
    reply(client, !line.starts_with("HEAD"))
}

fn get(client: &mut Client, target: &str) -> Reply {
    ask(client, &format!("GET {target} HTTP/1.1"))
}

pub(crate) fn reply(client: &mut Client, has_body: bool) -> Reply {
    let first = client.line();
    let status = first.split(' ').nth(1).unwrap_or_else(|| panic!("{first:?}")).parse().unwrap();
    let mut head = BTreeMap::new();
    loop {
        let line = client.line();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        head.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = String::new();
    if !has_body {
    } else if head.contains_key("transfer-encoding") {
        loop {
            let size = usize::from_str_radix(client.line().trim_end(), 16).unwrap();
            body += &String::from_utf8(client.bytes(size)).unwrap();
            client.line();
            if size == 0 {
                break;
            }
        }
    } else {
        let size = head.get("content-length").map_or(0, |it| it.parse().unwrap());
        body = String::from_utf8(client.bytes(size)).unwrap();
    }
    Reply { status, head, body }
}

#[test]
fn rows_are_read_over_http_on_each_database() {
    let query = "query = \"select id, path, status from hits where path = :path and id >= :least \
                 order by id\"\nhttp_path = \"/hits/{path}\"\n";
    let check = |folder: &Path, target: &str| {
        let daemon = Daemon::serve(folder, &web(target, query));
        let mut client = daemon.connect();
        let found = get(&mut client, "/hits/%2Fa?least=1");
        let rows = r#"[{"id":1,"path":"/a","status":200},{"id":3,"path":"/a","status":404}]"#;
        assert_eq!((found.status, &*found.body), (200, rows), "{target}");
        assert_eq!(found.head("content-type"), "application/json");
        // The connection stays open after each request.
        assert_eq!(
            get(&mut client, "/hits/%2Fb%22?least=0").body,
            r#"[{"id":2,"path":"/b\"","status":null}]"#
        );
        assert_eq!(get(&mut client, "/hits/'%20or%201=1?least=0").body, "[]", "{target}");
        for (target, status, text) in [
            ("/hits/x", 400, "row: the record has no `least`\n"),
            ("/hits/x?least=1&least=2", 400, "record: not a JSON record: duplicate name `least`"),
            ("/hits/x?least=%zz", 400, "a `%` has no two hexadecimal digits behind it\n"),
            ("/hits", 404, "nothing is answered at this path\n"),
            ("/hits/x/y", 404, "nothing is answered at this path\n"),
            ("/", 404, "nothing is answered at this path\n"),
        ] {
            let refused = get(&mut client, target);
            assert_eq!(refused.status, status, "{target}: {}", refused.body);
            assert!(refused.body.starts_with(text), "{target}: {}", refused.body);
            assert_eq!(refused.head("content-type"), "text/plain; charset=utf-8");
        }
        let head = ask(&mut client, "HEAD /hits/%2Fa?least=1 HTTP/1.1");
        assert_eq!(head.status, 200);
        assert_eq!(head.head("content-length"), rows.len().to_string());
        let other = ask(&mut client, "DELETE /hits/x?least=1 HTTP/1.1");
        assert_eq!((other.status, other.head("allow")), (405, "GET, HEAD"));
        let old = ask(&mut client, "GET /hits/%2Fa?least=3 HTTP/1.0");
        assert_eq!((old.status, old.head("connection")), (200, ""), "it ends as of old");
        assert_eq!(client.rest().concat(), "");
        assert!(daemon.stop().success());
    };
    let folder = folder();
    check(folder.path(), &sqlite(folder.path()));
    for kind in [Kind::Postgres, Kind::Mariadb] {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        for sql in HITS.split(';') {
            server.run("hits", sql);
        }
        check(folder.path(), &target);
    }
}

#[test]
fn what_rows_are_is_said_and_limits_are_the_askers() {
    let folder = folder();
    let target = sqlite(folder.path());
    for (rows, content_type, body) in [
        ("tsv", "text/tab-separated-values; charset=utf-8", "1\t200\n2\t\\N\n3\t404\n"),
        (
            "lines",
            "application/x-ndjson",
            "{\"id\":1,\"status\":200}\n{\"id\":2,\"status\":null}\n{\"id\":3,\"status\":404}\n",
        ),
    ] {
        let pool = format!(
            "query = \"select id, status from hits order by id\"\noutput_format = \"{rows}\"\n"
        );
        let daemon = Daemon::serve(folder.path(), &web(&target, &pool));
        let found = get(&mut daemon.connect(), "/whatever");
        assert_eq!((found.head("content-type"), &*found.body), (content_type, body));
    }
    let pool = "query = \"select id from hits\"\nrows_max = 2\n";
    let daemon = Daemon::serve(folder.path(), &web(&target, pool));
    let refused = get(&mut daemon.connect(), "/");
    assert_eq!((refused.status, &*refused.body), (400, "rows: more than 2 rows\n"));
    // A value that JSON cannot represent is not fixed by a retry.
    let pool = "query = \"select 1 as id, cast(x'ff' as text) as t\"\n";
    let daemon = Daemon::serve(folder.path(), &web(&target, pool));
    let refused = get(&mut daemon.connect(), "/");
    let said = "rows: row 1: column `t` holds text that is not UTF-8, which JSON cannot hold\n";
    assert_eq!((refused.status, refused.head("retry-after"), &*refused.body), (400, "", said));
}

#[test]
fn a_database_that_is_not_there_is_a_503() {
    let mut server = Server::start(Kind::Postgres, &[]);
    let target = server.database("hits");
    let folder = folder();
    let pool =
        "query = \"select 1 as one\"\nretry_timeout = \"off\"\nqueue = { timeout = \"200ms\" }\n";
    let daemon = Daemon::serve(folder.path(), &web(&target, pool));
    let mut client = daemon.connect();
    assert_eq!(get(&mut client, "/").body, "[{\"one\":1}]");
    server.kill();
    let refused = get(&mut client, "/");
    assert_eq!((refused.status, refused.head("retry-after")), (503, "1"), "{}", refused.body);
    assert!(!refused.body.contains("127.0.0.1"), "where it is concerns nobody: {}", refused.body);
    server.restart();
    until("it answers again", || get(&mut client, "/").status == 200);
}

/// Far more than the buffers between a database and a client that reads nothing hold.
const MANY: &str = "with recursive n (x) as (select 1 union all select x + 1 from n where x < 400000) \
    select x, 'some text that makes a row longer than its number' as filler from n";

#[test]
fn a_large_reply_comes_as_the_client_takes_it_and_is_never_held_whole() {
    let folder = folder();
    let target = sqlite(folder.path());
    let pool =
        format!("query = \"{MANY}\"\nrows_max = 1000000\nreply_max = \"1GiB\"\nworkers = 2\n");
    let daemon = Daemon::serve(folder.path(), &web(&target, &pool));
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    };
    let mut warm = daemon.connect();
    assert_eq!(get(&mut warm, "/").status, 200);
    let before = resident();
    let mut slow = daemon.connect();
    slow.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    // The client reads nothing yet and its worker waits for it, while another worker serves another client.
    assert_eq!(get(&mut warm, "/").status, 200);
    let held = resident().saturating_sub(before);
    let whole = reply(&mut slow, true).body;
    assert!(whole.len() > 20 << 20, "{}", whole.len());
    assert!(held < whole.len() / 2, "{held} bytes are held of a reply of {}", whole.len());
    assert!(whole.starts_with("[{\"x\":1,") && whole.ends_with("\"}]"));
    assert_eq!(whole.matches("\"x\":").count(), 400_000);
    // A client that disconnects frees its worker.
    for _ in 0..4 {
        daemon.connect().send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    assert_eq!(get(&mut warm, "/").status, 200);
}

#[test]
fn a_reply_over_its_limit_is_a_refusal_or_breaks_off_and_never_looks_whole() {
    let folder = folder();
    let target = sqlite(folder.path());
    let pool = |limit: &str| format!("query = \"{MANY}\"\nrows_max = 1000000\n{limit}\n");
    for (limit, said) in [
        ("reply_max = \"256KiB\"", "rows: more than 262144 bytes\n"),
        ("reply_max = \"1MiB\"", "rows: more than 1048576 bytes\n"),
    ] {
        let daemon = Daemon::serve(folder.path(), &web(&target, &pool(limit)));
        for version in ["HTTP/1.1", "HTTP/1.0"] {
            let refused = ask(&mut daemon.connect(), &format!("GET / {version}"));
            assert_eq!((refused.status, &*refused.body), (400, said));
        }
    }
    let daemon = Daemon::serve(folder.path(), &web(&target, &pool("reply_max = \"4MiB\"")));
    let rest = |version: &str| {
        let mut client = daemon.connect();
        client.send(format!("GET / {version}\r\nHost: a\r\n\r\n"));
        let mut stream = client.stream();
        let mut bytes = Vec::new();
        let ended = std::io::Read::read_to_end(&mut stream, &mut bytes);
        (String::from_utf8_lossy(&bytes).into_owned(), ended)
    };
    let (cut, _) = rest("HTTP/1.1");
    assert!(cut.starts_with("HTTP/1.1 200 ") && cut.len() > 3 << 20, "{}", cut.len());
    assert!(!cut.ends_with("\r\n0\r\n\r\n") && !cut.contains("more than"));
    let (cut, ended) = rest("HTTP/1.0");
    assert!(cut.starts_with("HTTP/1.1 200 ") && !cut.ends_with(']'), "{}", cut.len());
    assert!(ended.is_err(), "an end would look like that of the body");
}

#[test]
fn a_query_ends_when_its_client_has_left() {
    for (kind, sql, running) in [
        (
            Kind::Postgres,
            "select pg_sleep(3600)::text as never",
            "select count(*) from pg_stat_activity where state = 'active' \
             and query like '%pg_sleep%' and pid <> pg_backend_pid()",
        ),
        (
            Kind::Mariadb,
            "select sleep(3600) as never",
            "select count(*) from information_schema.processlist where info like 'select sleep(%'",
        ),
    ] {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        let folder = folder();
        let pool = format!("query = \"{sql}\"\nresponse_timeout = \"1h\"\n");
        let text = web(&target, &pool).replace("\"http\"", "\"http\"\nhalf_close = \"left\"");
        let daemon = Daemon::serve(folder.path(), &text);
        let mut client = daemon.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        eventually("it runs", || server.run("hits", running) == ["1"]);
        drop(client);
        eventually("it has ended", || server.run("hits", running) == ["0"]);
        let lines = daemon.status()["pools"][0]["workers"].to_string();
        assert!(lines.contains("serving"), "{lines}");
    }
}

#[test]
fn a_query_that_runs_into_its_deadline_is_cancelled_at_the_server_and_the_next_one_works() {
    for (kind, sql, running, cancelled) in [
        (
            Kind::Postgres,
            "select pg_sleep(:seconds::float8)::text as slept",
            "select count(*) from pg_stat_activity where state = 'active' \
             and query like 'select%pg_sleep%' and pid <> pg_backend_pid()",
            None,
        ),
        (
            Kind::Mariadb,
            "select sleep(:seconds) as slept",
            "select count(*) from information_schema.processlist \
             where info like 'select sleep(%' and id <> connection_id()",
            Some(
                "select variable_value from information_schema.global_status \
                  where variable_name = 'COM_KILL'",
            ),
        ),
    ] {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        let folder = folder();
        let pool = format!(
            "query = \"{sql}\"\nresponse_timeout = \"1s\"\nqueue = {{ timeout = \"60s\" }}\n"
        );
        let daemon = Daemon::serve(folder.path(), &web(&target, &pool));
        let mut client = daemon.connect();
        let late = get(&mut client, "/?seconds=3600");
        assert_eq!(late.status, 504, "{kind:?}: {}", late.body);
        // It was running there, was cancelled, and has ended.
        eventually("it was cancelled", || match cancelled {
            None => server.log().contains("canceling statement due to user request"),
            Some(kills) => server.run("hits", kills) != ["0"],
        });
        eventually("it has ended", || server.run("hits", running) == ["0"]);
        until("the next one works", || get(&mut client, "/?seconds=0").status == 200);
        assert!(daemon.stop().success());
    }
}
