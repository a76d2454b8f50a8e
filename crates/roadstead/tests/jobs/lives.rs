//! How programs start, time out, are replaced and end, with real programs.

use std::process::Command;

use serde_json::Value;

use crate::daemon::{BINARY, Daemon, folder, one_pool, read_log, until};
use crate::framings::serve;

fn daemon(program: &[&str], pool: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let words: Vec<String> = program.iter().map(|word| Value::from(*word).to_string()).collect();
    let pool = format!("program = [{}]\nmin_uptime = \"0s\"\n{pool}\n", words.join(", "));
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    (folder, daemon)
}

#[test]
fn what_clients_are_told_of_a_program_that_ended_is_for_the_pool_to_say() {
    let script = "read line; echo 'opened file:secret' >&2; echo 'no room' >&2; exit 7";
    for (words, line, page) in [
        ("auto", "ended (exit code 7; it said last: no room)", "the program ended (exit code 7)\n"),
        ("off", "ended", ""),
        (
            "line",
            "ended (exit code 7; it said last: no room)",
            "the program ended (exit code 7); it said last: no room\n",
        ),
        (
            "tail",
            "ended (exit code 7; it said last: no room)",
            "the program ended (exit code 7); it said last:\nopened file:secret\nno room\n",
        ),
    ] {
        let pool = format!(
            "exit_message = \"{words}\"\n[listener.web]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\""
        );
        let (folder, daemon) = daemon(&["sh", "-c", script], &pool);
        let reply = daemon.connect().ask("a");
        assert!(
            reply.starts_with("!unknown died worker main/") && reply.ends_with(line),
            "{reply}"
        );
        let said = roadstead::ask::request(&daemon.listeners["web"], "GET", "/", b"").unwrap();
        let body = String::from_utf8(said.body).unwrap();
        assert_eq!(said.status, 502);
        let told = body.strip_prefix("died: ").unwrap_or_else(|| panic!("{body}"));
        assert!(
            if page.is_empty() { !told.contains("exit") } else { told == page },
            "{words}: {told}"
        );
        let all = "it said last: \"opened file:secret\\nno room\"";
        until("the log has all of it", || read_log(folder.path()).matches(all).count() == 2);
    }
}

/// Answers every line with its process id.
const PID: &[&str] = &["sh", "-c", "while read line; do echo $$; done"];

fn recycle(daemon: &Daemon, pool: &str) -> std::process::Output {
    Command::new(BINARY).args(["ctl", "recycle", pool, "--admin", &daemon.admin]).output().unwrap()
}

#[test]
fn a_program_that_dies_tells_its_code_and_its_last_words_in_reply_and_log() {
    let script = "read line; echo 'first words' >&2; echo \"no room for $line\" >&2; exit 7";
    let (folder, daemon) = daemon(&["sh", "-c", script], "");
    let reply = daemon.connect().ask("a whale");
    let end = "ended (exit code 7; it said last: no room for a whale)";
    assert!(reply.starts_with("!unknown died ") && reply.ends_with(end), "{reply}");
    let said = "ended by itself: exit code 7; it said last: \"first words\\nno room for a whale\"";
    until("the log has all of it", || read_log(folder.path()).contains(said));
}

/// Writes each line to standard error; exits at `crash`, and at `quiet` without a message.
const SAYS: &str = r#"
import json, sys
for line in sys.stdin:
    word = line.strip()
    if word.startswith("{"): word = json.loads(word)["method"]
    if word == "quiet": sys.exit(1)
    print("about", word, file=sys.stderr, flush=True)
    if word == "crash": sys.exit(1)
    if word == "wait": continue
    print(line.strip().replace('"method"', '"result"'), flush=True)
"#;

