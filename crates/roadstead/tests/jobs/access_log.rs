//! The access log of a real daemon: its contents, protection against forged entries, and moving the file.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::daemon::{Daemon, folder, one_pool, until, worker_program};
use crate::http_server::{Answer, Server};

fn with_log(options: &str, text: &str) -> String {
    format!("[access_log]\nto = \"file:access.log\"\n{options}\n{text}")
}

/// Returns the complete lines of the log. The last one may still be incomplete.
fn lines(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("access.log")).unwrap_or_default();
    text.split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
        .map(str::to_owned)
        .collect()
}

/// Returns the lines of the log when there are `count`.
fn logged(folder: &Path, count: usize) -> Vec<String> {
    until("every request has its line", || lines(folder).len() >= count);
    lines(folder)
}

fn objects(folder: &Path, count: usize) -> Vec<Value> {
    logged(folder, count).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn http(options: &str, server: &Server) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let pool = format!("servers = [\"127.0.0.1:{}\"]\n", server.port);
    let text = one_pool("", &pool).replace("\"lines\"", "\"http\"");
    let daemon = Daemon::serve(folder.path(), &with_log(options, &text));
    (folder, daemon)
}

#[test]
fn a_request_of_http_has_a_line_with_times_bytes_and_both_ends() {
    let server = Server::start(&[]);
    let (folder, daemon) = http("fields = [\"User-Agent\"]", &server);
    let mut client = daemon.connect();
    client.send(
        "POST /a?b HTTP/1.1\r\nHost: a\r\nUser-Agent: me\r\nCookie: secret\r\nAuthorization: secret\r\n\
         Connection: close\r\nContent-Length: 5\r\n\r\nhello",
    );
    client.rest();
    let seen = objects(folder.path(), 1);
    let line = &seen[0];
    assert_eq!(line["request"], "POST /a?b HTTP/1.1");
    assert_eq!((&line["status"], &line["in"], &line["out"]), (&200.into(), &5.into(), &5.into()));
    assert_eq!((&line["listener"], &line["pool"]), (&"main".into(), &"main".into()));
    assert_eq!(line["worker"], format!("main/127.0.0.1:{}", server.port));
    assert_eq!((&line["client_end"], &line["worker_end"]), (&"ok".into(), &"ok".into()));
    assert_eq!(line["fields"]["user-agent"], "me");
    for time in ["queue_us", "connect_us", "first_us", "total_us"] {
        assert!(line[time].is_u64(), "{time}: {line}");
    }
    assert!(line["first_us"].as_u64() <= line["total_us"].as_u64(), "{line}");
    let text = fs::read_to_string(folder.path().join("access.log")).unwrap();
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn the_bytes_of_a_body_in_chunks_are_counted_without_their_framing() {
    let server =
        Server::start(&[("/a", Answer::Bytes(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()))]);
    let (folder, daemon) = http("", &server);
    let chunks = |count: usize| format!("3e8;x=y\r\n{}\r\n", "x".repeat(1000)).repeat(count);
    // A body with its head; with a trailer that follows later; and more than is sent together with a head.
    for (count, trailer) in [(3, ""), (3, "grpc-status: 0\r\n"), (200, "")] {
        let mut client = daemon.connect();
        client.send(format!(
            "POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
             {}0\r\n{trailer}\r\n",
            chunks(count)
        ));
        client.rest();
    }
    let mut seen: Vec<u64> =
        objects(folder.path(), 3).iter().map(|line| line["in"].as_u64().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, [3000, 3000, 200_000]);
}

#[test]
fn heads_that_try_to_forge_lines_stay_one_line_each() {
    let server = Server::start(&[]);
    let forged = "/x\\\" 200 5 \\n127.0.0.1%0d%0a";
    for options in
        ["format = \"combined\"", "format = \"json\"\nfields = [\"user-agent\", \"referer\"]"]
    {
        let (folder, daemon) = http(options, &server);
        let heads = [
            format!(
                "GET {forged} HTTP/1.1\r\nHost: a\r\nUser-Agent: \" 200 5 \"\\ \u{2028}\u{85}\r\n\
                 Referer: \"}}\r\nConnection: close\r\n\r\n"
            ),
            // These requests violate a rule. They are rejected, and also have one line each.
            "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: a\rb\r\n\r\n".to_owned(),
            "GET /\n127.0.0.1 HTTP/1.1\r\n\r\n".to_owned(),
        ];
        for head in heads {
            let mut client = daemon.connect();
            client.send(head);
            client.rest();
        }
        let seen = logged(folder.path(), 3);
        assert_eq!(seen.len(), 3, "{seen:?}");
        for line in &seen {
            assert!(!line.chars().any(|it| it.is_control() || it == '\u{2028}'), "{seen:?}");
            if options.contains("json") {
                assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
            } else {
                assert_eq!(line.matches('"').count(), 6, "{line}");
            }
        }
        assert!(seen[1].contains("400") && seen[2].contains("400"), "{seen:?}");
    }
}

#[test]
fn failures_say_whose_end_it_was() {
    let server = Server::start(&[("/garbled", Answer::Last(b"HTTP/1.1 200 OK\n\n".to_vec()))]);
    let (folder, daemon) = http(
        "format = \"{request} {status} {cause} {client_end} {worker_end} {retries}\"",
        &server,
    );
    for path in ["/", "/garbled"] {
        let mut client = daemon.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        client.rest();
    }
    let seen = logged(folder.path(), 2);
    assert_eq!(seen[0], "GET / HTTP/1.1 200 ok ok ok 0");
    assert_eq!(seen[1], "GET /garbled HTTP/1.1 502 garbled told garbled 2");
    let rejects = |labels: &[&str]| daemon.metric("roadstead_http_messages_rejected_total", labels);
    // One for each of the three attempts.
    assert_eq!(rejects(&["side=\"reply\"", "reason=\"bare-lf\""]), 3);
    assert_eq!(rejects(&[]), 3);
}

#[test]
fn a_request_whose_client_leaves_in_the_middle_of_its_body_has_a_line() {
    let folder = folder();
    let pool = format!("{}workers = 1\n", worker_program(&["--echo"]));
    let text = one_pool("", &pool).replace("\"lines\"", "\"http\"");
    let daemon =
        Daemon::serve(folder.path(), &with_log("format = \"{request} {cause} {in}\"", &text));
    let mut client = daemon.connect();
    client.send("POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.line(), "HTTP/1.1 100 Continue\r");
    client.send("ab");
    drop(client);
    assert_eq!(logged(folder.path(), 1), ["POST /a HTTP/1.1 left 2"]);
}

#[test]
fn a_request_is_a_request_in_every_protocol() {
    let folder = folder();
    let pool = format!("{}workers = 1\n", worker_program(&["--echo"]));
    let text = one_pool("frame_max = 10\n", &pool)
        + "[listener.quiet]\nlisten = \"127.0.0.1:0\"\npool = \"main\"\naccess_log = false\n";
    let format = "format = \"{listener} {client_end} {cause} {in} {out} {worker} {status}\"";
    let daemon = Daemon::serve(folder.path(), &with_log(format, &text));
    crate::client::Client::connect(&daemon.listeners["quiet"]).ask("quiet");
    let mut client = daemon.connect();
    assert_eq!(client.ask("hello"), "hello");
    // Another shard may write the next.
    logged(folder.path(), 1);
    assert!(client.ask("hello hello").starts_with("!toolong"));
    let seen = logged(folder.path(), 2);
    assert_eq!(seen, ["main ok ok 5 5 main/0 -", "main toolong toolong 0 0 - -"]);
}

#[test]
fn a_hangup_moves_the_log_to_a_file_of_its_name() {
    let folder = folder();
    let pool = format!("{}workers = 1\n", worker_program(&["--echo"]));
    let daemon = Daemon::serve(folder.path(), &with_log("format = \"{in}\"", &one_pool("", &pool)));
    let mut client = daemon.connect();
    client.ask("a");
    assert_eq!(logged(folder.path(), 1), ["1"]);
    let (log, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    fs::rename(&log, &old).unwrap();
    daemon.signal(Signal::HUP);
    until("the file is there again", || log.exists());
    client.ask("ab");
    assert_eq!(logged(folder.path(), 1), ["2"]);
    assert_eq!(fs::read_to_string(&old).unwrap(), "1\n");
    client.send("abc\n");
    client.finish();
    assert_eq!(client.rest(), ["abc"]);
    assert!(daemon.stop().success());
    assert_eq!(lines(folder.path()), ["2", "3"], "the end waits for the last line");
}

#[test]
fn a_log_that_takes_nothing_stops_nobody_and_is_counted() {
    let folder = folder();
    let pool = format!("{}workers = 1\n", worker_program(&["--echo"]));
    let text = with_log("", &one_pool("", &pool)).replace("file:access.log", "file:/dev/full");
    let daemon = Daemon::serve(folder.path(), &text);
    let mut client = daemon.connect();
    for _ in 0..100 {
        assert_eq!(client.ask("a"), "a");
    }
    until("lost lines are counted", || {
        // Lines that the log could not accept are counted in the next turn.
        client.ask("b");
        daemon.metric("roadstead_access_log_lines_dropped_total", &[]) >= 100
    });
}

#[test]
fn a_body_that_is_refused_on_its_way_is_one_request_with_one_line() {
    let server = Server::start(&[]);
    let folder = folder();
    let pool = format!("servers = [\"127.0.0.1:{}\"]\n", server.port);
    let text = one_pool("body_max = \"1KiB\"\nrequest_read_timeout = \"500ms\"\n", &pool);
    let format = "format = \"{request} {status} {verdict} {cause} {client_end}\"";
    let text = with_log(format, &text.replace("\"lines\"", "\"http\""));
    let daemon = Daemon::serve(folder.path(), &text);
    let requests = || daemon.metric("roadstead_requests_total", &[]);
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        )
    };
    let mut client = daemon.connect();
    client.send(head("/long"));
    until("it is with its pool", || requests() == 1);
    client.send("1000\r\n");
    assert!(client.line().starts_with("HTTP/1.1 413 "));
    client.rest();
    let mut client = daemon.connect();
    client.send(head("/slow"));
    assert!(client.line().starts_with("HTTP/1.1 408 "));
    client.rest();
    let seen = logged(folder.path(), 2);
    let expected = [
        "POST /long HTTP/1.1 413 refused malformed malformed",
        "POST /slow HTTP/1.1 408 refused incomplete incomplete",
    ];
    assert_eq!(seen, expected);
    assert_eq!(requests(), 2);
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &[]), 2);
}

