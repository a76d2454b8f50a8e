//! Access to the admin address: no web page, no other local user and no client without the token can control a daemon.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::daemon::{BINARY, Daemon, folder, one_pool, read_log, until, worker_program};

/// A user without rights.
const NOBODY: u32 = 65534;

/// An echo pool behind an admin address with these options. The token file, if there is one, is in the
/// folder.
fn serve(folder: &TempDir, admin: &str) -> Daemon {
    let configuration = one_pool("", &worker_program(&["--echo"])).replacen(
        "[admin]\nlisten = \"127.0.0.1:0\"\n",
        &format!("[admin]\n{admin}\n"),
        1,
    );
    let runtime = folder.path().to_str().unwrap();
    let variables = [("RUNTIME_DIRECTORY", runtime), ("TEST_TOKEN", TOKEN)];
    Daemon::serve_with(folder.path(), &configuration, &variables)
}

const TOKEN: &str = "0123456789abcdef-token";

/// The response to raw bytes.
fn raw(daemon: &Daemon, request: &str) -> String {
    let mut answer = Vec::new();
    match daemon.admin.strip_prefix("unix:") {
        Some(path) => talk(UnixStream::connect(path).unwrap(), request, &mut answer),
        None => talk(TcpStream::connect(&daemon.admin).unwrap(), request, &mut answer),
    }
    String::from_utf8(answer).unwrap()
}

fn talk(mut stream: impl Read + Write, request: &str, answer: &mut Vec<u8>) {
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_end(answer).unwrap();
}

/// The status of a request with these header lines.
fn status(daemon: &Daemon, method: &str, path: &str, headers: &[&str]) -> u16 {
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let body = if method == "GET" { "\r\n" } else { "Content-Length: 2\r\n\r\nhi" };
    let request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}{body}");
    let answer = raw(daemon, &request);
    answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

fn ctl(runtime: &Path, user: Option<u32>, arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(arguments).env("RUNTIME_DIRECTORY", runtime).current_dir("/");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command.output().unwrap()
}

/// Waits until exactly this number of requests have reached the pool. Rejected requests never do. They are counted once
/// per turn of the loop. The metrics are read without a token, because the client of the tests would use one from the
/// default folder, where a killed daemon may have left a token for the same address.
fn asked(daemon: &Daemon, count: u64) {
    let host = if daemon.admin.starts_with("unix:") { "localhost" } else { &daemon.admin };
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let asked = || {
        let page = raw(daemon, &request);
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        let lines =
            page.lines().filter(|line| line.starts_with("roadstead_requests_finished_total{"));
        let of_pool = lines.filter(|line| line.contains("pool=\"main\""));
        of_pool.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum::<u64>()
    };
    until("the requests are counted", || asked() >= count);
    assert_eq!(asked(), count);
}