#[test]
fn no_client_is_told_what_a_program_said_about_another() {
    let asked = |framing: &str, word: &str| match framing {
        "lines" => word.to_owned(),
        _ => format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{word}\"}}"),
    };
    let session = "dispatch = \"session\"\nreset = \"forget\"";
    let pools = [
        ("lines", ""),
        ("lines", session),
        ("lines", "pipeline = 2"),
        ("jsonrpc", ""),
        ("jsonrpc", "dispatch = \"in-order\""),
    ];
    for (framing, pool) in pools {
        for last in ["quiet", "crash"] {
            let folder = folder();
            let script = Value::from(SAYS);
            let text = format!(
                "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
                 protocol = \"{framing}\"\npool = \"main\"\n[pool.main]\nprogram = [\"python3\", \"-uc\", {script}]\n\
                 framing = \"{framing}\"\nworkers = 1\nmin_uptime = \"0s\"\n{pool}\n"
            );
            let daemon = Daemon::serve(folder.path(), &text);
            let mut other = daemon.connect();
            assert!(other.ask(&asked(framing, "alice")).contains("alice"), "{pool}");
            until("it is read", || read_log(folder.path()).contains("about alice"));
            drop(other);
            let told = daemon.connect().ask(&asked(framing, last));
            assert!(told.contains("exit code 1") && !told.contains("alice"), "{pool}: {told}");
            let is_alone = framing == "lines" && pool != "pipeline = 2";
            assert_eq!(told.contains("about crash"), is_alone && last == "crash", "{pool}: {told}");
            let log = "it said last: \"about alice";
            until("the log has all of it", || read_log(folder.path()).contains(log));
        }
    }
}

#[test]
fn what_the_death_of_a_shared_program_is_about_is_told_only_where_the_pool_says_so() {
    for (words, tells) in [("auto", false), ("off", false), ("line", true), ("tail", true)] {
        let script = Value::from(SAYS);
        let folder = folder();
        let text = format!(
            "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\npool = \"main\"\n\
             [pool.main]\nprogram = [\"python3\", \"-uc\", {script}]\nworkers = 1\nmin_uptime = \"0s\"\n\
             pipeline = 2\nexit_message = \"{words}\"\n"
        );
        let daemon = Daemon::serve(folder.path(), &text);
        let (mut one, mut other) = (daemon.connect(), daemon.connect());
        one.send("wait\n");
        until("it has the first", || read_log(folder.path()).contains("about wait"));
        other.send("crash\n");
        for client in [&mut one, &mut other] {
            let told = client.line();
            assert!(told.starts_with("!unknown died "), "{told}");
            assert_eq!(told.contains("about crash"), tells, "{words}: {told}");
        }
    }
}

#[test]
fn a_greeting_makes_ready_and_is_no_reply() {
    let script = "sleep 0.2; echo Welcome; while read line; do echo \"$line!\"; done";
    let (_folder, daemon) = daemon(&["sh", "-c", script], "ready = \"line\"");
    assert_eq!(daemon.connect().ask("first"), "first!");
    assert_eq!(daemon.metric("roadstead_discarded_replies_total", &[]), 0);
}

#[test]
fn a_program_that_never_says_that_it_is_ready_is_killed_and_another_tried() {
    let pool = "ready = \"line\"\nstart_timeout = \"200ms\"";
    let (folder, daemon) = daemon(&["sleep", "1000"], pool);
    until("it is said", || read_log(folder.path()).contains("was not ready in time"));
    until("another is tried", || {
        daemon.metric("roadstead_worker_starts_total", &[]) > 0
            || read_log(folder.path()).matches("was not ready in time").count() > 1
    });
}

#[test]
fn a_program_that_does_not_begin_to_answer_is_killed_long_before_the_deadline() {
    let (_folder, daemon) =
        daemon(&["sh", "-c", "read line; sleep 1000"], "first_byte_timeout = \"200ms\"");
    let reply = daemon.connect().ask("a");
    assert!(reply.starts_with("!unknown deadline "), "{reply}");
    assert!(reply.ends_with("did not begin to answer within 200ms"), "{reply}");
}

#[test]
fn a_part_of_a_reply_counts_as_its_beginning() {
    let script = "while read line; do printf begun; sleep 0.4; echo; done";
    let (_folder, daemon) =
        daemon(&["sh", "-c", script], "first_byte_timeout = \"200ms\"\nworkers = 1");
    assert_eq!(daemon.connect().ask("a"), "begun");
}

#[test]
fn a_slow_request_is_logged_and_goes_on() {
    let script = "while read line; do sleep 0.4; echo $line; done";
    let (folder, daemon) = daemon(&["sh", "-c", script], "slowlog_timeout = \"100ms\"");
    assert_eq!(daemon.connect().ask("patience"), "patience");
    assert_eq!(read_log(folder.path()).matches("has had a request for").count(), 1);
}