#[test]
fn a_request_that_is_rejected_while_it_is_read_has_its_line_and_its_reason() {
    let server = Server::start(&[]);
    let folder = folder();
    let pool = format!("servers = [\"127.0.0.1:{}\"]\n", server.port);
    let text = one_pool(
        "body_max = \"1KiB\"\nrequest_read_timeout = \"300ms\"\nroute = [{ prefix = \"/\", pool = \"main\" }]\n",
        &pool,
    );
    let format = "format = \"{request} | {status} {cause} {reason}\"";
    let text = with_log(format, &text.replace("\"lines\"", "\"http\""));
    let daemon = Daemon::serve(folder.path(), &text);
    let long = "x".repeat(9000);
    let cut = "x".repeat(2048 - "GET /".len());
    let cases = [
        (
            "GET /  HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET /  HTTP/1.1 | 400 malformed request-line".to_owned(),
        ),
        (
            "\r\nGET /a HTTP/1.1\nHost: a\n\n".to_owned(),
            "GET /a HTTP/1.1 | 400 malformed bare-lf".to_owned(),
        ),
        (
            "GET /\u{1b}[2J\" HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET /\\x1b[2J\\x22 HTTP/1.1 | 400 malformed target".to_owned(),
        ),
        (
            "GET /b HTTP/1.1\r\nA : b\r\n\r\n".to_owned(),
            "GET /b HTTP/1.1 | 400 malformed field-name".to_owned(),
        ),
        (format!("GET /{long}"), format!("GET /{cut} | 414 malformed line-too-long")),
        (
            "TRACE /c HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "TRACE /c HTTP/1.1 | 501 malformed trace".to_owned(),
        ),
        (
            "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "GET /%00 HTTP/1.1 | 400 malformed path-control".to_owned(),
        ),
        (
            "POST /d HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n".to_owned(),
            "POST /d HTTP/1.1 | 413 malformed body-too-long".to_owned(),
        ),
        (
            "POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
            "POST /e HTTP/1.1 | 400 malformed chunk-size".to_owned(),
        ),
        (
            "GET /slow HTTP/1.1\r\nHost:".to_owned(),
            "GET /slow HTTP/1.1 | 408 incomplete -".to_owned(),
        ),
        ("GET /slo".to_owned(), "GET /slo | 408 incomplete -".to_owned()),
        (
            "GET /ok HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned(),
            "GET /ok HTTP/1.1 | 200 ok -".to_owned(),
        ),
    ];
    for (place, (request, expected)) in cases.iter().enumerate() {
        let mut client = daemon.connect();
        client.send(request);
        assert!(client.line().starts_with("HTTP/1.1 "));
        client.rest();
        let seen = logged(folder.path(), place + 1);
        assert_eq!(seen.last(), Some(expected), "{}", request.escape_debug());
    }
}

