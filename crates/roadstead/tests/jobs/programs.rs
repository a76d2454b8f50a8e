//! Faulty programs on pipes. No fault may reach another client's reply, and the pool must serve again afterwards.

use std::time::{Duration, Instant};

use crate::daemon::{Daemon, becomes, folder, is_alive, one_pool, read_log, until, worker_program};

/// Starts a daemon whose two programs echo and have one fault.
fn misbehaving(how: &str, pool: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let program = worker_program(&["--echo", "--misbehave", how]);
    let settle = if pool.contains("min_uptime") { "" } else { "min_uptime = \"0s\"\n" };
    let pool = format!("{program}workers = 2\n{settle}{pool}\n");
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    (folder, daemon)
}

#[test]
fn a_program_that_is_missing_is_said_and_requests_are_refused_at_once() {
    let folder = folder();
    let pool = "program = [\"/no/such/program\"]\n";
    let daemon = Daemon::serve(folder.path(), &one_pool("", pool));
    let reply = daemon.connect().ask("a");
    let told =
        "!down no worker of pool main can be started at the moment: the program was not found";
    assert_eq!(reply, told);
    assert!(read_log(folder.path()).contains("/no/such/program"));
    let reason = daemon.status()["pools"][0]["down_reason"].clone();
    assert!(reason.as_str().is_some_and(|it| it.contains("/no/such/program")), "{reason}");
}

#[test]
fn why_no_program_stays_is_told_without_what_it_said() {
    for words in ["auto", "off", "tail"] {
        let folder = folder();
        let script = "[ -e mended ] && exec cat; echo 'of another client: secret' >&2; exit 3";
        let program = serde_json::Value::from(script);
        let pool = format!(
            "program = [\"sh\", \"-c\", {program}]\nworkers = 1\nmin_uptime = \"1s\"\nexit_message = \"{words}\"\n"
        );
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        let (mut client, mut reply) = (daemon.connect(), String::new());
        until("it is down", || {
            reply = client.ask("a");
            reply.starts_with("!down ")
        });
        match words {
            "off" => assert!(!reply.contains("exit code"), "{reply}"),
            _ => assert!(reply.ends_with(" ms (exit code 3)"), "{reply}"),
        }
        assert!(!reply.contains("secret"), "{reply}");
        let reason = || daemon.status()["pools"][0]["down_reason"].clone();
        let told = reason();
        let text = told.as_str().unwrap_or_default();
        assert!(text.ends_with("(exit code 3); it said last: of another client: secret"), "{told}");
        std::fs::write(folder.path().join("mended"), "").unwrap();
        until("it serves", || client.ask("a") == "a");
        until("it is no longer down", || reason().is_null());
    }
}

#[test]
fn a_program_cannot_forge_lines_of_the_log() {
    let folder = folder();
    // Each of these ends a line, or moves the cursor, for some reader of logs.
    let script = "printf '\\r2030-01-01T00:00:00Z ERROR forged\\n\\033[2K\\033[1Aup\\n\\302\\205next\\342\\200\\250more\\n' >&2; \
                  while read -r line; do printf 'a\\rforged\\n'; done";
    let pool = format!("program = [\"sh\", \"-c\", {}]\n", serde_json::Value::from(script));
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    daemon.connect().ask("a");
    until("it is logged", || read_log(folder.path()).contains("more"));
    assert!(daemon.stop().success());
    let log = read_log(folder.path());
    let odd = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{2028}' | '\u{2029}');
    assert!(!log.contains(odd), "{log:?}");
    assert!(!log.lines().any(|line| line.starts_with("2030")), "{log}");
    assert!(log.contains("stderr: \\r2030-01-01T00:00:00Z ERROR forged"), "{log}");
}

