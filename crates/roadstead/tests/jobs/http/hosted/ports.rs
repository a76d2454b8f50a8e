//! Ports of programs on which other users listen.

use std::path::Path;

use super::{SERVER, answered_by, get, serve_pool, status};
use crate::daemon::{folder, read_log, until};
use crate::untested::untested_without_root;

/// At its first start it lets a process of another user, which is not its descendant, listen on its port, and waits.
/// Later it serves.
const ROBBED: &str = r#"
if [ ! -e "$MARKER" ]; then
    touch "$MARKER"
    (setpriv --reuid=65534 --regid=65534 --clear-groups perl -MIO::Socket::INET -e '
my $thief = IO::Socket::INET->new(
    LocalAddr => "127.0.0.1", LocalPort => $ENV{PORT}, Listen => 5, ReuseAddr => 1) or die $!;
while (my $client = $thief->accept) {
    sysread $client, my $request, 4096;
    print $client "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen";
    close $client;
}
' &)
    exec sleep 600
fi
exec python3 -c "$SERVER" "at $PORT"
"#;

#[test]
fn another_user_who_listens_on_the_port_of_a_program_gets_no_request() {
    if !rustix::process::geteuid().is_root() {
        return untested_without_root(
            "a port that another user takes",
            "the tests do not run as root",
        );
    }
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let marker = folder();
    let settings = format!(
        "program = [\"sh\", \"-c\", {}]\nframing = \"http\"\nsocket = \"port\"\nworkers = 1\nstart_timeout = \"2s\"\n\
         env = {{ MARKER = {}, SERVER = {} }}\nqueue = {{ timeout = \"20s\" }}",
        text(ROBBED),
        text(marker.path().join("marker").to_str().unwrap()),
        text(SERVER)
    );
    let (folder, daemon) = serve_pool("", &settings);
    let mut said = String::new();
    until("the program serves after another start", || {
        said = get(&daemon, "/");
        assert!(!said.contains("stolen"), "{said}");
        status(&said) == "200"
    });
    answered_by(&said);
    let log = read_log(folder.path());
    assert!(log.contains("another user listens on 127.0.0.1:"), "{log}");
}

/// A process of another user, not a descendant of the program, listens at `$HOST` on its port and reports it.
const THIEF: &str = r#"
(setpriv --reuid=65534 --regid=65534 --clear-groups perl -MIO::Socket::INET -e '
my $thief = IO::Socket::INET->new(
    LocalAddr => $ENV{HOST}, LocalPort => $ENV{PORT}, Listen => 5, ReuseAddr => 1) or die $!;
$| = 1;
print "listens\n";
while (my $client = $thief->accept) {
    sysread $client, my $request, 4096;
    print $client "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen";
    close $client;
}
' 2>&1 &)
"#;

/// Serves one request, stops listening, lets the thief listen, answers, and keeps running.
const LEAVER: &str = r#"
import os, socket, subprocess, time
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
while True:
    client, _ = listener.accept()
    if client.recv(4096):
        break
    client.close()
listener.close()
thief = subprocess.Popen(["sh", "-c", os.environ["THIEF"]], stdout=subprocess.PIPE)
assert thief.stdout.readline() == b"listens\n"
client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nleft")
client.close()
time.sleep(600)
"#;

fn with_thief(first: &str, folder: &Path, host: &str, more: &str) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let marker = folder.join("marker");
    format!(
        "program = [\"sh\", \"-c\", {}]\nframing = \"http\"\nsocket = \"port\"\nworkers = 1\n\
         env = {{ MARKER = {}, SERVER = {}, LEAVER = {}, THIEF = {}, HOST = \"{host}\" }}\n\
         queue = {{ timeout = \"20s\" }}\n{more}",
        text(&format!(
            "if [ ! -e \"$MARKER\" ]; then\n    touch \"$MARKER\"\n    {first}\nfi\n\
             exec python3 -c \"$SERVER\" \"at $PORT\""
        )),
        text(marker.to_str().unwrap()),
        text(SERVER),
        text(LEAVER),
        text(THIEF),
    )
}

#[test]
fn a_port_that_its_program_leaves_is_not_used_any_more() {
    if !rustix::process::geteuid().is_root() {
        return untested_without_root(
            "a port that its program leaves",
            "the tests do not run as root",
        );
    }
    // Checks fail until the thief listens: with a lower `fall` they may replace the program before.
    let check =
        "health_check = { check = \"http\", path = \"/\", interval = \"50ms\", fall = 1000 }";
    for more in ["", check] {
        let marker = folder();
        let first = "exec python3 -c \"$LEAVER\"";
        let settings = with_thief(first, marker.path(), "127.0.0.1", more);
        let (folder, daemon) = serve_pool("", &settings);
        // The only request that the program answers is either a health check or this one.
        let said = get(&daemon, "/");
        assert!(!said.contains("stolen"), "{said}");
        until("another program serves", || {
            let said = get(&daemon, "/");
            assert!(!said.contains("stolen"), "{said}");
            status(&said) == "200" && !said.ends_with("left")
        });
        let log = read_log(folder.path());
        assert!(log.contains("another user listens on 127.0.0.1:"), "{log}");
        assert!(daemon.stop().success());
    }
}

#[test]
fn another_user_who_listens_on_another_address_with_the_same_port_disturbs_nobody() {
    if !rustix::process::geteuid().is_root() {
        return untested_without_root(
            "a port that another user has on another address",
            "the tests do not run as root",
        );
    }
    let marker = folder();
    let first = "sh -c \"$THIEF\" | head -n 1 >&2";
    let settings = with_thief(first, marker.path(), "127.0.0.2", "");
    let (folder, daemon) = serve_pool("", &settings);
    answered_by(&get(&daemon, "/"));
    let log = read_log(folder.path());
    assert!(log.contains("listens") && !log.contains("another user"), "{log}");
    assert!(daemon.stop().success());
}
