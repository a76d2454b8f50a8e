//! Clients of the protocol `lines`, correct and faulty.

use std::io::Write;
use std::os::unix::net::UnixStream;

use crate::client::Client;
use crate::daemon::{Daemon, folder, one_pool, until, worker_program};

fn echo(listener: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let pool = format!("{}workers = 2\n", worker_program(&["--echo"]));
    let daemon = Daemon::serve(folder.path(), &one_pool(listener, &pool));
    (folder, daemon)
}

#[test]
fn replies_come_in_the_order_of_the_requests_of_each_client() {
    let (_folder, daemon) = echo("");
    let mut clients: Vec<Client> = (0..20).map(|_| daemon.connect()).collect();
    for (who, client) in clients.iter_mut().enumerate() {
        let lines: String = (0..50).map(|line| format!("{who} {line}\n")).collect();
        client.send(lines);
    }
    for (who, client) in clients.iter_mut().enumerate() {
        for line in 0..50 {
            assert_eq!(client.line(), format!("{who} {line}"));
        }
    }
}

#[test]
fn a_client_that_ends_its_side_still_gets_every_reply() {
    let (_folder, daemon) = echo("");
    let mut client = daemon.connect();
    client.send("a\nb\r\n\nc\n");
    client.finish();
    assert_eq!(client.rest(), ["a", "b", "", "c"]);
}

#[test]
fn with_half_close_left_the_end_of_the_bytes_is_the_end_of_the_client() {
    let (_folder, daemon) = echo("half_close = \"left\"\n");
    let mut client = daemon.connect();
    assert_eq!(client.ask("a"), "a");
    client.finish();
    assert_eq!(client.rest(), [""; 0]);
}

#[test]
fn a_line_over_the_limit_is_refused_in_its_turn_and_the_next_ones_are_served() {
    let (_folder, daemon) = echo("frame_max = 100\n");
    let mut client = daemon.connect();
    client.send(format!("a\n{}\nb\n{}\nc\n", "x".repeat(101), "y".repeat(1_000_000)));
    client.finish();
    let lines = client.rest();
    assert_eq!(lines[0], "a");
    assert!(lines[1].starts_with("!toolong "), "{lines:?}");
    assert_eq!(lines[2], "b");
    assert!(lines[3].starts_with("!toolong "), "{lines:?}");
    assert_eq!(lines[4..], ["c"]);
}

#[test]
fn nul_and_invalid_utf8_pass_unchanged() {
    let (_folder, daemon) = echo("");
    let mut client = daemon.connect();
    client.send(b"a\0b\xff\xfe\n");
    let mut reply = Vec::new();
    std::io::BufRead::read_until(&mut std::io::BufReader::new(client.stream()), b'\n', &mut reply)
        .unwrap();
    assert_eq!(reply, b"a\0b\xff\xfe\n");
}

#[test]
fn a_line_that_a_program_may_take_for_two_is_rejected_unless_kept() {
    let ask = |client: &mut Client, line: &[u8]| {
        client.send([line, b"\n"].concat());
        client.line()
    };
    let (_folder, daemon) = echo("");
    let mut client = daemon.connect();
    for line in ["a\rb", "\ra", "a\r\r", "a\u{85}b", "a\u{2028}b", "a\u{2029}"] {
        let reply = ask(&mut client, line.as_bytes());
        assert!(reply.starts_with("!record "), "{line:?}: {reply}");
    }
    assert_eq!(ask(&mut client, b"a\r"), "a", "it is part of the line end");
    let folder = folder();
    let pool = "program = [\"cat\"]\nline_breaks = \"keep\"\n";
    let daemon = Daemon::serve(folder.path(), &one_pool("", pool));
    assert_eq!(ask(&mut daemon.connect(), b"a\rb"), "a\rb");
}