#[test]
fn a_program_that_exits_at_once_backs_off_and_requests_are_refused() {
    let begun = Instant::now();
    let (_folder, daemon) = misbehaving("exits-at-once", "min_uptime = \"1s\"");
    let reply = daemon.connect().ask("a");
    assert!(reply.starts_with("!down ") || reply.starts_with("!unknown died "), "{reply}");
    // The first two start immediately. Then there are pauses of 100 ms, doubled each time, shortened by at most a
    // quarter: 1.1 s until the sixth. Programs that are started one after the other take a few milliseconds each.
    let starts = || daemon.metric("roadstead_worker_starts_total", &[]);
    until("six programs were started", || starts() >= 6);
    let time = begun.elapsed();
    assert!(time >= Duration::from_millis(900), "six starts within {time:?} are no back-off");
}

#[test]
fn a_program_that_exits_mid_request_ends_it_as_unknown_and_another_serves_on() {
    let (_folder, daemon) = misbehaving("exit-after=3", "");
    let mut client = daemon.connect();
    let replies: Vec<String> = (0..40).map(|line| client.ask(&line.to_string())).collect();
    let (mut answered, mut died) = (0, 0);
    for (line, reply) in replies.iter().enumerate() {
        if reply.starts_with("!unknown died ") {
            died += 1;
        } else {
            assert_eq!(*reply, line.to_string());
            answered += 1;
        }
    }
    assert!(answered >= 28 && died >= 8, "{answered} answered, {died} died: {replies:?}");
}

#[test]
fn a_program_that_answers_twice_is_replaced_before_it_can_answer_somebody_else() {
    let (_folder, daemon) = misbehaving("twice", "");
    let mut clients: Vec<_> = (0..4).map(|_| daemon.connect()).collect();
    for round in 0..10 {
        for (who, client) in clients.iter_mut().enumerate() {
            let line = format!("{who} {round}");
            assert_eq!(client.ask(&line), line);
        }
    }
    assert!(daemon.metric("roadstead_discarded_replies_total", &[]) >= 20);
}

#[test]
fn a_program_that_speaks_unasked_is_replaced_without_a_request() {
    let (folder, daemon) = misbehaving("unasked", "min_uptime = \"1s\"");
    until("it is logged", || read_log(folder.path()).contains("spoke though nothing was asked"));
    until("it is replaced", || daemon.metric("roadstead_worker_starts_total", &[]) > 2);
    assert!(daemon.metric("roadstead_discarded_replies_total", &[]) > 0);
}

#[test]
fn a_program_that_never_answers_is_killed_at_the_deadline() {
    let (_folder, daemon) = misbehaving("never", "response_timeout = \"300ms\"\n");
    until("both run", || daemon.programs().len() == 2);
    let before = daemon.programs();
    let reply = daemon.connect().ask("a");
    assert!(reply.starts_with("!unknown deadline "), "{reply}");
    until("it is gone", || before.iter().filter(|&&pid| is_alive(pid)).count() < before.len());
}

#[test]
fn a_program_that_answers_without_a_newline_is_killed_at_the_deadline() {
    let (_folder, daemon) = misbehaving("no-newline", "response_timeout = \"300ms\"\n");
    let reply = daemon.connect().ask("a");
    assert!(reply.starts_with("!unknown deadline "), "{reply}");
}

#[test]
fn a_reply_without_an_end_is_cut_at_its_limit() {
    let (_folder, daemon) = misbehaving("flood", "reply_max = \"64KiB\"\n");
    let reply = daemon.connect().ask("a");
    assert!(reply.starts_with("!unknown reply "), "{reply}");
    let rss = resident_bytes(daemon.pid());
    assert!(rss < 100 << 20, "{rss} bytes are resident after a flood of 1 GiB");
}

#[test]
fn a_gigabyte_of_lines_reaches_nobody() {
    let (_folder, daemon) = misbehaving("chatter", "");
    let mut client = daemon.connect();
    let _ = client.ask("a");
    let rss = resident_bytes(daemon.pid());
    assert!(rss < 100 << 20, "{rss} bytes are resident after 1 GiB of lines");
}

