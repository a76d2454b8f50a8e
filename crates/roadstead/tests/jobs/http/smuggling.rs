//! Requests with another one hidden in them, through the daemon to servers that people use.
//!
//! Either we refuse, or the server sees exactly the requests that its client got replies to: so
//! nobody's request is ever read as the beginning of another's.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{connect, rest, serve_pool, status, talk};
use crate::daemon::{Daemon, folder, until};
use std::io::Write;
use std::net::TcpListener;

/// A server with a log of one line a request, which holds the path.
struct Real {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Drop for Real {
    fn drop(&mut self) {
        // Not killed: the parent of several, as Apache has it, ends the others first.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        let _ = self.child.wait();
    }
}

impl Real {
    /// Starts a server with this configuration, in which `@PORT@` and `@FOLDER@` stand for its own.
    fn start(config: &str, command: impl FnOnce(&Path) -> Command) -> Self {
        let folder = folder();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = folder.path().display().to_string();
        let text = config.replace("@PORT@", &port.to_string()).replace("@FOLDER@", &path);
        fs::write(folder.path().join("config"), text).unwrap();
        let log = fs::File::create(folder.path().join("errors")).unwrap();
        let child = command(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let real = Self { child, port, folder };
        until("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        real
    }

    fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn nginx() -> Real {
    let config = "daemon off; master_process off; pid @FOLDER@/pid; error_log stderr crit;\n\
        events {}\nhttp { log_format l '$request'; access_log @FOLDER@/log l;\n\
        client_body_temp_path @FOLDER@/a; proxy_temp_path @FOLDER@/b; fastcgi_temp_path @FOLDER@/c;\n\
        uwsgi_temp_path @FOLDER@/d; scgi_temp_path @FOLDER@/e;\n\
        server { listen 127.0.0.1:@PORT@; location / { return 200 ok; } } }\n";
    Real::start(config, |folder| {
        let mut command = Command::new("nginx");
        command.arg("-c").arg(folder.join("config"));
        command
    })
}

fn apache() -> Real {
    let modules = "/usr/lib/apache2/modules";
    let config = format!(
        "ServerName a\nServerRoot @FOLDER@\nPidFile @FOLDER@/pid\nListen 127.0.0.1:@PORT@\n\
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         ErrorLog @FOLDER@/errors2\nLogFormat \"%r\" l\nCustomLog @FOLDER@/log l\n\
         DocumentRoot @FOLDER@\nMutex file:@FOLDER@ default\n<Location />\nRequire all granted\n</Location>\n"
    );
    Real::start(&config, |folder| {
        let mut command = Command::new("apache2");
        command.arg("-DFOREGROUND").arg("-f").arg(folder.join("config"));
        command
    })
}

fn python() -> Real {
    let program = "import sys\nfrom http.server import *\nclass H(BaseHTTPRequestHandler):\n\
        \x20 protocol_version = 'HTTP/1.1'\n\
        \x20 def handle_one(self):\n\
        \x20   self.rfile.read(int(self.headers.get('Content-Length') or 0))\n\
        \x20   if self.headers.get('Transfer-Encoding'):\n\
        \x20     while True:\n\
        \x20       n = int(self.rfile.readline(), 16)\n\
        \x20       self.rfile.read(n + 2)\n\
        \x20       if n == 0: break\n\
        \x20   open('@FOLDER@/log', 'a').write(self.requestline + '\\n')\n\
        \x20   self.send_response(200)\n\x20   self.send_header('Content-Length', '2')\n\
        \x20   self.end_headers()\n\x20   self.wfile.write(b'ok')\n\
        \x20 do_GET = do_POST = handle_one\n\x20 def log_message(self, *a): pass\n\
        ThreadingHTTPServer(('127.0.0.1', @PORT@), H).serve_forever()\n";
    Real::start(program, |folder| {
        let mut command = Command::new("python3");
        command.arg(folder.join("config"));
        command
    })
}

/// Where a length, a coding or a line end can be taken for something else.
fn attempts() -> Vec<String> {
    let canary = "GET /canary HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = canary.len();
    let lengths = [
        format!("Content-Length: {length}"),
        format!("Content-Length : {length}"),
        format!("Content-Length: +{length}"),
        format!("Content-Length: 0{length}"),
        format!("Content-Length: {length}, {length}"),
        format!("Content-Length: {length}\r\nContent-Length: {length}"),
        format!("Content-Length: {length}\r\nContent-Length: 0"),
        format!("Content-Length: 0\r\nContent-Length: {length}"),
        format!("Content-Length:\u{b}{length}"),
        format!("Content-Length: {length}_0"),
        format!("Content-Length: 0x{length:x}"),
        format!("Content-Length: {length}\r\nConnection: close, Content-Length"),
        format!("\u{0}Content-Length: {length}"),
        "Content-Length: 18446744073709551616".to_owned(),
    ];
    let codings = [
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding:\u{b}chunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\u{0}: chunked",
        "Transfer_Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "Transfer-Encoding:\r\n chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
    ];
    let bodies = [
        format!("0\r\n\r\n{canary}"),
        format!("00\r\n\r\n{canary}"),
        format!("0;x\n\r\n\r\n{canary}"),
        format!("0\n\n{canary}"),
        format!("5\r\nabcde0\r\n\r\n{canary}"),
        format!("{length:x};\r\n{canary}\r\n0\r\n\r\n"),
        format!("0x0\r\n\r\n{canary}"),
        format!("0 \r\n\r\n{canary}"),
        format!("0\r\nContent-Length: 5\r\n\r\n{canary}"),
    ];
    let mut all = Vec::new();
    for line in ["POST /first HTTP/1.1", "GET /first HTTP/1.1", "POST /first HTTP/1.0"] {
        for one in &lengths {
            all.push(format!("{line}\r\nHost: a\r\n{one}\r\n\r\n{canary}"));
        }
        for coding in codings {
            for body in &bodies {
                all.push(format!("{line}\r\nHost: a\r\n{coding}\r\n\r\n{body}"));
            }
        }
        all.push(format!("{line}\r\nHost: a\r\n\r\n{canary}"));
        all.push(format!(
            "{line}\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n{canary}"
        ));
        all.push(format!(
            "{line}\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n{canary}"
        ));
    }
    all
}

fn attack(real: &Real, daemon: &Daemon) {
    for (number, attempt) in attempts().iter().enumerate() {
        let before = real.log().len();
        let mut client = connect(daemon);
        client.write_all(attempt.as_bytes()).unwrap();
        client.write_all(b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let said = rest(&mut client);
        // One more request on a connection of its own shows that the log is complete, and that
        // the link which was used is not out of step.
        let mark = format!("/mark/{number}");
        let marked =
            talk(daemon, format!("GET {mark} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        assert_ne!(status(&marked), "502", "{attempt}");
        until("the request is in the log", || real.log().iter().any(|line| line.contains(&mark)));
        let log = real.log();
        let logged = log[before..].iter().filter(|line| !line.contains(&mark)).count();
        let interim = said.matches("HTTP/1.1 100 ").count();
        let replies = said.matches("HTTP/1.1 ").count() - interim;
        let refused = said.matches("Content-Type: text/plain; charset=utf-8\r\n").count();
        assert_eq!(logged, replies - refused, "{attempt}\n{said}\n{:?}", &log[before..]);
    }
}

fn through(real: &Real) {
    let pool = format!("servers = [\"127.0.0.1:{}\"]", real.port);
    // A body that does not come must not be waited for long.
    let (_folder, daemon) = serve_pool("read = \"1s\"", &pool);
    attack(real, &daemon);
}

#[test]
fn nothing_is_smuggled_to_nginx() {
    through(&nginx());
}

#[test]
fn nothing_is_smuggled_to_apache() {
    through(&apache());
}

#[test]
fn nothing_is_smuggled_to_python() {
    through(&python());
}