#[test]
fn a_program_that_reads_nothing_is_killed_before_the_deadline() {
    let folder = folder();
    let pool = "program = [\"sleep\", \"1000\"]\nsend_timeout = \"200ms\"\nmin_uptime = \"0s\"\n";
    let daemon = Daemon::serve(folder.path(), &one_pool("frame_max = \"1MiB\"", pool));
    // More than the capacity of a pipe.
    let reply = daemon.connect().ask(&"x".repeat(500_000));
    assert!(reply.ends_with("read nothing of its input for 200ms"), "{reply}");
}

#[test]
fn a_stopped_program_is_killed_at_the_deadline_and_another_serves() {
    let script = "read line; if [ $line = stop ]; then kill -STOP $$; fi; echo $line; exec cat";
    let (_folder, daemon) =
        daemon(&["sh", "-c", script], "response_timeout = \"300ms\"\nworkers = 1");
    let mut client = daemon.connect();
    let reply = client.ask("stop");
    assert!(reply.starts_with("!unknown deadline "), "{reply}");
    assert_eq!(client.ask("go"), "go");
}

#[test]
fn a_program_is_replaced_after_its_requests_and_none_is_lost() {
    let (_folder, daemon) =
        daemon(PID, "workers = 1\nrecycle = { max_requests = 5, jitter = \"0%\" }");
    let mut client = daemon.connect();
    let mut seen = std::collections::BTreeSet::new();
    until("five have served", || {
        let pid = client.ask("a");
        assert!(pid.parse::<u32>().is_ok(), "{pid}");
        seen.insert(pid);
        seen.len() >= 5
    });
}

#[test]
fn a_program_that_grew_is_replaced_after_its_reply() {
    let perl = "$| = 1; my @all; while (<>) { push @all, 'x' x 30_000_000; print \"$$\\n\" }";
    let pool = "workers = 1\nrecycle = { max_memory = \"20MiB\", jitter = \"0%\" }";
    let (_folder, daemon) = daemon(&["perl", "-e", perl], pool);
    let mut client = daemon.connect();
    let first = client.ask("a");
    until("another answers", || client.ask("b") != first);
}

#[test]
fn all_are_replaced_on_order_and_requests_go_on() {
    let (_folder, daemon) = daemon(PID, "workers = 4");
    until("all run", || daemon.programs().len() == 4);
    let before = daemon.programs();
    let out = recycle(&daemon, "main");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "4 workers of pool main are replaced\n");
    let mut client = daemon.connect();
    until("all are others", || {
        assert!(client.ask("a").parse::<u32>().is_ok());
        let now = daemon.programs();
        now.len() == 4 && now.iter().all(|pid| !before.contains(pid))
    });
    let out = recycle(&daemon, "nobody");
    assert!(!out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("there is no pool nobody"));
}

#[test]
fn while_new_ones_fail_to_start_the_old_ones_serve() {
    let folder = folder();
    let program = folder.path().join("program");
    let write = |text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let new = folder.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&new, &program).unwrap();
    };
    write("#!/bin/sh\nwhile read line; do echo old; done\n");
    let pool = format!("program = [{}]\nworkers = 1\n", Value::from(program.to_str().unwrap()));
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut client = daemon.connect();
    assert_eq!(client.ask("a"), "old");
    write("#!/no/such/interpreter\n");
    assert!(recycle(&daemon, "main").status.success());
    until("it was tried", || daemon.metric("roadstead_worker_start_failures_total", &[]) > 1);
    assert_eq!(client.ask("b"), "old");
    write("#!/bin/sh\nwhile read line; do echo new; done\n");
    until("the new one serves", || client.ask("c") == "new");
}

#[test]
fn a_program_that_dies_young_is_started_ever_more_seldom_and_serves_again_by_itself() {
    let folder = folder();
    let script = "echo started >> starts; [ -e mended ] || { sleep 0.025; exit 1; }; while read line; do echo \"$line!\"; done";
    let words = Value::from(script);
    let pool = format!("program = [\"sh\", \"-c\", {words}]\nworkers = 1\n");
    let begun = std::time::Instant::now();
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let starts = || {
        let text = std::fs::read_to_string(folder.path().join("starts")).unwrap_or_default();
        text.lines().count()
    };
    until("it was tried again and again", || {
        let count = starts();
        // Between them are pauses that double, each at least three quarters of 100 ms, 200 ms, 400 ms and so on. So
        // there are never more starts than this; a slow machine only makes fewer of them.
        let pauses = 75 * ((1_u128 << count.saturating_sub(1)) - 1);
        let passed = begun.elapsed().as_millis();
        assert!(passed >= pauses, "{count} starts in {passed} ms");
        count >= 5
    });
    std::fs::write(folder.path().join("mended"), "").unwrap();
    let mut client = daemon.connect();
    until("it serves again", || client.ask("a") == "a!");
    assert!(daemon.stop().success());
}

