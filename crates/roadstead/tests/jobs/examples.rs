//! The examples as they are shipped, with real interpreters. Only their ports are chosen by the system.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;

use crate::client::Client;
use crate::daemon::{Daemon, PATIENCE, folder};
use crate::http;
use crate::server::{Kind, Server};

mod cluster;
mod sticky;
mod tables;

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Copies an example into a folder of the test and serves one of its configurations there.
fn serve(folder: &Path, example: &str, file: &str) -> Daemon {
    for entry in fs::read_dir(self::example(example)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let configuration = fs::read_to_string(folder.join(file)).unwrap();
    let configuration = configuration.replace("127.0.0.1:7000", "127.0.0.1:0");
    Daemon::serve(folder, &configuration.replace("127.0.0.1:7070", "127.0.0.1:0"))
}

fn perl_has(module: &str) -> bool {
    Command::new("perl")
        .arg(format!("-M{module}"))
        .args(["-e", "1"])
        .output()
        .is_ok_and(|out| out.status.success())
}

#[test]
fn hits_with_a_perl_worker_does_what_its_page_says() {
    assert!(perl_has("strict"), "this test needs perl: apt-get install perl");
    let folder = folder();
    let daemon = serve(folder.path(), "hits", "hits.toml");
    let mut client = Client::connect(&daemon.listeners["hits"]);
    client.send("7 1764000000000000 /a/17 200\n8 1764000000000001 /b/3 404\nnonsense\n");
    client.finish();
    let replies = client.rest();
    assert_eq!(replies, ["ok 7", "ok 8", "!record four words are needed: ID AT PATH STATUS"]);
    assert_eq!(rows(&folder.path().join("hits.db")), 2);
    assert!(daemon.stop().success());
}

#[test]
fn hits_on_postgres_are_read_over_http_as_their_page_says() {
    assert!(perl_has("strict"), "this test needs perl: apt-get install perl");
    let server = Server::start(Kind::Postgres, &[]);
    let target = server.database("hits");
    let text = fs::read_to_string(example("hits").join("postgres.toml")).unwrap();
    let shipped = "postgres://hits@127.0.0.1/hits";
    assert_eq!(text.matches(shipped).count(), 2);
    let folder = folder();
    fs::copy(example("hits").join("parse.pl"), folder.path().join("parse.pl")).unwrap();
    let text =
        ["7000", "7070", "7080"].iter().fold(text.replace(shipped, &target), |text, port| {
            text.replace(&format!("\"127.0.0.1:{port}\""), "\"127.0.0.1:0\"")
        });
    // The query is prepared when the table exists.
    let daemon = Daemon::serve(folder.path(), &text);
    let mut client = Client::connect(&daemon.listeners["hits"]);
    client.send("7 1764000000000000 /a/17 200\n8 1764000000000001 /b/3 404\n");
    client.finish();
    assert_eq!(client.rest(), ["ok 7", "ok 8"]);
    let web = &daemon.listeners["web"];
    let get = |path| {
        let said = roadstead::ask::request(web, "GET", path, b"").unwrap();
        (said.status, String::from_utf8(said.body).unwrap())
    };
    let row = r#"[{"id":8,"at":1764000000000001,"path":"/b/3","status":404}]"#;
    assert_eq!(get("/hits/404?limit=10"), (200, row.to_owned()));
    assert_eq!(get("/hits/500?limit=10"), (200, "[]".to_owned()));
    let record = br#"{"id":9,"at":1764000000000002,"path":"/c","status":404}"#;
    let said = roadstead::ask::request(web, "POST", "/hits", record).unwrap();
    assert_eq!((said.status, &said.body[..]), (201, &b"ok 9"[..]));
    assert!(get("/hits/404?limit=1").1.starts_with(r#"[{"id":9,"#));
    assert_eq!(get("/hits/none?limit=10").0, 400);
    assert_eq!(get("/hits/404").0, 400);
    assert_eq!(get("/").0, 404);
    assert!(daemon.stop().success());
}

#[test]
fn hits_with_a_database_handle_in_each_worker_stores_the_same() {
    assert!(
        perl_has("DBD::SQLite"),
        "this test needs DBD::SQLite: apt-get install libdbd-sqlite3-perl"
    );
    let folder = folder();
    let daemon = serve(folder.path(), "hits", "dbi.toml");
    let mut client = Client::connect(daemon.listeners.values().next().unwrap());
    client.send("7 1764000000000000 /a/17 200\n8 1764000000000001 /b/3 404\n");
    client.finish();
    assert_eq!(client.rest(), ["ok 7", "ok 8"]);
    let databases: Vec<PathBuf> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "db"))
        .collect();
    assert_eq!(databases.iter().map(|path| rows(path)).sum::<i64>(), 2);
    assert!(daemon.stop().success());
}

fn rows(database: &Path) -> i64 {
    let database = Connection::open(database).unwrap();
    database.query_row("select count(*) from hits", [], |row| row.get(0)).unwrap()
}

/// Makes the program of `len2.toml`.
fn compile_len2(folder: &Path) {
    let cc = Command::new("cc")
        .args(["-O2", "-Wall", "-Werror", "-o"])
        .arg(folder.join("len2"))
        .arg(example("programs").join("len2.c"))
        .status();
    assert!(cc.is_ok_and(|it| it.success()), "this test needs a C compiler: apt-get install gcc");
}

/// Checks the output on the page of `examples/programs`, one file after the other.
#[test]
fn programs_of_every_kind_do_what_their_page_says() {
    let cases: &[(&str, &[u8], &[u8])] = &[
        ("lines", b"one two\n\na b c\n", b"2\n0\n3\n"),
        ("awk", b"hello\n", b"HELLO\n"),
        ("pipelined", b"abc\n12\n", b"cba\n21\n"),
        ("nul", b"a\nb\0", b"[a\nb]\0"),
        ("len1", b"\x02ab\0", b"\x03+AB\x01+"),
        ("packets", b"\0\x07one two", b"\0\x02+2"),
        ("connect", b"", b"hello 127.0.0.1"),
        ("fences", b"one two\n\n", b"2\n0\n"),
        ("unbuffer", b"hello\nyou\n", b"HELLO\nYOU\n"),
        ("len2", b"ab\n\n", b"aabb\n\n"),
        ("len4", b"\0\0\0\x02ab\0\0\0\0", b"\0\0\0\x03+AB\0\0\0\x01+"),
        ("netstring", b"3:abc,0:,", b"4:+cba,1:+,"),
        (
            "web",
            b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\nDELETE / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nset-cookie: seen=1\r\nset-cookie: lang=en\r\n\
              Content-Type: text/plain; charset=utf-8\r\nContent-Length: 6\r\n\r\nhello\n\
              HTTP/1.1 405 Method Not Allowed\r\nallow: GET, POST\r\nContent-Length: 0\r\n\r\n",
        ),
        // The unsolicited diagnostics of the opened file, and the reply after them.
        (
            "lsp",
            b"Content-Length: 118\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/didOpen\",\"params\":{\"textDocument\":{\"uri\":\"file:///a\",\"text\":\"one\\nTODO two\"}}}Content-Length: 101\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"textDocument/hover\",\"params\":{\"position\":{\"line\":3,\"character\":7}}}",
            b"Content-Length: 210\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/publishDiagnostics\",\"params\":{\"uri\":\"file:///a\",\"diagnostics\":[{\"range\":{\"start\":{\"line\":1,\"character\":0},\"end\":{\"line\":1,\"character\":4}},\"message\":\"still to be done\"}]}}Content-Length: 68\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"contents\":\"line 3, character 7\"}}",
        ),
        (
            "jsonrpc",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"add\",\"params\":{\"numbers\":[1,2]}}\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":3}\n",
        ),
        ("oneshot", b"6:10\n9\n1,", b"8:+1\n9\n10\n,"),
        ("stream", b"3\nx\n", b"3\n2\n1\n.\n!record a number is needed\n.\n"),
        ("raw", b"who", b"who? "),
        ("session", b"keep a\nkeep b\nlist\n", b"1\n2\na, b\n"),
    ];
    for (name, asked, expected) in cases {
        let folder = folder();
        if *name == "len2" {
            compile_len2(folder.path());
        }
        println!("{name}.toml");
        let daemon = serve(folder.path(), "programs", &format!("{name}.toml"));
        let mut client = daemon.connect();
        client.send(asked);
        // Each reply over HTTP has a date besides, which is not the same every time.
        let dates = expected.windows(9).filter(|part| *part == b"HTTP/1.1 ").count();
        let length = expected.len() + dates * "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n".len();
        let reply = client.bytes(length);
        let reply = match dates {
            0 => reply,
            _ => http::without_added(std::str::from_utf8(&reply).unwrap()).into_bytes(),
        };
        assert_eq!(reply.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{name}");
    }
}

#[test]
fn datagrams_are_answered_as_their_page_says() {
    let folder = folder();
    let daemon = serve(folder.path(), "programs", "datagrams.toml");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect(daemon.address()).unwrap();
    for (asked, expected) in [("one two", "2"), ("a b c", "3")] {
        socket.send(asked.as_bytes()).unwrap();
        let mut reply = [0; 100];
        let length = socket.recv(&mut reply).unwrap();
        assert_eq!(&reply[..length], expected.as_bytes());
    }
}

/// The same for programs that serve HTTP, whose heads contain dates.
#[test]
fn programs_that_serve_http_do_what_their_page_says() {
    for (name, path, expected) in [
        ("serve", "/a", "/a from python\n"),
        ("serve-node", "/a", "/a from node\n"),
        ("serve-port", "/count.sh", "# Answers each line"),
    ] {
        let folder = folder();
        let daemon = serve(folder.path(), "programs", &format!("{name}.toml"));
        let said = roadstead::ask::request(daemon.address(), "GET", path, b"").unwrap();
        let body = String::from_utf8(said.body).unwrap();
        assert!(said.status == 200 && body.starts_with(expected), "{name}: {body}");
        assert!(daemon.stop().success(), "{name}");
    }
}

/// Returns the path of an npm package that `cargo xtask test` installs, because no Debian package contains it.
fn node_module(name: &str) -> PathBuf {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/node_modules");
    let place = place.join(name);
    assert!(place.exists(), "this test needs {name}: cargo xtask test --only tools");
    place.canonicalize().unwrap()
}

#[test]
fn an_mcp_server_is_shared_by_fifty_clients() {
    let folder = folder();
    let server = node_module("@modelcontextprotocol/server-memory/dist/index.js");
    let text = fs::read_to_string(example("mcp").join("mcp.toml")).unwrap();
    let npx = "[\"npx\", \"-y\", \"@modelcontextprotocol/server-memory\"]";
    assert!(text.contains(npx));
    let memory = folder.path().join("memory.json");
    let text = text
        .replace(npx, &format!("[\"node\", {:?}]", server.display().to_string()))
        .replace("/tmp/roadstead-memory.json", &memory.display().to_string())
        .replace("127.0.0.1:7000", "127.0.0.1:0")
        .replace("127.0.0.1:7070", "127.0.0.1:0");
    let daemon = Daemon::serve(folder.path(), &text);
    let mut clients: Vec<Client> =
        (0..50).map(|_| Client::connect(&daemon.listeners["mcp"])).collect();
    // All clients use the same ids. Each creates a note that only it requests, and must read its own.
    for (who, client) in clients.iter_mut().enumerate() {
        client.send(
            "{\"jsonrpc\":\"2.0\",\"id\":\"hello\",\"method\":\"initialize\",\"params\":{}}\n",
        );
        client.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        client.send(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"create_entities\",\
             \"arguments\":{{\"entities\":[{{\"name\":\"client {who}\",\"entityType\":\"client\",\
             \"observations\":[\"note of {who}\"]}}]}}}}}}\n"
        ));
    }
    for (who, client) in clients.iter_mut().enumerate() {
        let (mut greeted, mut noted) = (false, false);
        while !(greeted && noted) {
            let reply: serde_json::Value = serde_json::from_str(&client.line()).unwrap();
            match &reply["id"] {
                id if *id == "hello" => {
                    assert_eq!(reply["result"]["serverInfo"]["name"], "memory-server");
                    greeted = true;
                }
                id if *id == 1 => {
                    assert!(reply.to_string().contains(&format!("note of {who}\\")), "{reply}");
                    noted = true;
                }
                _ => panic!("nobody asked this: {reply}"),
            }
        }
    }
    assert_eq!(daemon.programs().len(), 1, "one program serves all of them");
    drop(clients);
    assert!(daemon.stop().success());
}

