// tidy: tests
//! Programs that print an additional line: which client receives which reply.

use std::path::Path;

use crate::daemon::{Daemon, folder, one_pool, read_log, until};

/// Prints a stray line before one of `every` replies, and the reply `delay` milliseconds later.
const STRAY: &str = r#"
import sys, time
every, delay, count = int(sys.argv[1]), float(sys.argv[2]) / 1000, 0
for line in sys.stdin:
    count += 1
    if count % every == 0:
        sys.stdout.write("DEBUG: cache miss\n")
        sys.stdout.flush()
        time.sleep(delay)
    sys.stdout.write(line)
    sys.stdout.flush()
"#;

/// Starts a daemon with one such program.
fn stray(folder: &Path, every: u32, delay_ms: u32, pool: &str) -> Daemon {
    stray_with(folder, (every, delay_ms), "", pool, &[])
}

/// The same, with a head of its configuration and variables of its own.
pub(crate) fn stray_with(
    folder: &Path,
    (every, delay_ms): (u32, u32),
    head: &str,
    pool: &str,
    environment: &[(&str, &str)],
) -> Daemon {
    let path = folder.join("stray.py");
    std::fs::write(&path, STRAY).unwrap();
    let path = path.display().to_string();
    let program = format!("program = [\"python3\", {path:?}, \"{every}\", \"{delay_ms}\"]\n");
    let pool = format!("{program}workers = 1\nmin_uptime = \"0s\"\n{pool}\n");
    let configuration = format!("{head}{}", one_pool("", &pool));
    Daemon::serve_with(folder, &configuration, environment)
}

/// The replies received by clients that wait for each reply.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    own: usize,
    /// Replies to another client's request.
    pub(crate) misdirected: usize,
}

/// Runs this number of clients, each of which waits for each reply. A client whose reply was displaced by a stray line
/// reads the stray line as its reply, as it would without a daemon.
pub(crate) fn ask_in_turn(daemon: &Daemon, clients: usize, rounds: usize) -> Tally {
    let mut all: Vec<_> = (0..clients).map(|_| daemon.connect()).collect();
    std::thread::scope(|scope| {
        let tallies: Vec<_> = all
            .iter_mut()
            .enumerate()
            .map(|(who, client)| {
                scope.spawn(move || {
                    let mut tally = Tally::default();
                    for round in 0..rounds {
                        let reply = client.ask(&format!("client{who} {round}"));
                        if let Some(of) = reply.strip_prefix("client") {
                            let is_own = of.starts_with(&format!("{who} "));
                            tally.own += usize::from(is_own);
                            tally.misdirected += usize::from(!is_own);
                        }
                    }
                    tally
                })
            })
            .collect();
        tallies.into_iter().fold(Tally::default(), |sum, tally| {
            let tally = tally.join().unwrap();
            Tally { own: sum.own + tally.own, misdirected: sum.misdirected + tally.misdirected }
        })
    })
}

#[test]
fn a_program_that_prints_a_stray_line_before_each_reply_gives_no_client_the_reply_to_another() {
    for delay_ms in [0, 2, 20] {
        let folder = folder();
        let daemon = stray(folder.path(), 1, delay_ms, "");
        let tally = ask_in_turn(&daemon, 2, 50);
        assert_eq!(tally.misdirected, 0, "with the reply {delay_ms} ms after the stray line");
    }
}

#[test]
fn a_program_that_was_found_out_is_logged_with_its_requests_and_its_pool_is_checked_strictly() {
    let folder = folder();
    let daemon = stray(folder.path(), 1, 0, "");
    let tally = ask_in_turn(&daemon, 2, 5);
    assert_eq!(tally.misdirected, 0);
    let log = read_log(folder.path());
    for due in ["may have gone to other clients", "checked after every reply", "roadstead doctor"] {
        assert!(log.contains(due), "{due}: {log}");
    }
    let requests = log.split("requests=").nth(1).unwrap();
    let request = requests.trim_start_matches('"').split([' ', '"', '\n']).next().unwrap();
    let why = daemon.page(&format!("/why/{request}"));
    assert!(why.contains("its reply is suspect"), "{why}");
    until("suspect replies are counted", || {
        daemon.metric("roadstead_suspect_replies_total", &[]) > 0
    });
}

/// Returns the minimum time in which one worker answers this number of requests of two clients in turn, with a check
/// after each.
const fn checked(requests: u32) -> std::time::Duration {
    std::time::Duration::from_millis(10 * requests as u64)
}

#[test]
fn a_client_that_asks_alone_never_waits_for_a_check() {
    let folder = folder();
    let daemon = stray(folder.path(), u32::MAX, 0, "alignment = \"strict\"");
    let mut client = daemon.connect();
    assert_eq!(client.ask("client0 first"), "client0 first");
    let begun = std::time::Instant::now();
    for round in 0..500 {
        let line = format!("client0 {round}");
        assert_eq!(client.ask(&line), line);
    }
    assert!(begun.elapsed() < checked(500), "it waited: {:?}", begun.elapsed());
}

#[test]
fn in_strict_mode_each_client_waits_until_the_other_s_reply_was_checked() {
    let folder = folder();
    let daemon = stray(folder.path(), u32::MAX, 0, "alignment = \"strict\"");
    let (mut one, mut other) = (daemon.connect(), daemon.connect());
    let begun = std::time::Instant::now();
    for round in 0..20 {
        for client in [&mut one, &mut other] {
            let line = format!("client {round}");
            assert_eq!(client.ask(&line), line);
        }
    }
    assert!(begun.elapsed() >= checked(39), "{:?}", begun.elapsed());
}

