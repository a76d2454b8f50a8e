//! Programs do not get the daemon's secrets, except those that are configured for them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::daemon::{BINARY, Daemon, folder, one_pool, until};

/// A program that answers each line with its environment, on one line.
const TELLS: &str = "while read -r line; do env | tr '\\n' ' '; echo; done";

fn teller(more: &str) -> String {
    format!("program = [\"sh\", \"-c\", {}]\n{more}\n", Value::from(TELLS))
}

/// Returns an HTTP listener that uses a secret, and the pool that prints its environment.
fn configuration(secret: &str, pool: &str) -> String {
    one_pool("", &teller(pool))
        + "[listener.web]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"web\"\n"
        + secret
        + "\n[pool.web]\n"
        + "servers = [\"127.0.0.1:9\"]\n"
}

const TOKENS: [(&str, &str); 3] = [
    ("TEST_WEB_TOKEN", "web-0123456789abcdef"),
    ("TEST_OTHER_TOKEN", "other-0123456789abcdef"),
    ("TEST_PLAIN", "plain-value"),
];

#[test]
fn programs_do_not_inherit_variables_that_hold_secrets() {
    let folder = folder();
    let text = configuration("authenticate = { bearer = [\"env:TEST_WEB_TOKEN\"] }", "");
    let daemon = Daemon::serve_with(folder.path(), &text, &TOKENS);
    let seen = daemon.connect().ask("environment");
    assert!(!seen.contains("web-0123456789abcdef"), "{seen}");
    assert!(seen.contains("TEST_PLAIN=plain-value"), "{seen}");
    // The same after a reload that names another secret and no longer the first.
    let pid = daemon.programs();
    let text = configuration(
        "authenticate = { bearer = [\"env:TEST_OTHER_TOKEN\"] }",
        "env = { TEST_GIVEN = \"new\" }",
    );
    Daemon::rewrite(folder.path(), &text);
    daemon.reload().unwrap();
    until("the program is replaced", || {
        let now = daemon.programs();
        !now.is_empty() && now.iter().all(|it| !pid.contains(it))
    });
    let mut client = daemon.connect();
    let mut seen = String::new();
    until("the new program answers", || {
        seen = client.ask("environment");
        seen.contains("TEST_GIVEN=new")
    });
    assert!(!seen.contains("0123456789abcdef"), "{seen}");
}

#[test]
fn a_secret_is_passed_to_a_program_that_is_given_it() {
    let folder = folder();
    let text = configuration(
        "authenticate = { bearer = [\"env:TEST_WEB_TOKEN\"] }",
        "env = { UPSTREAM = \"env:TEST_WEB_TOKEN\", HOME = \"/given\" }",
    );
    let daemon = Daemon::serve_with(folder.path(), &text, &TOKENS);
    let seen = daemon.connect().ask("environment");
    assert!(seen.contains("UPSTREAM=web-0123456789abcdef"), "{seen}");
    assert!(!seen.contains("TEST_WEB_TOKEN=") && seen.contains("HOME=/given"), "{seen}");
}

#[test]
fn a_variable_that_is_to_be_passed_and_is_not_set_is_an_error() {
    let folder = folder();
    let file = folder.path().join("roadstead.toml");
    fs::write(&file, configuration("", "env = { UPSTREAM = \"env:TEST_NOT_SET\" }")).unwrap();
    for command in ["check", "serve"] {
        let mut command_line = Command::new(BINARY);
        let out = command_line.arg(command).arg(&file).env_remove("TEST_NOT_SET").output().unwrap();
        let told = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && told.contains("TEST_NOT_SET"), "{command}: {told}");
    }
}

/// A program that answers each line with the environments of all of its ancestors.
const TELLS_OF_PARENTS: &str = "while read -r line; do p=$$; seen=; while [ \"$p\" -gt 1 ]; do \
    p=$(awk '/^PPid/ { print $2 }' /proc/$p/status); \
    seen=\"$seen $p $(cat /proc/$p/environ 2>/dev/null | tr '\\0\\n' '  ')\"; done; \
    echo \"seen $seen\"; done";