#[test]
fn standard_error_is_read_and_logged_and_does_not_block() {
    let (folder, daemon) = misbehaving("stderr=2000000", "");
    let mut client = daemon.connect();
    for line in 0..5 {
        assert_eq!(client.ask(&line.to_string()), line.to_string());
    }
    assert!(read_log(folder.path()).contains("stderr: "));
    assert!(daemon.metric("roadstead_stderr_lines_dropped_total", &[]) > 0);
}

#[test]
fn a_program_that_ignores_term_is_killed_after_its_grace() {
    let (_folder, daemon) = misbehaving("ignore-term", "stop_timeout = \"200ms\"\n");
    assert_eq!(daemon.connect().ask("a"), "a");
    let programs = daemon.programs();
    assert!(daemon.stop().success());
    assert!(programs.iter().all(|&pid| !is_alive(pid)), "{programs:?}");
}

#[test]
fn a_program_that_closes_its_output_is_replaced() {
    let (_folder, daemon) = misbehaving("close-stdout", "stop_timeout = \"200ms\"\n");
    until("both run", || daemon.programs().len() == 2);
    let before = daemon.programs();
    let reply = daemon.connect().ask("a");
    assert!(reply.starts_with("!unknown died "), "{reply}");
    until("another took its place", || {
        let now = daemon.programs();
        now.len() == 2 && before.iter().any(|pid| !now.contains(pid))
    });
}

#[test]
fn a_pipeline_answers_in_order_and_what_never_left_us_is_served_by_another() {
    let folder = folder();
    let program = worker_program(&["--echo", "--misbehave", "exit-after=50"]);
    let pool = format!("{program}workers = 2\npipeline = 16\nmin_uptime = \"0s\"\n");
    let daemon = Daemon::serve(folder.path(), &one_pool("in_flight_max = 64\n", &pool));
    let mut client = daemon.connect();
    let lines: String = (0..400).map(|line| format!("{line}\n")).collect();
    client.send(lines);
    client.finish();
    let replies = client.rest();
    assert_eq!(replies.len(), 400);
    for (line, reply) in replies.iter().enumerate() {
        assert!(
            *reply == line.to_string() || reply.starts_with("!unknown died "),
            "{line}: {reply}"
        );
    }
}

#[test]
fn the_pool_grows_with_its_queue_and_shrinks_to_its_minimum_and_never_below() {
    let folder = folder();
    let program = worker_program(&["--echo", "--misbehave", "slow=30"]);
    let pool = format!(
        "{program}workers = {{ min = 1, max = 6, idle_timeout = \"200ms\", grow_after = \"5ms\" }}\n\
         alignment = \"off\"\n"
    );
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut clients: Vec<_> = (0..20).map(|_| daemon.connect()).collect();
    for _ in 0..5 {
        clients.iter_mut().for_each(|client| client.send("x\n"));
        clients.iter_mut().for_each(|client| assert_eq!(client.line(), "x"));
    }
    assert_eq!(daemon.programs().len(), 6);
    until("it has shrunk", || daemon.programs().len() == 1);
    assert!(!becomes(Duration::from_millis(600), || daemon.programs().len() != 1));
}

#[test]
fn a_full_queue_refuses_at_once_and_a_long_wait_is_refused_in_time() {
    let folder = folder();
    let program = worker_program(&["--echo", "--misbehave", "never"]);
    let pool = format!(
        "{program}workers = 1\nqueue = {{ max_requests = 2, timeout = \"300ms\" }}\nresponse_timeout = \"20s\"\n\
         [listener.web]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n"
    );
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    until("it is ready", || daemon.metric("roadstead_workers", &["idle"]) == 1);
    let mut busy = daemon.connect();
    busy.send("taken\n");
    until("it is taken", || daemon.metric("roadstead_workers", &["busy"]) == 1);
    let mut waiting = daemon.connect();
    waiting.send("1\n2\n");
    until("two wait", || daemon.metric("roadstead_queue_length", &[]) == 2);
    let reply = roadstead::ask::request(&daemon.listeners["web"], "POST", "/", b"3").unwrap();
    assert_eq!(reply.status, 503);
    for _ in 0..2 {
        let reply = waiting.line();
        assert!(reply.starts_with("!waited "), "{reply}");
    }
    let ends = |cause: &str| {
        daemon.metric("roadstead_requests_finished_total", &[&format!("cause=\"{cause}\"")])
    };
    assert_eq!((ends("full"), ends("waited")), (1, 2));
}

