//! The commands other than `serve`.

use std::process::{Command, Output, Stdio};

use crate::client::Client;
use crate::daemon::{BINARY, Daemon, folder, one_pool, read_log, worker_program};

fn roadstead(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn run_serves_a_program_without_a_file() {
    let folder = folder();
    let mut command = Command::new(BINARY);
    command.args(["run", "--listen", "127.0.0.1:0", "--workers", "1..2", "--"]);
    command.args([BINARY, "worker", "--echo"]);
    let daemon = Daemon::start(&mut command, folder.path()).unwrap();
    assert_eq!(Client::connect(daemon.address()).ask("hello"), "hello");
    assert!(daemon.stop().success());
}

#[test]
fn run_answers_http_with_a_program_on_lines() {
    let folder = folder();
    let mut command = Command::new(BINARY);
    command.args(["run", "--http", "127.0.0.1:0", "--", "sed", "-u", "s/^/got /"]);
    let daemon = Daemon::start(&mut command, folder.path()).unwrap();
    let said = roadstead::ask::request(daemon.address(), "POST", "/a?b", b"c").unwrap();
    let said = (said.status, text(&said.body));
    assert_eq!(said.0, 200);
    assert!(said.1.starts_with(r#"got {"method":"POST","path":"/a","query":"b","#), "{}", said.1);
    assert!(said.1.ends_with(r#""body":"c"}"#), "{}", said.1);
    assert!(daemon.stop().success());
    let out = roadstead(&["run", "--http", ":0", "--listen", ":0", "--", "cat"]);
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn an_argument_does_nothing_to_a_terminal() {
    let odd = "odd\u{9b}2J\u{1b}[2J\u{202e}";
    let flag = format!("--{odd}");
    for arguments in [
        &["serve", odd][..],
        &["serve", &flag],
        &[odd],
        &["check", odd],
        &["run", "--", odd],
        &["doctor", "--", odd],
        &["worker", odd],
        &["load", odd],
        &["ask", "--admin", odd, "pool", "line"],
        &["ctl", "--admin", odd, "status"],
    ] {
        let out = roadstead(arguments);
        assert!(!out.status.success(), "{arguments:?}");
        let said = text(&out.stdout) + &text(&out.stderr);
        assert!(!said.contains(['\u{9b}', '\u{1b}', '\u{202e}']), "{arguments:?}: {said:?}");
    }
}

/// What a client of `roadstead run` with these flags and this program reads.
fn run(flags: &[&str], program: &[&str], asked: &str) -> String {
    let folder = folder();
    let mut command = Command::new(BINARY);
    command.args(["run", "--listen", "127.0.0.1:0"]).args(flags).arg("--").args(program);
    let daemon = Daemon::start(&mut command, folder.path()).unwrap();
    let reply = Client::connect(daemon.address()).ask(asked);
    assert!(daemon.stop().success());
    reply
}

#[test]
fn run_has_the_options_of_a_pool_that_programs_need_most() {
    assert_eq!(run(&["--framing", "oneshot"], &["wc", "-c"], "12345"), "5");
    assert_eq!(run(&["--framing", "nul"], &["cat"], "a"), "a");
    assert_eq!(run(&["--unbuffer", "stdbuf"], &["sed", "s/a/b/"], "a"), "b");
    let script = "read line; echo $ONE$TWO";
    assert_eq!(run(&["--env", "ONE=1", "--env", "TWO=2"], &["sh", "-c", script], "a"), "12");
    let told = run(&["--response-timeout", "200ms"], &["sleep", "60"], "a");
    assert!(told.starts_with("!unknown deadline "), "{told}");
    let json = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    let flags = ["--framing", "jsonrpc", "--dispatch", "session", "--queue", "7"];
    let answers = "s/\"method\":\"m\"/\"result\":1/";
    assert_eq!(
        run(&flags, &["sed", "-u", answers], json),
        r#"{"jsonrpc":"2.0","id":1,"result":1}"#
    );
    for (flags, shown) in [
        (["--framing", "morse"], "morse"),
        (["--response-timeout", "soon"], "soon"),
        (["--dispatch", "any"], "any"),
        (["--queue", "0"], "0"),
    ] {
        let out = roadstead(&[&["run"][..], &flags[..], &["--", "cat"][..]].concat());
        assert_eq!(out.status.code(), Some(2));
        let told = text(&out.stderr);
        assert!(told.contains(flags[0]) && told.contains(shown), "{told}");
    }
}

#[test]
fn a_wrong_flag_of_run_is_shown_where_it_stands() {
    let out = roadstead(&["run", "--workers", "9..2", "--", "cat"]);
    assert_eq!(out.status.code(), Some(2));
    let told = text(&out.stderr);
    assert!(told.contains("9..2") && told.contains("command line"), "{told}");
}

#[test]
fn check_shows_every_error_and_its_fix() {
    let folder = folder();
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, "[listener.web]\nlisten = \"127.0.0.1:0\"\npoool = \"x\"\n[pol.x]\n")
        .unwrap();
    let out = roadstead(&["check", file.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    let told = text(&out.stderr);
    assert!(told.contains("poool") && told.contains("`pool`") && told.contains(":3:"), "{told}");
    assert!(told.contains("pol") && told.contains(":4:"), "{told}");
    let good = folder.path().join("good.toml");
    std::fs::write(&good, one_pool("", &worker_program(&[]))).unwrap();
    let out = roadstead(&["check", good.to_str().unwrap()]);
    assert!(out.status.success(), "{}", text(&out.stderr));
}

#[test]
fn check_names_the_line_of_a_reset_that_gets_no_reply() {
    let folder = folder();
    let file = folder.path().join("roadstead.toml");
    let text_with = |reset: &str| {
        format!(
            "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"jsonrpc\"\npool = \"main\"\n\
             [pool.main]\nprogram = [\"cat\"]\nframing = \"jsonrpc\"\ndispatch = \"session\"\n\
             reset = '{reset}'\n"
        )
    };
    std::fs::write(&file, text_with(r#"{"jsonrpc":"2.0","method":"$/forget"}"#)).unwrap();
    let out = roadstead(&["check", file.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    let told = text(&out.stderr);
    assert!(
        told.contains("`reset` is no request that gets a reply") && told.contains(":9:"),
        "{told}"
    );
    let out = roadstead(&["serve", file.to_str().unwrap()]);
    assert!(!out.status.success() && text(&out.stderr).contains("`reset` is no request"));
    std::fs::write(&file, text_with(r#"{"jsonrpc":"2.0","id":1,"method":"forget"}"#)).unwrap();
    assert!(roadstead(&["check", file.to_str().unwrap()]).status.success());
}

#[test]
fn check_reads_what_the_daemon_will_read_and_names_the_line_of_what_is_missing() {
    let folder = folder();
    let [file, tokens] = [folder.path().join("roadstead.toml"), folder.path().join("tokens")];
    let wrong = format!(
        "[listener.web]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n\
         authenticate = {{ bearer = [\"file:{tokens}\", \"env:ROADSTEAD_TEST_NOBODY\"] }}\n\
         [[listener.web.route]]\npath = \"/a\"\nrespond = {{ body = \"a\" }}\npublic = true\n\
         [[listener.web.route]]\npath = \"/b\"\nrespond = {{ file = \"nowhere.html\" }}\n\
         authenticate = {{ basic = \"file:nobody\" }}\n\
         [pool.main]\nservers = [\"127.0.0.1:1\"]\nfallback = {{ file = \"sorry.html\" }}\n\
         sticky = {{ cookie = \"worker\", secret = \"env:ROADSTEAD_TEST_NOBODY\" }}\n",
        tokens = tokens.display(),
    );
    std::fs::write(&file, &wrong).unwrap();
    let out = roadstead(&["check", file.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    let told = places(&text(&out.stderr));
    for (line, words) in [
        (5, "tokens"),
        (5, "ROADSTEAD_TEST_NOBODY"),
        (12, "nowhere.html"),
        (13, "nobody"),
        (16, "sorry.html"),
        (17, "ROADSTEAD_TEST_NOBODY"),
    ] {
        assert!(told.iter().any(|(at, said)| *at == line && said.contains(words)), "{told:?}");
    }
    assert_eq!(told.len(), 6, "{told:?}");
    // An invalid secret is reported by its location, and its value is not shown.
    std::fs::write(&tokens, "hush\n").unwrap();
    let only = wrong.lines().take(5).collect::<Vec<_>>().join("\n");
    let only = only.replace(", \"env:ROADSTEAD_TEST_NOBODY\"", "");
    std::fs::write(&file, only + "\n[pool.main]\nservers = [\"127.0.0.1:1\"]\n").unwrap();
    let out = roadstead(&["check", file.to_str().unwrap()]);
    let said = text(&out.stderr);
    assert!(said.contains("the token in line 1 has fewer") && !said.contains("hush"), "{said}");
    std::fs::write(&tokens, "0123456789abcdef0123\n").unwrap();
    let out = roadstead(&["check", file.to_str().unwrap()]);
    assert!(out.status.success(), "{}", text(&out.stderr));
}

/// The lines that errors are shown at, with what is said.
fn places(told: &str) -> Vec<(usize, String)> {
    let each = told.split("error: ").skip(1);
    let place = |one: &str| {
        let line = one.split("roadstead.toml:").nth(1)?.split(':').next()?.parse().ok()?;
        Some((line, one.lines().next().unwrap_or_default().to_owned()))
    };
    each.filter_map(place).collect()
}

#[test]
fn ask_puts_one_line_to_a_pool_by_name() {
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &one_pool("", &worker_program(&["--echo"])));
    let out = roadstead(&["ask", "--admin", &daemon.admin, "main", "what is it"]);
    assert_eq!(text(&out.stdout), "what is it\n");
    let out = roadstead(&["ask", "--admin", &daemon.admin, "nobody", "what is it"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).starts_with("!nopool "), "{}", text(&out.stderr));
}

#[test]
fn a_taken_address_is_said_with_the_listener_s_name() {
    let folder = folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let configuration = one_pool("", &worker_program(&[])).replacen(
        "[listener.main]\nlisten = \"127.0.0.1:0\"",
        &format!("[listener.main]\nlisten = \"{}\"", taken.local_addr().unwrap()),
        1,
    );
    let file = folder.path().join("roadstead.toml");
    std::fs::write(&file, configuration).unwrap();
    let out = roadstead(&["serve", file.to_str().unwrap()]);
    let told = text(&out.stderr);
    assert!(told.contains("listener `main`") && told.contains("in use"), "{told}");
}

#[test]
fn an_admin_socket_does_not_replace_a_file_that_is_none_of_ours() {
    let folder = folder();
    let precious = folder.path().join("hits.db");
    std::fs::write(&precious, "rows").unwrap();
    let configuration = one_pool("", &worker_program(&[])).replacen(
        "[admin]\nlisten = \"127.0.0.1:0\"",
        &format!("[admin]\nlisten = \"unix:{}\"", precious.display()),
        1,
    );
    let file = folder.path().join("roadstead.toml");
    std::fs::write(&file, configuration).unwrap();
    let out = roadstead(&["serve", file.to_str().unwrap()]);
    assert!(!out.status.success());
    assert!(text(&out.stderr).contains("admin address"), "{}", text(&out.stderr));
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "rows");
}

#[test]
fn the_metrics_page_is_well_formed_and_counts() {
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &one_pool("", &worker_program(&["--echo"])));
    let mut client = daemon.connect();
    for line in 0..7 {
        client.ask(&line.to_string());
    }
    let page = daemon.page("/metrics");
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("roadstead_") && value.parse::<f64>().is_ok(), "{line}");
    }
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["verdict=\"answered\""]), 7);
    assert_eq!(daemon.metric("roadstead_request_duration_seconds_count", &[]), 7);
    assert_eq!(daemon.page("/health"), "ok\n");
    assert_eq!(daemon.status()["pools"][0]["name"], "main");
}

#[test]
fn help_tells_what_there_is() {
    let out = roadstead(&["--help"]);
    let told = text(&out.stdout);
    for word in ["serve", "check", "run", "ask", "load", "demo", "doctor"] {
        assert!(told.contains(word), "{told}");
    }
}

#[test]
fn the_daemon_has_all_descriptors_it_may_have_and_its_programs_those_they_had() {
    let folder = folder();
    let file = folder.path().join("roadstead.toml");
    let pool = "program = [\"sh\", \"-c\", \"while read -r line; do ulimit -Sn; done\"]\n";
    std::fs::write(&file, one_pool("", pool)).unwrap();
    let mut command = Command::new("sh");
    let lowered = "ulimit -Sn 256 && exec \"$0\" serve roadstead.toml";
    command.args(["-c", lowered, BINARY]).current_dir(folder.path());
    let daemon = Daemon::start(&mut command, folder.path()).unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3], words[4], "{line}");
    let told = read_log(folder.path());
    assert!(told.contains(&format!("at most {} descriptors may be open", words[3])), "{told}");
    assert_eq!(daemon.connect().ask("?"), "256");
    assert!(daemon.stop().success());
}

#[test]
fn run_and_check_name_a_program_that_is_not_there() {
    for (program, expected) in [
        ("no-such-program", "program `no-such-program` was not found in any directory of PATH="),
        ("./no-such-program", "program `./no-such-program` is not there"),
        ("/etc/passwd", "chmod +x is missing"),
        ("cat -u", "`cat -u` is one word"),
    ] {
        let out = roadstead(&["run", "--listen", "127.0.0.1:0", "--", program]);
        assert_eq!(out.status.code(), Some(2));
        assert!(text(&out.stderr).contains(expected), "{}", text(&out.stderr));
        let folder = folder();
        let file = folder.path().join("roadstead.toml");
        let pool = format!("program = [{}]\n", serde_json::Value::from(program));
        std::fs::write(&file, one_pool("", &pool)).unwrap();
        let out = roadstead(&["check", file.to_str().unwrap()]);
        // The file may exist on the machine that serves.
        assert!(out.status.success());
        let told = text(&out.stderr);
        assert!(told.contains(expected) && told.contains("warning: "), "{told}");
    }
}

#[test]
fn check_names_a_program_of_a_health_check_that_is_not_there() {
    let folder = folder();
    let file = folder.path().join("roadstead.toml");
    let pool = "program = [\"cat\"]\nhealth_check = { check = \"program\", command = [\"./no-such-check\"] }\n";
    std::fs::write(&file, one_pool("", pool)).unwrap();
    let out = roadstead(&["check", file.to_str().unwrap()]);
    let told = text(&out.stderr);
    assert!(out.status.success());
    assert!(
        told.contains("warning: ") && told.contains("`./no-such-check` is not there"),
        "{told}"
    );
}

#[test]
fn run_waits_for_the_greeting_of_a_program() {
    let out = roadstead(&["run", "--listen", "127.0.0.1:0", "--ready", "lines", "--", "cat"]);
    let told = text(&out.stderr);
    assert!(told.contains("--ready lines") && told.contains("did you mean \"line\"?"), "{told}");
}

#[test]
fn a_program_without_dashes_before_it_is_told_where_they_go() {
    for command in ["run", "doctor"] {
        let out = roadstead(&[command, "cat", "-u"]);
        assert_eq!(out.status.code(), Some(2));
        assert!(text(&out.stderr).contains("put `--` before the program"), "{}", text(&out.stderr));
    }
    assert!(!text(&roadstead(&["run", "--nonsense", "--", "cat"]).stderr).contains("put `--`"));
    assert!(roadstead(&["run", "--help"]).status.success());
}

#[test]
fn the_file_of_a_unix_socket_goes_with_its_daemon_and_with_no_other() {
    let folder = folder();
    let socket = folder.path().join("clients.sock");
    let program = worker_program(&["--echo"]);
    let configuration = one_pool("", &program).replacen(
        "listen = \"127.0.0.1:0\"\nprotocol",
        &format!("listen = \"unix:{}\"\nprotocol", socket.display()),
        1,
    );
    let daemon = Daemon::serve(folder.path(), &configuration);
    assert_eq!(Client::local(&socket).ask("a"), "a");
    assert!(daemon.stop().success());
    assert!(!socket.exists(), "it is removed at a clean end");
    let daemon = Daemon::serve(folder.path(), &configuration);
    std::fs::remove_file(&socket).unwrap();
    let other = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(daemon.stop().success());
    assert!(socket.exists(), "another process has this one");
    drop(other);
}