#[test]
fn programs_of_the_daemon_s_user_cannot_read_its_environment() {
    const NOBODY: u32 = 65534;
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let text = configuration("authenticate = { bearer = [\"env:TEST_WEB_TOKEN\"] }", "");
    let (own, parents) =
        (Value::from(TELLS).to_string(), Value::from(TELLS_OF_PARENTS).to_string());
    let text =
        text.replacen(&own, &parents, 1).replacen("[admin]\nlisten = \"127.0.0.1:0\"\n", "", 1);
    let file = folder.path().join("roadstead.toml");
    fs::write(&file, text).unwrap();
    let binary = folder.path().join("roadstead");
    fs::copy(BINARY, &binary).unwrap();
    let mut command = Command::new(&binary);
    command.arg("serve").arg(&file).current_dir(folder.path()).envs(TOKENS);
    if rustix::process::geteuid().is_root() {
        // Root can read everything, so the daemon runs as another user.
        command.uid(NOBODY).gid(NOBODY);
    }
    let daemon = Daemon::start(&mut command, folder.path()).unwrap();
    let seen = daemon.connect().ask("environment");
    let chain = format!(" {} ", daemon.pid());
    assert!(seen.contains(&chain), "the daemon is among the parents: {seen}");
    assert!(!seen.contains("0123456789abcdef"), "{seen}");
}

/// Listens like a database, requests a clear-text password as PostgreSQL does, and prints the received bytes.
const FALSE_DATABASE: &str = "
import socket
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    client, _ = listener.accept()
    client.settimeout(10)
    heard = b''
    try:
        heard += client.recv(65536)
        client.sendall(b'R\\0\\0\\0\\x08\\0\\0\\0\\x03')
        heard += client.recv(65536)
    except OSError:
        pass
    print(repr(heard), flush=True)
    client.close()
";

#[test]
fn another_user_does_not_play_the_database() {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = folder();
    let start = |user: u32| {
        let mut server = Command::new("python3");
        server.args(["-c", FALSE_DATABASE]).uid(user).gid(user).current_dir("/");
        server.stdout(Stdio::piped()).spawn().expect("this test needs python3")
    };
    let check = |kind: &str, password: &str, port: &str| {
        let pool = format!(
            "database = \"{kind}://app@127.0.0.1:{port}/app\"\n{password}\n\
             statement = \"insert into t values (1)\"\nconnect_timeout = \"2s\"\n"
        );
        let file = folder.path().join("database.toml");
        fs::write(&file, one_pool("", &pool)).unwrap();
        let mut command = Command::new(BINARY);
        command.args(["check", "--connect"]).arg(&file).env("TEST_PASSWORD", "not-for-others");
        let out = command.output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let password = "password = \"env:TEST_PASSWORD\"";
    // A database that runs as a system user (here 70) is trusted and gets the password.
    for (user, kind, password, is_told) in [
        (NOBODY, "postgres", password, false),
        (NOBODY, "mysql", password, false),
        (NOBODY, "mysql", "", false),
        (70, "postgres", password, true),
    ] {
        let mut server = start(user);
        let mut heard = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
        let (success, told) = check(kind, password, &heard.next().unwrap());
        assert!(!success, "{told}");
        if is_told {
            assert!(heard.next().unwrap().contains("not-for-others"), "{told}");
        } else {
            assert!(told.contains(&format!("user {NOBODY} listens")), "{kind}: {told}");
        }
        server.kill().unwrap();
        server.wait().unwrap();
        let rest: Vec<String> = heard.collect();
        assert!(!rest.concat().contains("not-for-others"), "{rest:?}");
        assert!(is_told || rest.iter().all(|heard| heard == "b''"), "{rest:?}");
    }
}

#[test]
fn check_does_not_show_the_value_of_a_variable_that_names_a_file() {
    let folder = folder();
    let file = folder.path().join("check.toml");
    let text = one_pool("", &teller("fallback = { file = \"env:TEST_FILE\" }"))
        + "[listener.web]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
           [[listener.web.route]]\npath = \"/\"\nrespond = { file = \"env:TEST_FILE\" }\n";
    fs::write(&file, text).unwrap();
    for name in ["check", "serve"] {
        let mut command = Command::new(BINARY);
        let out = command.arg(name).arg(&file).env("TEST_FILE", "HUNTER2/secret").output().unwrap();
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && told.contains("cannot be read"), "{told}");
        assert!(!told.contains("HUNTER2"), "{told}");
    }
}