#[test]
fn a_web_page_cannot_control_the_daemon() {
    let folder = folder();
    let daemon = serve(&folder, "listen = \"localhost:0\"\ntoken = \"env:TEST_TOKEN\"");
    let (host, token) =
        (format!("Host: {}", daemon.admin), format!("Authorization: Bearer {TOKEN}"));
    let origin = format!("Origin: http://{}", daemon.admin);
    let (host, token, origin) = (host.as_str(), token.as_str(), origin.as_str());
    let own = "Roadstead-Request: 1";
    // Even a page that has the token is rejected.
    for (method, path, headers, expected) in [
        ("POST", "/ask/main", vec!["Host: evil.example", token, own], 403),
        ("POST", "/ask/main", vec![host, "Origin: http://evil.example", token, own], 403),
        ("POST", "/ask/main", vec![host, "Origin: null", token, own], 403),
        ("POST", "/ask/main", vec![host, "Origin: http://localhost", token, own], 403),
        ("POST", "/ask/main", vec![host, "Sec-Fetch-Site: cross-site", token, own], 403),
        ("POST", "/ask/main", vec![host, "Sec-Fetch-Site: same-site", token, own], 403),
        ("POST", "/ask/main", vec![host, "Content-Type: text/plain", token], 415),
        ("POST", "/ask/main", vec![host, "Content-Type: multipart/form-data", token], 415),
        ("POST", "/ask/main", vec![host, token], 415),
        ("POST", "/ask/main", vec![token, own], 400),
        ("POST", "/ask/main", vec![host, host, token, own], 400),
        ("POST", "/ask/main", vec![host, own], 403),
        ("POST", "/ask/main", vec![host, own, "Authorization: Bearer 0123456789abcdef"], 401),
        ("POST", "/ask/main", vec![host, own, token, token], 401),
        ("GET", "/status", vec!["Host: evil.example"], 403),
        ("GET", "/metrics", vec![host, "Origin: http://evil.example"], 403),
        ("GET", "/metrics", vec![host, "Sec-Fetch-Site: cross-site"], 403),
        ("POST", "http://evil.example/ask/main", vec![host, token, own], 403),
    ] {
        assert_eq!(status(&daemon, method, path, &headers), expected, "{path} {headers:?}");
    }
    asked(&daemon, 0);
    for headers in [
        vec![host, token, own],
        vec![host, token, "Content-Type: application/json; charset=utf-8"],
        vec![host, token, own, origin, "Sec-Fetch-Site: same-origin"],
        vec!["Host: LOCALHOST:1", token, own],
    ] {
        assert_eq!(status(&daemon, "POST", "/ask/main", &headers), 200, "{headers:?}");
    }
    asked(&daemon, 4);
    let page = raw(&daemon, &format!("GET / HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n"));
    for header in ["x-content-type-options: nosniff", "frame-ancestors 'none'", "no-store"] {
        assert!(page.contains(header), "{header}: {page}");
    }
    // One line for each attempt to change something, or its number in a line for several.
    until("the attempts are logged", || sum(logged(&folder)) == 19);
    assert!(!read_log(folder.path()).contains(TOKEN));
}

/// Lines of the log about single requests, and the number of those that it only counts.
fn logged(folder: &TempDir) -> (u64, u64) {
    let log = read_log(folder.path());
    let lines = log.lines().filter(|line| {
        line.contains("admin: ") && (line.contains(" POST ") || line.contains(" GET "))
    });
    let omitted = log.lines().filter(|line| line.contains("without a valid token"));
    let count = |line: &str| line.rsplit_once("omitted=")?.1.trim().parse::<u64>().ok();
    (lines.count() as u64, omitted.filter_map(count).sum())
}

fn sum((lines, omitted): (u64, u64)) -> u64 {
    lines + omitted
}

#[test]
fn clients_without_a_token_do_not_fill_the_log_and_a_wrong_token_is_in_it() {
    let folder = folder();
    let daemon = serve(&folder, "listen = \"localhost:0\"\ntoken = \"env:TEST_TOKEN\"");
    let (host, own) = (format!("Host: {}", daemon.admin), "Roadstead-Request: 1");
    let wrong = "Authorization: Bearer 0123456789abcdef";
    let begun = std::time::Instant::now();
    assert_eq!(status(&daemon, "GET", "/status", &[&host, wrong]), 401);
    until("it is logged", || read_log(folder.path()).contains(" GET /status: rejected"));
    assert_eq!(status(&daemon, "GET", "/status", &[&host]), 200);
    for _ in 0..300 {
        assert_eq!(status(&daemon, "POST", "/reload", &[&host, own]), 403);
    }
    until("all are logged or counted", || sum(logged(&folder)) == 301);
    let (lines, _) = logged(&folder);
    assert!(lines <= 5 * (begun.elapsed().as_secs() + 1), "{lines} lines");
    // A command of the operator is always logged.
    let token = format!("Authorization: Bearer {TOKEN}");
    assert_eq!(status(&daemon, "POST", "/recycle/main", &[&host, own, &token]), 200);
    until("it is logged", || read_log(folder.path()).contains("POST /recycle/main"));
}

