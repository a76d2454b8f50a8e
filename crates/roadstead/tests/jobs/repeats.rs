//! The option `idempotent` of a pool: which requests are retried although a worker had received them.

use std::fs;

use crate::daemon::{Daemon, folder, one_pool};
use crate::http_server::{Answer, Server};

/// Starts an HTTP listener with two servers, one of which resets every connection that requests `/x`.
fn before_a_bad_one(idempotent: &str) -> (tempfile::TempDir, Daemon, [Server; 2]) {
    let folder = folder();
    let servers = [Server::start(&[("/x", Answer::Reset)]), Server::start(&[])];
    let pool = format!(
        "servers = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"]\nhealth_check = \"off\"\n{idempotent}\n",
        servers[0].port, servers[1].port
    );
    let text = one_pool("", &pool).replace("\"lines\"", "\"http\"");
    let daemon = Daemon::serve(folder.path(), &text);
    (folder, daemon, servers)
}

/// Sends enough requests for the bad server to be used, and returns whether each was answered.
fn is_made_again(daemon: &Daemon, method: &str) -> bool {
    let ask = format!(
        "{method} /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let mut statuses = (0..4).map(|_| {
        let mut client = daemon.connect();
        client.send(&ask);
        client.rest().first().and_then(|line| line.get(9..12)).unwrap_or_default().to_owned()
    });
    statuses.all(|status| status == "200")
}

#[test]
fn servers_are_asked_again_for_what_their_pool_declares_and_for_nothing_else() {
    let none = [("GET", false), ("PUT", false), ("POST", false)];
    let safe = [("GET", true), ("HEAD", true), ("PUT", false), ("POST", false)];
    let methods = [("GET", true), ("PUT", true), ("DELETE", true), ("POST", false)];
    let all = [("GET", true), ("PUT", true), ("POST", true), ("PATCH", true)];
    for (declared, methods) in [
        ("idempotent = \"off\"", &none[..]),
        ("idempotent = \"safe\"", &safe),
        ("", &methods),
        ("idempotent = \"methods\"", &methods),
        ("idempotent = \"all\"", &all),
    ] {
        let (_folder, daemon, [bad, _good]) = before_a_bad_one(declared);
        for (method, again) in methods {
            let before = bad.heads("/x").len();
            assert_eq!(is_made_again(&daemon, method), *again, "{method} with {declared:?}");
            assert!(bad.heads("/x").len() > before, "the bad one had its turn");
        }
    }
}

/// A program whose first process exits in the middle of its first request. All later processes echo.
const ONCE: &str = "program = [\"sh\", \"-c\", \"while read l; do mkdir ended 2>/dev/null && exit 1; echo got $l; done\"]\n\
                    min_uptime = \"0s\"";

/// A program that exits in the middle of every request, and records each.
const ALWAYS: &str =
    "program = [\"sh\", \"-c\", \"read l; echo $l >> had; exit 1\"]\nmin_uptime = \"0s\"";

#[test]
fn a_line_that_a_program_had_when_it_ended_goes_to_another_where_that_is_declared() {
    for (declared, wanted) in [("idempotent = \"all\"", "got a"), ("", "!unknown died ")] {
        let folder = folder();
        let daemon = Daemon::serve(folder.path(), &one_pool("", &format!("{ONCE}\n{declared}")));
        let reply = daemon.connect().ask("a");
        assert!(reply.starts_with(wanted), "{declared}: {reply}");
        assert!(folder.path().join("ended").exists());
    }
}

#[test]
fn lines_that_go_to_another_program_keep_their_order() {
    let folder = folder();
    let pool = format!("{ONCE}\nidempotent = \"all\"\nworkers = 1\npipeline = 8");
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut client = daemon.connect();
    daemon.stopped(|| client.send("a\nb\nc\nd\n"));
    let replies: Vec<String> = (0..4).map(|_| client.line()).collect();
    assert_eq!(replies, ["got a", "got b", "got c", "got d"]);
}

#[test]
fn a_request_that_ends_every_program_is_given_to_three_and_ends() {
    let folder = folder();
    let pool = format!("{ALWAYS}\nidempotent = \"all\"\nworkers = 1");
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let reply = daemon.connect().ask("poison");
    assert!(reply.starts_with("!unknown died "), "{reply}");
    let had = fs::read_to_string(folder.path().join("had")).unwrap();
    assert_eq!(had, "poison\n".repeat(3));
}
