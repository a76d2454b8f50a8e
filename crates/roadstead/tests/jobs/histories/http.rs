//! HTTP clients with servers, with programs that get objects, and with routes that respond directly.

use super::recorder::Recorder;
use super::{Clean, Stage, rounds};
use crate::daemon::{Daemon, folder};

/// Messages of dirty clients, with CR LF at the end of each line of a head.
const SCRIPTS: &[&str] = &[
    "\r\n",
    "\r\n",
    "GET /d/plain HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /d/plain HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /d/early HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /d/chunks HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /d/chunks HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /d/long HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /d/none HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /d/until HTTP/1.0\r\n\r\n",
    "GET http://a/d/plain?x=y HTTP/1.1\r\nHost: a\r\nCookie: a=b; c=d\r\nX-A: 1\r\nX-A: 2\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /d/plain HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world",
    "POST /d/plain HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nX: y\r\nServer-Timing: a\r\n\r\n",
    "POST /d/plain HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    "POST /d/plain HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
    "GET /d/switch HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello",
    "GET /d/plain HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    "GET /d/plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "GET /strip/d/plain?q HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /guarded HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /guarded HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a-secret-of-16-characters\r\n\r\n",
    "GET /moved/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /fixed HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /fixed HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
    "GET /object/a?b HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /object HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nobject",
    "POST /object HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nobject\r\n0\r\n\r\n",
    "POST /object HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n",
    "GET /d/plain HTTP/1.1\nHost: a\n\n",
    "GET\t/d/plain HTTP/1.1\r\n\r\n",
    "G=T /d/plain HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /d/plain HTTP/3.0\r\nHost: a\r\n\r\n",
    "GET /d/%zz/../%2e HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /d/plain HTTP/1.1\r\n\r\n",
    "GET /d/plain HTTP/1.1\r\nHost: a\r\nNo colon\r\n\r\n",
    "GET /d/plain HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
    "POST /d/plain HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST /d/plain HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "POST /d/plain HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
    "POST /d/plain HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "POST /d/plain HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
    "POST /d/plain HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n",
    "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
];

/// Messages of clean clients, and whether they may arrive in two pieces. The framing of a chunked body at the server
/// depends on whether it arrived in one piece.
const CLEAN: &[(&str, bool)] = &[
    ("GET /clean/get HTTP/1.1\r\nHost: a\r\n\r\n", true),
    ("GET /clean/close HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", true),
    ("HEAD /clean/head HTTP/1.1\r\nHost: a\r\n\r\n", true),
    ("GET /clean/old HTTP/1.0\r\n\r\n", true),
    ("POST /clean/post HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world", true),
    (
        "POST /clean/chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x\r\n world\r\n0\r\n\r\n",
        false,
    ),
    (
        "POST /clean/expect HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
        false,
    ),
    (
        "GET /clean/no-upgrade HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        true,
    ),
    ("GET /strip/clean/rewritten?q=1 HTTP/1.1\r\nHost: a\r\n\r\n", true),
    ("GET /guarded HTTP/1.1\r\nHost: a\r\n\r\n", true),
    ("GET /moved/clean HTTP/1.1\r\nHost: a\r\n\r\n", true),
    ("GET /fixed HTTP/1.1\r\nHost: a\r\n\r\n", true),
    ("GET /object/clean?x=y HTTP/1.1\r\nHost: a\r\nX-A: b\r\n\r\n", true),
    ("POST /object/clean HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", true),
    ("GET /nowhere\0 HTTP/1.1\r\nHost: a\r\n\r\n", true),
];

/// Returns whether a final head has arrived, with all bytes of its body.
fn is_whole(request: &[u8], reply: &[u8]) -> bool {
    let reply = String::from_utf8_lossy(reply);
    let Some((head, body)) = reply.split_once("\r\n\r\n") else { return false };
    if head.starts_with("HTTP/1.1 1") {
        return is_whole(request, body.as_bytes());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.expect("a length").parse().expect("a number");
    request.starts_with(b"HEAD ") || body.len() >= length
}

fn daemon(server: &Recorder, environment: &[(&str, &str)]) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[access_log]\nto = \"file:access.log\"\n\
         [listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
         half_close = \"keep\"\n\
         [[listener.main.route]]\nprefix = \"/strip\"\npool = \"main\"\nrewrite = {{ strip = \"/strip\" }}\n\
         [[listener.main.route]]\nprefix = \"/guarded\"\npool = \"main\"\n\
         authenticate = {{ bearer = [\"file:tokens\"] }}\n\
         [[listener.main.route]]\nprefix = \"/moved\"\nredirect = {{ to = \"https://b{{path}}{{query}}\", status = 308 }}\n\
         [[listener.main.route]]\nprefix = \"/fixed\"\nrespond = {{ body = \"fixed\" }}\n\
         [[listener.main.route]]\nprefix = \"/object\"\npool = \"object\"\n\
         [pool.main]\nservers = [\"127.0.0.1:{}\"]\nupstream.max_concurrent = 1000\nhealth_check = \"off\"\n\
         [pool.object]\nprogram = [\"sed\", \"-u\", \"s/^/got /\"]\n",
        server.port
    );
    std::fs::write(folder.path().join("tokens"), "a-secret-of-16-characters\n").unwrap();
    let daemon = Daemon::serve_with(folder.path(), &text, environment);
    (folder, daemon)
}

/// Plays with a daemon with these variables, and compares with a fresh one.
fn play(environment: &[(&str, &str)], count: usize) -> Result<(), String> {
    let server = Recorder::start();
    let scripts: Vec<Vec<u8>> = SCRIPTS.iter().map(|it| it.as_bytes().to_vec()).collect();
    let clean: Vec<Clean> = CLEAN
        .iter()
        .map(|(text, is_split)| Clean { bytes: text.as_bytes().to_vec(), is_split: *is_split })
        .collect();
    let received = || server.take();
    let stage = |daemon: &Daemon| Stage {
        address: daemon.address().to_owned(),
        scripts: &scripts,
        clean: &clean,
        received: &received,
        is_whole,
    };
    let (_folder, fresh) = daemon(&server, &[]);
    let reference = stage(&fresh).reference();
    let (_other, dirty) = daemon(&server, environment);
    stage(&dirty).play(count, &reference)
}

#[test]
fn no_history_of_http_changes_the_bytes_of_another_client() {
    if let Err(what) = play(&[], rounds(500)) {
        panic!("{what}");
    }
}

/// A mutant in which data of one client remains in an object that the next client gets.
#[cfg(feature = "plants")]
#[test]
fn an_object_that_is_not_reset_is_noticed() {
    let mutant = exchange::mutant::Mutant::NotReset;
    // It ends with the first visible difference.
    let seen = play(&[("ROADSTEAD_PLANT", mutant.as_str())], rounds(5000));
    println!("seen as: {}", seen.expect_err("the mutant goes unnoticed"));
}