#[test]
fn clients_on_other_shards_wait_for_a_check_and_get_no_reply_to_another() {
    let folder = folder();
    let daemon = stray_with(folder.path(), (1, 2), "[daemon]\nshards = 4\n", "", &[]);
    assert_eq!(ask_in_turn(&daemon, 8, 20).misdirected, 0);
}

#[test]
fn a_reply_must_carry_what_match_names() {
    let folder = folder();
    let daemon = stray(folder.path(), 3, 20, "match = \"{2}\"");
    let tally = ask_in_turn(&daemon, 2, 30);
    assert_eq!(tally.misdirected, 0);
    assert!(tally.own > 0, "{tally:?}");
    let reply = daemon.connect().ask("word");
    assert!(reply.starts_with("!record "), "{reply}");
}

#[test]
fn without_checks_replies_reach_other_clients() {
    let folder = folder();
    let daemon = stray(folder.path(), 1, 2, "alignment = \"off\"");
    assert!(ask_in_turn(&daemon, 2, 50).misdirected > 0, "the test could not fail");
}

#[test]
fn a_pipelined_program_is_emptied_before_it_is_checked() {
    let folder = folder();
    let daemon = stray(folder.path(), 1, 0, "pipeline = 4");
    let tally = ask_in_turn(&daemon, 2, 20);
    // Requests of both clients may be in flight to the program, because with `pipeline` the operator declares that each
    // request has exactly one reply.
    assert!(tally.misdirected <= 20, "{tally:?}");
    let daemon = stray(folder.path(), u32::MAX, 0, "pipeline = 4");
    assert_eq!(ask_in_turn(&daemon, 4, 20), Tally { own: 80, misdirected: 0 });
}

/// Answers each line, and prints a part of a line behind the reply to `leak`.
const PARTIAL: &str = r#"
import sys
for line in sys.stdin:
    word = line.strip()
    sys.stdout.write(word + "\n" + ("SECRET" if word.startswith("leak") else ""))
    sys.stdout.flush()
"#;

#[test]
fn a_part_of_a_line_behind_a_reply_does_not_begin_the_reply_to_another_client() {
    for pool in ["", "alignment = \"off\"", "alignment = \"strict\"", "match = \"{2}\""] {
        let folder = folder();
        let pool = format!(
            "program = [\"python3\", \"-c\", {PARTIAL:?}]\nworkers = 1\nmin_uptime = \"0s\"\n{pool}\n"
        );
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        // Its probation ends: no check is running afterwards.
        for round in 0..20 {
            let line = format!("hello {round}");
            assert_eq!(daemon.connect().ask(&line), line);
        }
        for round in 0..5 {
            let line = format!("leak a{round}");
            assert_eq!(daemon.connect().ask(&line), line, "{pool}");
            let line = format!("hello b{round}");
            assert_eq!(daemon.connect().ask(&line), line, "{pool}");
        }
    }
}

#[test]
fn a_request_that_not_every_program_returns_unchanged_ends_no_program() {
    let folder = folder();
    let words = "import sys\nfor line in sys.stdin: print(line.split()[0], flush=True)\n";
    let pool =
        format!("program = [\"python3\", \"-c\", {words:?}]\nworkers = 1\nmatch = \"{{1}}\"\n");
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    for round in 0..5 {
        for odd in ["\u{b}", "\u{1f}", "\u{85}", "\u{a0}", "\u{3000}"] {
            let reply = daemon.connect().ask(&format!("evil{round}{odd}x hello"));
            assert!(reply.starts_with("!record "), "{odd:?}: {reply}");
        }
        assert_eq!(daemon.connect().ask(&format!("good{round} hello")), format!("good{round}"));
    }
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
}

#[test]
fn a_program_whose_replies_end_by_a_gap_serves_one_client_after_the_other() {
    for (framing, alignment) in [("raw", "auto"), ("lines", "auto"), ("lines", "strict")] {
        let folder = folder();
        let pool = format!(
            "program = [\"cat\"]\nframing = \"{framing}\"\nstream = {{ idle_timeout = \"50ms\" }}\nworkers = 1\n\
             alignment = \"{alignment}\"\nqueue = {{ timeout = \"60s\" }}\n"
        );
        let pool = if framing == "raw" { pool.replace("alignment = \"auto\"\n", "") } else { pool };
        let protocol = format!("\"{framing}\"\npool");
        let daemon = Daemon::serve(
            folder.path(),
            &one_pool("", &pool).replace("\"lines\"\npool", &protocol),
        );
        let mut clients: Vec<_> = (0..3).map(|_| daemon.connect()).collect();
        for client in &mut clients {
            assert_eq!(client.ask("hello"), "hello", "{framing} {alignment}");
        }
    }
}

#[test]
fn a_message_that_begins_behind_a_reply_and_does_not_end_costs_its_program() {
    let folder = folder();
    let program = "import json, sys\nfor line in sys.stdin: print('{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":0}' % \
                   json.loads(line)['id'], end='\\n ', flush=True)\n";
    let pool = format!(
        "program = [\"python3\", \"-c\", {program:?}]\nframing = \"jsonrpc\"\ndispatch = \"in-order\"\n\
         workers = 1\nmin_uptime = \"0s\"\nqueue = {{ timeout = \"60s\" }}\n"
    );
    let daemon = Daemon::serve(
        folder.path(),
        &one_pool("", &pool).replace("\"lines\"\npool", "\"jsonrpc\"\npool"),
    );
    for id in 0..2 {
        let reply =
            daemon.connect().ask(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}"));
        assert!(reply.contains("\"result\":0"), "{reply}");
    }
    until("the first is replaced", || daemon.metric("roadstead_worker_failures_total", &[]) > 0);
}