#[test]
fn a_loopback_address_without_a_token_is_controlled_by_the_user_of_the_daemon_only() {
    let folder = folder();
    // Every user may enter the folder, but no other user may read the token.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let daemon = serve(&folder, "listen = \"localhost:0\"");
    let host = format!("Host: {}", daemon.admin);
    let own = "Roadstead-Request: 1";
    assert_eq!(status(&daemon, "GET", "/metrics", &[&host]), 200);
    // The daemon does not wait for the body.
    let announced = format!("GET /health HTTP/1.1\r\n{host}\r\nContent-Length: 9\r\n\r\n");
    assert!(raw(&daemon, &announced).starts_with("HTTP/1.1 413 "));
    for path in ["/ask/main", "/reload", "/recycle/main", "/pools/main/fallback", "/nothing"] {
        assert_eq!(status(&daemon, "POST", path, &[&host, own]), 403, "{path}");
    }
    assert_eq!(status(&daemon, "GET", "/why/1", &[&host]), 403);
    let arguments = ["ask", "--admin", &daemon.admin, "main", "hi"];
    let out = ctl(folder.path(), None, &arguments);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "hi\n", "{out:?}");
    let file = folder.path().join(format!("admin-{}.token", daemon.admin));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    if rustix::process::geteuid().is_root() {
        let out = ctl(folder.path(), Some(NOBODY), &arguments);
        let told = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && told.contains("read-only"), "{out:?}");
    }
    asked(&daemon, 1);
    assert!(daemon.stop().success());
    assert!(!file.exists(), "the token goes with its daemon");
}