#[test]
fn an_unterminated_last_line_is_refused_or_accepted_as_configured() {
    let (_folder, daemon) = echo("");
    let mut client = daemon.connect();
    client.send("whole\ncut o");
    client.finish();
    let lines = client.rest();
    assert_eq!(lines[0], "whole");
    assert!(lines[1].starts_with("!incomplete "), "{lines:?}");

    let (_folder, daemon) = echo("last_line = \"accept\"\n");
    let mut client = daemon.connect();
    client.send("whole\nlast");
    client.finish();
    assert_eq!(client.rest(), ["whole", "last"]);
}

#[test]
fn in_status_style_no_reply_can_be_mistaken() {
    let (_folder, daemon) = echo("reply = \"status\"\nframe_max = 10\n");
    let mut client = daemon.connect();
    assert_eq!(client.ask("!full"), "+!full");
    assert!(client.ask("0123456789a").starts_with("!toolong "));
}

#[test]
fn a_connection_over_the_limit_is_told_so_and_closed_and_the_place_is_free_again_later() {
    let folder = folder();
    let program = "while read -r line; do [ \"$line\" = hold ] && sleep 1000; echo \"$line\"; done";
    let pool = format!("program = [\"sh\", \"-c\", '{program}']\nworkers = 4\n");
    let daemon = Daemon::serve(
        folder.path(),
        &one_pool("connections_max = 3\nhalf_close = \"left\"\n", &pool),
    );
    let mut clients: Vec<Client> = (0..3).map(|_| daemon.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("here"), "here");
        client.send("hold\n");
    }
    until("none is idle", || daemon.metric("roadstead_workers", &["\"busy\""]) == 3);
    let lines = daemon.connect().rest();
    assert!(lines[0].starts_with("!connections "), "{lines:?}");
    assert_eq!(daemon.metric("roadstead_connections_rejected_total", &[]), 1);
    drop(clients.pop());
    until("the place is free", || daemon.metric("roadstead_connections", &["main"]) == 2);
    assert_eq!(daemon.connect().ask("again"), "again");
}

#[test]
fn a_client_that_is_idle_too_long_is_closed_and_one_that_is_not_stays() {
    let (_folder, daemon) = echo("idle_timeout = \"300ms\"\n");
    let mut idle = daemon.connect();
    assert_eq!(idle.ask("a"), "a");
    assert_eq!(idle.rest(), [""; 0]);
    let mut busy = daemon.connect();
    for _ in 0..10 {
        assert_eq!(busy.ask("b"), "b");
    }
}

#[test]
fn a_line_that_was_begun_and_does_not_end_is_refused_in_time() {
    let (_folder, daemon) = echo("request_read_timeout = \"200ms\"\n");
    let mut client = daemon.connect();
    client.send("whole\nbegun");
    assert_eq!(client.line(), "whole");
    let lines = client.rest();
    assert!(lines[0].starts_with("!incomplete "), "{lines:?}");
}

#[test]
fn what_comes_after_a_line_that_did_not_end_in_time_is_not_served() {
    let folder = folder();
    let program = worker_program(&["--echo", "--misbehave", "slow=600"]);
    let daemon = Daemon::serve(
        folder.path(),
        &one_pool("request_read_timeout = \"200ms\"\n", &format!("{program}workers = 1\n")),
    );
    let mut client = daemon.connect();
    client.send("first\nbeg");
    until("the line is refused", || {
        daemon.metric("roadstead_requests_finished_total", &["incomplete"]) == 1
    });
    client.send("un\nsecond\n");
    let lines = client.rest();
    assert_eq!(lines[0], "first");
    assert!(lines[1].starts_with("!incomplete "), "{lines:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn replies_that_fill_a_client_s_share_exactly_are_followed_by_the_rest() {
    // A quarter of send_max is written together: eight replies of eight bytes.
    let folder = folder();
    let pool = format!("{}workers = 1\npipeline = 32\n", worker_program(&["--echo"]));
    let listener = "send_max = 256\nsend_timeout = \"off\"\nidle_timeout = \"off\"\n";
    let daemon = Daemon::serve(folder.path(), &one_pool(listener, &pool));
    let mut client = daemon.connect();
    for _ in 0..20 {
        client.send("1234567\n".repeat(32));
        for _ in 0..32 {
            assert_eq!(client.line(), "1234567");
        }
    }
}

#[test]
fn what_was_sent_before_a_unix_socket_was_closed_is_served() {
    let folder = folder();
    let path = folder.path().join("main.sock");
    let configuration = one_pool("", &worker_program(&["--echo"])).replacen(
        "[listener.main]\nlisten = \"127.0.0.1:0\"",
        &format!("[listener.main]\nlisten = \"unix:{}\"", path.display()),
        1,
    );
    let daemon = Daemon::serve(folder.path(), &configuration);
    for _ in 0..10 {
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"said and gone\n").unwrap();
    }
    until("all were taken", || daemon.metric("roadstead_requests_total", &[]) == 10);
    until("nobody is left", || daemon.metric("roadstead_connections", &["main"]) == 0);
}