#[test]
fn a_program_that_is_killed_for_its_deadline_is_not_said_to_end_by_itself() {
    let (folder, daemon) = daemon(&["sleep", "1000"], "response_timeout = \"200ms\"");
    assert!(daemon.connect().ask("a").starts_with("!unknown deadline "));
    until("it is logged", || {
        read_log(folder.path()).contains("was killed by us (response_timeout)")
    });
    assert!(!read_log(folder.path()).contains("ended by itself"));
}

#[test]
fn a_program_that_greets_is_replaced_with_the_advice_to_wait_for_that() {
    let script = "echo Welcome; while read line; do echo \"$line\"; done";
    let (folder, _daemon) = daemon(&["sh", "-c", script], "");
    until("it is logged", || {
        read_log(folder.path()).contains("if it is a greeting, set `ready = \"line\"`")
    });
}

#[test]
fn a_program_that_never_answers_is_named_with_the_way_to_find_out_why() {
    let (folder, daemon) = daemon(&["awk", "{ print length($0) }"], "");
    let mut client = daemon.connect();
    client.send("a\n");
    let hint =
        "nothing came within 2 s; perhaps its output is buffered: try `roadstead doctor -- awk …`";
    until("it is logged", || read_log(folder.path()).contains(hint));
    client.send("b\n");
    assert_eq!(read_log(folder.path()).matches(hint).count(), 1);
}

/// Answers with three lines. `wait`: it answers when a file with that name exists, whose content may be executed
/// instead. `quit`: it exits with the following code.
const OWN: &str = r#"
$| = 1; print "ready\n" if @ARGV;
while (my $line = <STDIN>) {
    chomp $line;
    exit $1 if $line =~ /^quit (\d+)/;
    if ($line =~ /^wait (\w+)/) {
        open my $asked, '>', "asked-$1"; close $asked;
        select undef, undef, undef, 0.001 until -e "go-$1";
        do "./go-$1";
    }
    syswrite STDOUT, "first $line\nsecond\nthird\n";
}
"#;

#[test]
fn clients_that_leave_before_they_are_answered_close_the_pool_to_nobody() {
    for reset in ["", "reset = \"forget\"\n"] {
        let folder = folder();
        let pool = format!("dispatch = \"session\"\nworkers = 1\n{reset}");
        let daemon = serve(folder.path(), "lines", &["perl", "-e", OWN], &pool);
        let pid = || daemon.status()["pools"][0]["workers"][0]["pid"].as_u64();
        let mut last = None;
        for number in 0..6 {
            until("another is there", || pid().is_some() && pid() != last);
            last = pid();
            let mut client = daemon.connect();
            client.send(format!("wait {number}\n"));
            let path = |what: &str| folder.path().join(format!("{what}-{number}"));
            until("it is asked", || path("asked").exists());
            client.reset();
            let open = || daemon.metric("roadstead_connections", &["main"]);
            until("its client has gone", || open() == 0);
            std::fs::write(path("go"), "").unwrap();
        }
        assert_eq!(daemon.connect().ask("a"), "first a");
        assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
        assert!(!read_log(folder.path()).contains("ended by itself"));
    }
}

#[test]
fn a_program_that_fails_after_its_client_left_is_logged_counted_and_started_later() {
    for (does, said) in [
        ("exit 3", "ended by itself: exit code 3"),
        ("kill 'SEGV', $$; sleep 1000", "ended by itself: signal 11"),
        ("exit 0", ""),
    ] {
        let folder = folder();
        let pool = "dispatch = \"session\"\nworkers = 1\n";
        let daemon = serve(folder.path(), "lines", &["perl", "-e", OWN], pool);
        let mut client = daemon.connect();
        client.send("wait 0\n");
        until("it is asked", || folder.path().join("asked-0").exists());
        client.reset();
        until("its client has gone", || daemon.metric("roadstead_connections", &["main"]) == 0);
        std::fs::write(folder.path().join("new"), does).unwrap();
        std::fs::rename(folder.path().join("new"), folder.path().join("go-0")).unwrap();
        assert_eq!(daemon.connect().ask("a"), "first a");
        let deaths = daemon.metric("roadstead_worker_failures_total", &[]);
        assert_eq!(deaths, u64::from(!said.is_empty()), "{does}");
        let log = read_log(folder.path());
        assert!(log.contains(said), "{does}: {log}");
        assert_eq!(log.contains("ended by itself"), !said.is_empty(), "{does}: {log}");
    }
}