#[test]
fn a_unix_socket_is_controlled_by_root_the_daemon_s_user_and_its_group() {
    let folder = folder();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let socket = folder.path().join("admin.sock");
    let mode = || std::fs::metadata(&socket).unwrap().permissions().mode() & 0o7777;
    let listen = format!("listen = \"unix:{}\"", socket.display());
    let arguments = ["ask", "--admin", &format!("unix:{}", socket.display()), "main", "hi"];
    let asks = |user| {
        let out = ctl(folder.path(), user, &arguments);
        (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let daemon = serve(&folder, &listen);
    assert_eq!(mode(), 0o660);
    assert!(asks(None).0);
    // A page in a browser cannot reach a socket, but a proxy could forward its requests, so they are checked too.
    let own = "Roadstead-Request: 1";
    assert_eq!(status(&daemon, "POST", "/ask/main", &["Host: evil.example", own]), 403);
    assert_eq!(status(&daemon, "POST", "/ask/main", &["Host: localhost"]), 415);
    asked(&daemon, 1);
    if rustix::process::geteuid().is_root() {
        assert!(!asks(Some(NOBODY)).0);
        // The check applies even if the file mode lets every user connect.
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
        let (served, told) = asks(Some(NOBODY));
        assert!(!served && told.contains("only root"), "{told}");
        drop(daemon);
        let _daemon = serve(&folder, &format!("{listen}\ngroup = \"{NOBODY}\""));
        assert_eq!(mode(), 0o660);
        let (served, told) = asks(Some(NOBODY));
        assert!(served, "{told}");
    }
}

#[test]
fn an_address_that_others_can_reach_needs_a_token_for_everything() {
    let folder = folder();
    let daemon = serve(&folder, "listen = \"0.0.0.0:0\"\ntoken = \"env:TEST_TOKEN\"");
    let host = format!("Host: {}", daemon.admin.replace("0.0.0.0", "127.0.0.1"));
    let token = format!("Authorization: Bearer {TOKEN}");
    assert_eq!(status(&daemon, "GET", "/metrics", &[&host]), 401);
    assert_eq!(status(&daemon, "GET", "/metrics", &[&host, &token]), 200);
    let admin = daemon.admin.replace("0.0.0.0", "127.0.0.1");
    let with = |place: &str| {
        let mut command = Command::new(BINARY);
        command.args(["ask", "--admin", &admin, "--admin-token", place, "main", "hi"]);
        command.env("ADMIN_TOKEN", TOKEN).output().unwrap()
    };
    assert!(with("env:ADMIN_TOKEN").status.success());
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    assert!(with(&format!("file:{}", file.display())).status.success());
    let out = with(TOKEN);
    let told = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && !told.contains(TOKEN), "{told}");
}

/// Accepts connections and prints what is sent on each.
const STRANGER: &str = "
import socket, sys
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    client, _ = listener.accept()
    print(repr(client.recv(65536)), flush=True)
    client.close()
";

#[test]
fn a_token_is_not_sent_to_another_user_who_listens_on_the_admin_port() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = folder();
    let mut stranger = Command::new("python3");
    stranger.args(["-c", STRANGER]).uid(NOBODY).gid(NOBODY).current_dir("/");
    let mut stranger = stranger.stdout(Stdio::piped()).spawn().expect("this test needs python3");
    let mut heard = BufReader::new(stranger.stdout.take().unwrap()).lines().map(Result::unwrap);
    let admin = format!("127.0.0.1:{}", heard.next().unwrap());
    let file = folder.path().join("roadstead.toml");
    let write = |admin: &str| {
        let listen = format!("[admin]\nlisten = \"{admin}\"\ntoken = \"env:TEST_TOKEN\"\n");
        let text = one_pool("", &worker_program(&[]));
        let text = text.replacen("[admin]\nlisten = \"127.0.0.1:0\"\n", &listen, 1);
        std::fs::write(&file, text).unwrap();
    };
    let run = |arguments: &[&str]| {
        let mut command = Command::new(BINARY);
        let out = command.args(arguments).env("TEST_TOKEN", TOKEN).output().unwrap();
        let told = [out.stdout, out.stderr].concat();
        (out.status.success(), String::from_utf8(told).unwrap())
    };
    write(&admin);
    let file = file.to_str().unwrap();
    let token = ["--admin", &admin, "--admin-token", "env:TEST_TOKEN"];
    let ask = [&["ask", "main", "hi"], &token[..]].concat();
    let named = format!("user {NOBODY} listens");
    for (arguments, right) in [
        (&ask[..], false),
        (&[&["ctl", "why", "main"], &token[..]].concat(), false),
        (&["check", file], true),
        (&["check", file, "--admin", &admin], false),
    ] {
        let (success, told) = run(arguments);
        assert!(success == right && told.contains(&named), "{arguments:?}: {told}");
        assert_eq!(heard.next().unwrap(), "b''", "{arguments:?}");
    }
    // A process of another user does not get the line of `ask` without a token either.
    let (success, told) = run(&["ask", "main", "hi", "--admin", &admin]);
    assert!(!success && told.contains(&named), "{told}");
    assert_eq!(heard.next().unwrap(), "b''");
    // A user that the operator names gets it.
    run(&[&ask[..], &["--admin-user", &NOBODY.to_string()]].concat());
    assert!(heard.next().unwrap().contains(TOKEN));
    // An address on another machine that only the file names is not contacted.
    write("192.0.2.1:7070");
    let (success, told) = run(&["check", file]);
    assert!(success && told.contains("was not asked"), "{told}");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_token_that_cannot_be_used_is_an_error_of_check() {
    let folder = folder();
    let file = folder.path().join("roadstead.toml");
    let check = |token: Option<&str>| {
        let text = one_pool("", &worker_program(&[])).replacen(
            "[admin]\n",
            "[admin]\ntoken = \"env:TEST_TOKEN\"\n",
            1,
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(BINARY);
        command.arg("check").arg(&file).env_remove("TEST_TOKEN");
        command.envs(token.map(|token| ("TEST_TOKEN", token)));
        let out = command.output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    assert!(check(Some(TOKEN)).0);
    let (right, told) = check(None);
    assert!(!right && told.contains("TEST_TOKEN"), "{told}");
    let (right, told) = check(Some("hush"));
    assert!(!right && told.contains("fewer than 16") && !told.contains("hush"), "{told}");
}
