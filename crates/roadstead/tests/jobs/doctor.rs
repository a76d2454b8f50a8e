//! `roadstead doctor` with real small programs, each with one fault.

use std::process::{Command, Stdio};

use crate::daemon::BINARY;

struct Told {
    code: i32,
    page: String,
}

impl Told {
    /// Checks that exactly these problems were found.
    fn is_wrong(&self, what: &[&str]) {
        let wrong: Vec<_> = self.page.lines().filter(|line| line.contains("WRONG")).collect();
        let found = wrong.iter().zip(what).all(|(line, what)| line.contains(what));
        assert!(found && wrong.len() == what.len(), "expected {what:?} of\n{}", self.page);
        assert_eq!(self.code, i32::from(!what.is_empty()), "{}", self.page);
    }

    fn has(&self, text: &str) {
        assert!(self.page.contains(text), "no {text:?} in\n{}", self.page);
    }
}

fn doctor(flags: &[&str], program: &[&str]) -> Told {
    let mut command = Command::new(BINARY);
    command.arg("doctor").args(flags).arg("--").args(program).stdin(Stdio::null());
    // The environment of the tests may already disable Python's buffering.
    command.env_remove("PYTHONUNBUFFERED");
    let out = command.output().unwrap();
    let page = [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    Told { code: out.status.code().unwrap(), page }
}

fn plain(program: &[&str]) -> Told {
    doctor(&[], program)
}

#[test]
fn a_sound_program_has_nothing_wrong() {
    let told = plain(&["cat"]);
    told.is_wrong(&[]);
    told.has("answers a second one");
    told.has("10 requests at once");
    told.has("Nothing is wrong with it.");
}

#[test]
fn the_name_of_a_program_that_is_not_there_changes_no_terminal() {
    let told = plain(&["/nowhere/\u{1b}[31mred"]);
    told.has("/nowhere/\\u001b[31mred");
    assert!(!told.page.contains('\u{1b}'), "{:?}", told.page);
}

#[test]
fn awk_keeps_its_output_in_a_buffer_and_a_terminal_cures_it() {
    let program = ["awk", "{ print length($0) }"];
    let told = plain(&program);
    told.is_wrong(&["keeps its answer in a buffer"]);
    let cure = told.page.split("unbuffer = \"").nth(1).and_then(|rest| rest.split('"').next());
    let cured = doctor(&["--unbuffer", cure.expect("a cure")], &program);
    cured.is_wrong(&[]);
}

#[test]
fn python_keeps_its_output_in_a_buffer_and_a_variable_cures_it() {
    let told =
        doctor(&[], &["python3", "-c", "import sys\nfor line in sys.stdin: print(len(line))"]);
    told.is_wrong(&["keeps its answer in a buffer"]);
    told.has("PYTHONUNBUFFERED");
}

#[test]
fn a_program_that_prints_a_line_more_now_and_then_is_told_from_its_answers() {
    let program = "import sys\nfor count, line in enumerate(sys.stdin):\n    \
                   if count % 5 == 4: print('cache miss')\n    \
                   print(line, end='', flush=True)";
    let told = plain(&["python3", "-c", program]);
    told.is_wrong(&["it was asked 12 times and answered 14 times"]);
    told.has("exactly one answer to each request");
}

#[test]
fn a_filter_answers_at_the_end_only() {
    let told = plain(&["sort"]);
    told.is_wrong(&["answers only when its input has ended"]);
    told.has("framing = \"oneshot\"");
    let told = doctor(&["--framing", "oneshot"], &["sort"]);
    told.is_wrong(&[]);
}

#[test]
fn text_on_a_binary_stream_is_called_text() {
    for framing in ["len1", "len2", "len4"] {
        let told = doctor(&["--framing", framing], &["sh", "-c", "read x; echo Hello; cat"]);
        told.is_wrong(&["prints text where the length of a frame should be: \"Hello"]);
        told.has("fds = \"3/4\"");
    }
}

#[test]
fn much_on_standard_error_is_told_with_its_last_line() {
    let script = "$| = 1; while (<>) { print STDERR 'x' x 100_000, \"\\nthe end\\n\"; print }";
    let told = plain(&["perl", "-e", script]);
    told.is_wrong(&["writes much on standard error"]);
    told.has("the end");
}

#[test]
fn who_ignores_the_end_of_input_and_term_is_told_both() {
    let script = "$SIG{TERM} = 'IGNORE'; $| = 1; while (<>) { print } sleep 1000";
    let told = plain(&["perl", "-e", script]);
    told.is_wrong(&["does not end within 2s when its input ends", "within 2s of SIGTERM"]);
}

#[test]
fn a_greeting_is_not_taken_for_an_answer() {
    let told = plain(&["sh", "-c", "echo ready; exec cat"]);
    told.is_wrong(&["speaks before it is asked: \"ready\\n\""]);
}

#[test]
fn one_that_ends_tells_how_and_its_last_words() {
    let told = plain(&["sh", "-c", "read x; echo 'no such table' >&2; exit 3"]);
    told.is_wrong(&[
        "ended (exit code 3) before it had answered; its last words were: no such table",
    ]);
    let told = plain(&["sh", "-c", "read x; echo $x"]);
    told.is_wrong(&["answers once and ends (exit code 0)"]);
}

#[test]
fn an_answer_without_end_and_two_for_one_are_told() {
    let told = plain(&["perl", "-e", "$| = 1; while (<>) { chomp; print }"]);
    told.is_wrong(&["begins an answer and does not end it"]);
    let told = plain(&["perl", "-e", "$| = 1; while (<>) { print; print }"]);
    told.is_wrong(&["answered 2 times"]);
}

#[test]
fn a_silent_one_is_told() {
    let told = plain(&["sh", "-c", "cat >/dev/null"]);
    told.is_wrong(&["said nothing within 2s"]);
}

#[test]
fn frames_that_end_in_a_nul_or_say_their_length_are_told_from_those_that_do_not() {
    let nul = |script: &str| doctor(&["--framing", "nul"], &["perl", "-0", "-e", script]);
    nul("$| = 1; while (<STDIN>) { print }").is_wrong(&[]);
    let told = nul("$| = 1; while (<STDIN>) { chomp; print \"$_\\n\" }");
    told.is_wrong(&["begins an answer and does not end it"]);
    told.has("end every answer with a NUL");
    let netstring = |script: &str| doctor(&["--framing", "netstring"], &["perl", "-e", script]);
    let sound = "$| = 1; while (1) { local $/ = ':'; my $n = <STDIN> // last; chop $n; \
                 read(STDIN, my $d, $n); read(STDIN, my $comma, 1); print \"$n:$d,\" }";
    netstring(sound).is_wrong(&[]);
    netstring("$| = 1; read(STDIN, my $d, 1); print 'Hello'; <STDIN>").is_wrong(&["\"Hello\""]);
}

#[test]
fn stray_prints_are_harmless_where_a_program_speaks_on_three_and_four() {
    let speaks = "echo ready; while read -r line <&3; do echo stray; echo \"$line\" >&4; done";
    doctor(&["--fds", "3/4"], &["sh", "-c", speaks]).is_wrong(&[]);
    plain(&["sh", "-c", "echo ready; exec cat"]).is_wrong(&["speaks before it is asked"]);
}

/// A server that answers no request before its initialization, and sends additional messages.
const STRICT: &str = r#"
import json, sys
def say(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
say({"method": "notifications/message", "params": {"level": "info", "data": "hello"}})
state = "new"
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        say({"id": message["id"], "result": {"capabilities": {}}})
        state = "greeted"
    elif method == "notifications/initialized" and state == "greeted":
        say({"id": "roots", "method": "roots/list"})
        state = "ready"
    elif method and "id" in message and state == "ready":
        say({"method": "notifications/message", "params": {"level": "info", "data": "asked"}})
        say({"id": message["id"], "result": {}})
"#;

#[test]
fn a_server_of_json_rpc_is_greeted_before_it_is_asked() {
    let jsonrpc = |program: &[&str]| doctor(&["--framing", "jsonrpc", "--wait", "20s"], program);
    let told = jsonrpc(&["python3", "-c", STRICT]);
    told.is_wrong(&[]);
    told.has("it answers `initialize`");
    let text = "import sys; sys.stdin.readline(); print('Hello', flush=True); sys.stdin.read()";
    jsonrpc(&["python3", "-c", text]).is_wrong(&["what it says is no frame"]);
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/programs");
    let server = format!("{examples}/lsp.js");
    let flags = ["--framing", "content-length", "--wait", "20s"];
    let told = doctor(&flags, &["node", &server]);
    told.is_wrong(&[]);
    told.has("it answers `initialize`");
    doctor(&flags, &["sh", "-c", "read x; echo Hello; cat >/dev/null"]).is_wrong(&["Hello"]);
}

#[test]
fn what_cannot_be_started_is_not_examined() {
    let told = plain(&["/nowhere/program"]);
    assert_eq!(told.code, 2, "{}", told.page);
    told.has("there is no such file");
}

#[test]
fn one_that_serves_http_is_asked_on_its_socket() {
    let server = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "{port}"];
    let told = doctor(&["--framing", "http", "--socket", "port", "--wait", "20s"], &server);
    told.is_wrong(&[]);
    told.has("with 200");
    told.has("ends the connection behind each reply");
    let node = "require('http').createServer((_, r) => r.end('a')).listen({fd: 3})";
    let told = doctor(&["--framing", "http", "--wait", "20s"], &["node", "-e", node]);
    told.is_wrong(&[]);
    told.has("a second one on the same connection");

    let http = |flags: &[&str], program: &[&str]| {
        doctor(&[&["--framing", "http", "--wait", "300ms"], flags].concat(), program)
    };
    http(&[], &["sleep", "60"]).is_wrong(&["did not answer a request of HTTP"]);
    http(&["--socket", "path"], &["sleep", "60"]).is_wrong(&["takes no connection"]);
    let told = http(&["--socket", "port"], &["sh", "-c", "echo no room >&2; exit 3"]);
    told.is_wrong(&["it ended (exit code 3)"]);
    told.has("no room");
    let echo = "import socket; s = socket.socket(fileno=3); c, _ = s.accept(); c.sendall(c.recv(99)); s.accept()";
    let told = doctor(&["--framing", "http", "--wait", "20s"], &["python3", "-c", echo]);
    told.is_wrong(&["what it says is no HTTP"]);
}

#[test]
fn one_that_starts_slowly_is_not_taken_for_one_that_needs_the_end_of_its_input() {
    let program = "sleep 1.2; while read line; do echo \"$line!\"; done";
    let told = doctor(&["--wait", "500ms"], &["sh", "-c", program]);
    told.is_wrong(&["answers its first request only after 1."]);
    told.has("ready = \"line\"");
}

#[test]
fn one_that_speaks_text_is_told_so_in_a_binary_framing() {
    let program = "while read line; do echo \"$line!\"; done";
    for framing in ["len2", "netstring"] {
        let told = doctor(&["--framing", framing, "--wait", "500ms"], &["sh", "-c", program]);
        told.is_wrong(&["says nothing in this framing, and answers a line of text"]);
        told.has("framing = \"lines\"");
        told.has("roadstead run --framing lines");
    }
}

#[test]
fn answers_on_standard_error_are_told() {
    let program = "while read line; do echo \"got $line\" >&2; done";
    let told = doctor(&["--wait", "500ms"], &["sh", "-c", program]);
    told.is_wrong(&[
        "prints nothing on standard output, but on standard error: got roadstead doctor",
    ]);
}

#[test]
fn a_prompt_is_not_taken_for_a_greeting() {
    let program = "printf '> '; while read line; do printf '%s\\n> ' \"$line\"; done";
    let told = plain(&["sh", "-c", program]);
    told.is_wrong(&["prints a prompt before it is asked: \"> \""]);
    told.has("turn the prompt off");
    assert!(!told.page.contains("ready ="), "{}", told.page);
}

#[test]
fn one_that_speaks_fastcgi_is_told_from_one_that_speaks_no_http() {
    // It closes a connection without a FastCGI record, and answers which values it supports.
    let program = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n\
        while True:\n    \
            c, _ = s.accept(); head = c.recv(8)\n    \
            if head[:2] == b'\\x01\\x09': c.sendall(b'\\x01\\x0a' + bytes(6))\n    \
            c.close()";
    let told = doctor(
        &["--framing", "http", "--socket", "path", "--wait", "5s"],
        &["python3", "-c", program, "{socket}"],
    );
    told.is_wrong(&["it speaks FastCGI on its socket, not HTTP"]);
}

#[test]
fn one_that_needs_a_terminal_is_told() {
    let program = "import sys; sys.stdin.isatty() or sys.exit('the input device is not a TTY')";
    let told = plain(&["python3", "-c", program]);
    told.is_wrong(&["because its input or output is no terminal: the input device is not a TTY"]);
    told.has("roadstead run --unbuffer pty");
}

#[test]
fn cures_are_given_for_run_as_well() {
    plain(&["sort"]).has("without a file: roadstead run --framing oneshot -- …");
}