#[test]
fn clients_that_tell_their_programs_to_exit_close_the_pool_to_nobody() {
    let (session, ready) = ("dispatch = \"session\"\n", "ready = \"line\"\n");
    let says_ready = &["perl", "-e", OWN, "ready"][..];
    for (dispatch, ready, program, code) in [
        (session, "", &["perl", "-e", OWN][..], 0),
        (session, "", &["perl", "-e", OWN][..], 3),
        (session, ready, says_ready, 3),
        ("", ready, says_ready, 3),
    ] {
        let folder = folder();
        let pool = format!("{dispatch}workers = 1\n{ready}");
        let daemon = serve(folder.path(), "lines", program, &pool);
        for _ in 0..6 {
            let reply = daemon.connect().ask(&format!("quit {code}"));
            assert!(reply.starts_with("!unknown died "), "{reply}");
        }
        assert_eq!(daemon.connect().ask("a"), "first a");
    }
}

/// Answers each line, unless the line makes it exit.
const FRAGILE: &str = r#"
$| = 1;
while (my $line = <STDIN>) {
    chomp $line;
    exit $1 if $line =~ /^exit (\d+)/;
    $line = 'x' x 2000 if $line eq 'long';
    $line = 'other' if $line =~ /^other/;
    sleep 1000 if $line eq 'late';
    print "$line\n";
}
"#;

#[test]
fn requests_that_end_programs_close_the_pool_to_nobody() {
    let ends = [
        ("reply_max = \"1KiB\"", "long", "!unknown reply "),
        ("match = \"{1}\"", "otherwise", "!unknown "),
        ("response_timeout = \"200ms\"", "late", "!unknown deadline "),
        ("dispatch = \"session\"", "exit 3", "!unknown died "),
        ("", "exit 3", "!unknown died "),
        ("", "exit 0", "!unknown died "),
    ];
    let run = |(pool, ends, told): (&str, &str, &str)| {
        let folder = folder();
        let pool = format!("workers = 1\n{pool}\n");
        let daemon = serve(folder.path(), "lines", &["perl", "-e", FRAGILE], &pool);
        for _ in 0..6 {
            let reply = daemon.connect().ask(ends);
            assert!(reply.starts_with(told), "{pool}: {reply}");
        }
        until("another request is answered", || {
            let reply = daemon.connect().ask("fine");
            assert!(!reply.starts_with("!down "), "{pool}: {reply}");
            reply == "fine"
        });
    };
    std::thread::scope(|scope| {
        for one in ends {
            scope.spawn(move || run(one));
        }
    });
}

#[test]
fn a_program_that_ends_before_it_reads_is_a_failed_start_though_a_request_waited_for_it() {
    let folder = folder();
    let pool = "workers = { min = 0, max = 2 }\nqueue.timeout = \"30s\"\n";
    let daemon = serve(folder.path(), "lines", &["sh", "-c", "exit 3"], pool);
    until("it is given up", || daemon.connect().ask("a").starts_with("!down "));
}

#[test]
fn a_program_that_serves_its_client_again_opens_the_pool_to_the_next_ones() {
    let folder = folder();
    let script = "[ -e mended ] || exit 1; while read line; do echo \"$line!\"; done".to_owned();
    let pool = "dispatch = \"session\"\nworkers = 1\n";
    let daemon = serve(folder.path(), "lines", &["sh", "-c", &script], pool);
    until("it is given up", || daemon.connect().ask("a").starts_with("!down "));
    std::fs::write(folder.path().join("mended"), "").unwrap();
    until("it serves again", || daemon.connect().ask("a") == "a!");
    for _ in 0..5 {
        assert_eq!(daemon.connect().ask("a"), "a!");
    }
}