/// A pool of one Perl program given as text, with room for fifteen requests.
fn perl(program: &str, listener: &str, pool: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let program = serde_json::Value::from(program).to_string();
    let pool = format!("program = [\"perl\", \"-e\", {program}]\nmin_uptime = \"0s\"\n{pool}\n");
    let daemon = Daemon::serve(folder.path(), &one_pool(listener, &pool));
    (folder, daemon)
}

#[test]
fn what_is_given_back_does_not_reach_the_program_that_closed_its_output_after_all() {
    // Each program notes what it reads; after the first line it closes its output and reads on.
    let note = "$| = 1; open(my $note, '>>', \"seen.$$\"); $note->autoflush(1); \
                while (<STDIN>) { print $note substr($_, 0, 4), \"\\n\"; \
                if ($. == 1) { close(STDOUT) } }";
    let (folder, daemon) = perl(note, "", "workers = 1\npipeline = 15\nstop_timeout = \"300ms\"\n");
    let mut client = daemon.connect();
    for line in 1000..1015 {
        client.send(format!("{line}{}\n", "x".repeat(50_000)));
    }
    client.finish();
    assert_eq!(client.rest().len(), 15);
    assert!(daemon.stop().success());
    let mut seen: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("seen."))
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    seen.sort();
    let before = seen.len();
    seen.dedup();
    assert_eq!(seen.len(), before, "no line was read by two programs");
}

#[test]
fn what_a_program_that_closed_its_input_had_not_taken_is_served_by_another() {
    let once = "$| = 1; my $line = ''; \
                while (sysread(STDIN, my $byte, 1)) { last if $byte eq \"\\n\"; $line .= $byte } \
                close(STDIN); print length($line), \"\\n\"; select(undef, undef, undef, 0.1);";
    let (_folder, daemon) = perl(once, "", "workers = 1\npipeline = 15\n");
    let mut client = daemon.connect();
    for _ in 0..15 {
        client.send(format!("{}\n", "x".repeat(50_000)));
    }
    client.finish();
    let replies = client.rest();
    let answered = replies.iter().filter(|reply| *reply == "50000").count();
    let died = replies.iter().filter(|reply| reply.starts_with("!unknown died ")).count();
    assert_eq!(answered + died, 15, "{replies:?}");
    assert!(answered >= 2, "{answered} answered: all else was lost with the first program");
}

#[test]
fn a_line_of_many_megabytes_reaches_its_program() {
    let length = "$| = 1; while (<STDIN>) { print length($_) - 1, \"\\n\" }";
    let (_folder, daemon) = perl(length, "frame_max = \"64MiB\"\n", "workers = 1\n");
    let mut client = daemon.connect();
    client.send("x".repeat(20 << 20));
    assert_eq!(client.ask(""), (20 << 20).to_string());
}

#[test]
fn a_reply_that_no_client_could_hold_is_said_and_the_client_stays() {
    let long = "$| = 1; while (<STDIN>) { chomp; print 'x' x $_, \"\\n\" }";
    let (_folder, daemon) =
        perl(long, "send_max = \"1MiB\"\n", "workers = 1\nreply_max = \"8MiB\"\n");
    let mut client = daemon.connect();
    let reply = client.ask("2000000");
    assert!(reply.starts_with("!unknown reply "), "{}", &reply[..reply.len().min(80)]);
    assert_eq!(client.ask("3"), "xxx");
    assert_eq!(daemon.metric("roadstead_undelivered_replies_total", &[]), 1);
}

fn resident_bytes(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