#[test]
fn a_client_that_vanishes_mid_request_leaves_nothing_behind() {
    let folder = folder();
    let pool = format!("{}workers = 1\n", worker_program(&["--echo", "--misbehave", "slow=100"]));
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    for _ in 0..20 {
        let mut client = daemon.connect();
        client.send("one\ntwo\nthree\n");
        // Unread replies turn this close into a reset.
        drop(client);
    }
    until("nothing is on its way", || {
        daemon.metric("roadstead_requests_in_flight", &[]) == 0
            && daemon.metric("roadstead_connections", &["main"]) == 0
    });
    assert_eq!(daemon.connect().ask("still here"), "still here");
}

#[test]
fn a_client_that_never_reads_is_held_in_bounds_then_cut_and_counted() {
    let folder = folder();
    let pool = format!("{}workers = 2\npipeline = 8\n", worker_program(&["--echo"]));
    let listener = "send_timeout = \"500ms\"\nsend_max = \"256KiB\"\nidle_timeout = \"off\"\n";
    let daemon = Daemon::serve(folder.path(), &one_pool(listener, &pool));
    let client = daemon.connect();
    let mut stream = client.stream().try_clone().unwrap();
    let pump = std::thread::spawn(move || {
        let line = [b"x".repeat(4000), b"\n".to_vec()].concat();
        let mut sent = 0_u64;
        while stream.write_all(&line).is_ok() {
            sent += line.len() as u64;
        }
        sent
    });
    until("it is cut", || {
        daemon.metric("roadstead_connections_closed_total", &["main", "\"stalled\""]) == 1
    });
    let sent = pump.join().unwrap();
    // As much as the kernel buffers on both sides and our limits allow, and no more.
    assert!(sent < 64 << 20, "{sent} bytes were taken from a client that reads nothing");
    until("its requests are gone", || daemon.metric("roadstead_requests_in_flight", &[]) == 0);
    assert_eq!(daemon.connect().ask("others"), "others");
}

#[test]
fn unix_sockets_and_ipv6_are_listened_on() {
    let folder = folder();
    let path = folder.path().join("main.sock");
    let pool = worker_program(&["--echo"]);
    let configuration = one_pool("", &pool).replacen(
        "[listener.main]\nlisten = \"127.0.0.1:0\"",
        &format!(
            "[listener.six]\nlisten = \"[::1]:0\"\npool = \"main\"\n\
             [listener.main]\nlisten = \"unix:{}\"",
            path.display()
        ),
        1,
    );
    let daemon = Daemon::serve(folder.path(), &configuration);
    let mut unix = UnixStream::connect(&path).unwrap();
    unix.write_all(b"over unix\n").unwrap();
    unix.shutdown(std::net::Shutdown::Write).unwrap();
    let mut reply = String::new();
    std::io::Read::read_to_string(&mut unix, &mut reply).unwrap();
    assert_eq!(reply, "over unix\n");
    assert_eq!(Client::connect(&daemon.listeners["six"]).ask("over six"), "over six");
}