#[test]
fn the_status_is_the_one_that_the_client_was_told() {
    let folder = folder();
    let database = folder.path().join("hits.db");
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
         route = [{{ path = \"/store\", pool = \"store\" }}, {{ path = \"/page\", pool = \"page\" }}, \
         {{ path = \"/moved\", pool = \"moved\" }}]\n\
         [pool.store]\ndatabase = \"sqlite:{}\"\ncreate = \"create table if not exists hits (id integer)\"\n\
         insert = {{ table = \"hits\", columns = [\"id\"] }}\n\
         [pool.page]\nservers = [\"127.0.0.1:1\"]\nqueue = {{ timeout = \"200ms\" }}\n\
         fallback = {{ line = \"later\", status = 200 }}\n\
         [pool.moved]\nservers = [\"127.0.0.1:1\"]\nqueue = {{ timeout = \"200ms\" }}\n\
         fallback = {{ redirect = \"http://elsewhere/\" }}\n",
        database.display()
    );
    let daemon = Daemon::serve(folder.path(), &with_log("format = \"{request} {status}\"", &text));
    let mut expected = Vec::new();
    for (line, body) in [
        ("POST /store HTTP/1.1", "{\"id\":1}"),
        ("POST /store HTTP/1.1", "[]"),
        ("GET /page HTTP/1.1", ""),
        ("GET /moved HTTP/1.1", ""),
    ] {
        let mut client = daemon.connect();
        let length = body.len();
        client.send(format!(
            "{line}\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
        let told = client.line();
        expected.push(format!("{line} {}", told.split(' ').nth(1).unwrap()));
        client.rest();
        assert_eq!(logged(folder.path(), expected.len()), expected);
    }
    let statuses: Vec<_> = expected.iter().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(&statuses[..3], ["201", "400", "200"]);
    assert!(statuses[3].starts_with('3'), "{statuses:?}");
}

#[test]
fn request_ids_are_small_and_name_the_same_request_everywhere() {
    for shards in [1, 2] {
        let folder = folder();
        let pool = one_pool("", &worker_program(&["--echo"]));
        let text = format!("[daemon]\nshards = {shards}\n{}", with_log("", &pool));
        let daemon = Daemon::serve(folder.path(), &text);
        // Enough connections that both shards have some of them.
        for _ in 0..12 {
            let mut client = daemon.connect();
            client.send("a\n");
            assert_eq!(client.line(), "a");
        }
        let seen = objects(folder.path(), 12);
        let mut ids: Vec<u64> =
            seen.iter().map(|line| line["id"].as_str().unwrap().parse().unwrap()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 12, "{seen:?}");
        assert!(ids[0] > 0 && ids[11] <= 12 * shards, "{ids:?}");
        for id in ids {
            let why = daemon.page(&format!("/why/{id}"));
            assert!(why.contains("pool main: "), "{id}: {why}");
        }
    }
}
