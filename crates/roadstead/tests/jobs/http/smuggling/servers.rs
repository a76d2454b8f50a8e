//! Common servers, each with a log of one request line per request, and with replies that say which request they
//! answer: `X-Saw`.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::daemon::{folder, processes_with, until};

pub(super) struct Real {
    child: Child,
    pub(super) port: u16,
    folder: tempfile::TempDir,
}

impl Drop for Real {
    fn drop(&mut self) {
        // SIGTERM instead of SIGKILL, because a server with worker processes stops them first.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        let _ = self.child.wait();
    }
}

impl Real {
    /// Starts a server with this configuration, in which `@PORT@` and `@FOLDER@` are replaced.
    fn start(config: &str, command: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let folder = folder();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = folder.path().display().to_string();
        let text = config.replace("@PORT@", &port.to_string()).replace("@FOLDER@", &path);
        fs::write(folder.path().join("config"), text).unwrap();
        let log = fs::File::create(folder.path().join("errors")).unwrap();
        // The server ends with these tests, even if they are killed.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM"])
            .args(command(folder.path()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let real = Self { child, port, folder };
        until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        real
    }

    /// The request lines that it saw.
    pub(super) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Stops the server, and checks that no process is left.
    pub(super) fn stop(self) -> Vec<String> {
        let mark = self.folder.path().display().to_string();
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let mut real = self;
        real.child.wait().unwrap();
        until("no process of the server is left", || processes_with(&mark).is_empty());
        real.log()
    }
}

fn words(words: &[&str], folder: &Path) -> Vec<String> {
    let config = folder.join("config").display().to_string();
    words.iter().map(|word| word.replace("@CONFIG@", &config)).collect()
}

pub(super) fn nginx() -> Real {
    let config = "daemon off; master_process off; pid @FOLDER@/pid; error_log stderr crit;\n\
        events {}\nhttp { log_format l '$request'; access_log @FOLDER@/log l;\n\
        client_body_temp_path @FOLDER@/a; proxy_temp_path @FOLDER@/b; fastcgi_temp_path @FOLDER@/c;\n\
        uwsgi_temp_path @FOLDER@/d; scgi_temp_path @FOLDER@/e;\n\
        server { listen 127.0.0.1:@PORT@; add_header X-Saw $request always;\n\
        location / { return 200 ok; } } }\n";
    Real::start(config, |folder| words(&["nginx", "-c", "@CONFIG@"], folder))
}

pub(super) fn apache() -> Real {
    let modules = "/usr/lib/apache2/modules";
    let config = format!(
        "ServerName a\nServerRoot @FOLDER@\nPidFile @FOLDER@/pid\nListen 127.0.0.1:@PORT@\n\
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         LoadModule headers_module {modules}/mod_headers.so\n\
         ErrorLog @FOLDER@/errors2\nLogFormat \"%r\" l\nCustomLog @FOLDER@/log l\n\
         Header always set X-Saw \"expr=%{{THE_REQUEST}}\"\nErrorDocument 404 ok\nErrorDocument 405 ok\n\
         DocumentRoot @FOLDER@/none\nMutex file:@FOLDER@ default\n\
         <Location />\nRequire all granted\n</Location>\n"
    );
    // One process, which ends when the tests end.
    let command = ["apache2", "-X", "-f", "@CONFIG@"];
    Real::start(&config, |folder| {
        fs::create_dir(folder.join("none")).unwrap();
        words(&command, folder)
    })
}

pub(super) fn python() -> Real {
    let program = "from http.server import *\nclass H(BaseHTTPRequestHandler):\n\
        \x20 protocol_version = 'HTTP/1.1'\n\x20 wbufsize = -1\n\
        \x20 def handle_it(self):\n\
        \x20   self.rfile.read(int(self.headers.get('Content-Length') or 0))\n\
        \x20   if self.headers.get('Transfer-Encoding'):\n\
        \x20     while True:\n\
        \x20       n = int(self.rfile.readline(), 16)\n\
        \x20       if n == 0: break\n\
        \x20       self.rfile.read(n + 2)\n\
        \x20     while self.rfile.readline() not in (b'\\r\\n', b''): pass\n\
        \x20   open('@FOLDER@/log', 'a').write(self.requestline + '\\n')\n\
        \x20   self.send_response(200)\n\
        \x20   self.send_header('X-Saw', self.requestline)\n\
        \x20   self.send_header('Content-Length', '2')\n\
        \x20   self.end_headers()\n\
        \x20   if self.command != 'HEAD': self.wfile.write(b'ok')\n\
        \x20 do_GET = do_POST = do_HEAD = do_DELETE = handle_it\n\x20 def log_message(self, *a): pass\n\
        ThreadingHTTPServer.request_queue_size = 128\n\
        ThreadingHTTPServer(('127.0.0.1', @PORT@), H).serve_forever()\n";
    Real::start(program, |folder| words(&["python3", "@CONFIG@"], folder))
}