/// A small server of an example, in Python, on a port of its own.
struct Python(Child, String);

impl Python {
    /// Of this file, which prints its port.
    fn start(file: &str) -> Self {
        let mut child = Command::new("python3")
            .arg(example(file))
            .arg("0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self(child, port.trim().to_owned())
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_example_of_routes_says_what_its_page_says() {
    let folder = folder();
    let (api, files) = (Python::start("routes/show.py"), Python::start("routes/show.py"));
    let text = fs::read_to_string(example("routes").join("routes.toml")).unwrap();
    let text = [("7070", "0"), ("8001", &api.1), ("8002", &files.1)]
        .iter()
        .fold(text, |text, (from, to)| {
            text.replace(&format!("127.0.0.1:{from}"), &format!("127.0.0.1:{to}"))
        })
        .replace("listen = \"127.0.0.1:8080\"", "listen = \"127.0.0.1:0\"");
    for file in ["tokens", "users"] {
        fs::copy(example("routes").join(file), folder.path().join(file)).unwrap();
    }
    let daemon = Daemon::serve(folder.path(), &text);
    let get = |target: &str, lines: &str| {
        let mut client = TcpStream::connect(&daemon.listeners["web"]).unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n{lines}\r\n");
        client.write_all(request.as_bytes()).unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        said
    };
    let moved = get("/page?x=1", "Host: old.localhost:8080\r\n");
    assert!(moved.starts_with("HTTP/1.1 308 Permanent Redirect\r\n"), "{moved}");
    assert!(moved.contains("Location: http://localhost:8080/page?x=1\r\n"), "{moved}");
    let file = get("/files/a/../b.txt", "Host: a\r\n");
    assert!(file.ends_with(&format!("{} was asked GET /b.txt\n", files.1)), "{file}");
    assert!(
        !file.contains("Server:") && file.contains("X-Content-Type-Options: nosniff\r\n"),
        "{file}"
    );
    assert!(get("/api/users", "Host: a\r\n").starts_with("HTTP/1.1 401 "));
    for credentials in ["Bearer a-token-drawn-by-chance", "Basic b3BzOmNvcnJlY3QgaG9yc2U="] {
        let said = get("/api/users", &format!("Host: a\r\nAuthorization: {credentials}\r\n"));
        assert!(
            said.ends_with(&format!("{} was asked GET /users\nX-Site: api\n", api.1)),
            "{said}"
        );
    }
    assert!(get("/files/..%2fapi/users", "Host: a\r\n").contains("\r\n\r\npath-separator: "));
    assert!(get("/else", "Host: a\r\n").contains("\r\n\r\nnoroute: "));
}
