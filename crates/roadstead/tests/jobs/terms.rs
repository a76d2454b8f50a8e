//! Launch options of programs in a pool (where they run, as which user, with which limits, how they are connected), as
//! seen by a program: it executes each line and answers with the output.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::daemon::{Daemon, folder, one_pool, read_log, until};
use crate::untested::{untested, untested_without_root};

/// Executes each line and answers with its output in one line.
const DOES: &str = r#"while read -r line; do eval "$line" | tr '\n' ' '; echo; done"#;
/// The same on descriptors 3 and 4. Other output of the program does not disturb the replies.
const DOES_THREE_FOUR: &str = r#"while read -r line <&3; do echo "stray print"; { eval "$line" | tr '\n' ' '; echo; } >&4; done"#;

fn serve(folder: &Path, script: &str, pool: &str) -> Daemon {
    let script = Value::from(script);
    let pool = format!("program = [\"sh\", \"-c\", {script}]\n{pool}\n");
    Daemon::serve_with(folder, &one_pool("", &pool), &[("OF_THE_DAEMON", "1")])
}

/// Returns the answer of a program of such a pool.
fn told(pool: &str, line: &str) -> String {
    let folder = folder();
    let daemon = serve(folder.path(), DOES, pool);
    let told = daemon.connect().ask(line);
    told.trim_end().to_owned()
}

const STATUS: &str = "grep -E '^(NoNewPrivs|Cpus_allowed_list):' /proc/$$/status";

#[test]
fn it_is_where_it_is_told_to_be_and_knows_what_it_is_told() {
    let folder = folder();
    fs::create_dir(folder.path().join("below")).unwrap();
    let daemon = serve(folder.path(), DOES, "cwd = \"below\"\nenv = { OWN = \"a b\" }");
    let mut client = daemon.connect();
    let below = folder.path().join("below").canonicalize().unwrap();
    assert_eq!(client.ask("pwd -P").trim_end(), below.display().to_string());
    let environ = "tr '\\0' ' ' < /proc/$$/environ";
    let all = client.ask(environ);
    assert!(all.contains("OWN=a b ") && all.contains("OF_THE_DAEMON=1 "), "{all}");
    let own = told("env_clear = true\nenv = { OWN = \"a b\" }", environ);
    assert!(own.contains("OWN=a b") && !own.contains("OF_THE_DAEMON"), "{own}");
}

#[test]
fn it_is_held_to_the_limits_of_its_pool() {
    let pool = "limits = { files = 77, processes = 4321, core = \"0B\", cpu_time = \"100s\", \
                memory = \"512MiB\", address_space = \"4GiB\", file_size = \"1MiB\", stack = \"4MiB\" }\n\
                cgroup = \"off\"";
    let limits = told(pool, "tr -s ' ' < /proc/$$/limits");
    for (name, limit) in [
        ("open files", "77"),
        ("processes", "4321"),
        ("core file size", "0"),
        ("cpu time", "100"),
        ("data size", "536870912"),
        ("address space", "4294967296"),
        ("file size", "1048576"),
        ("stack size", "4194304"),
    ] {
        let hard = if name == "cpu time" { "101" } else { limit };
        let line = format!("Max {name} {limit} ");
        assert!(limits.contains(&line), "{line}{hard}: {limits}");
    }
    let nice = |more| told(more, "cut -d ' ' -f 19 /proc/$$/stat").parse::<i32>().unwrap();
    assert_eq!(nice("nice = 7"), (nice("") + 7).min(19), "added to the daemon's own");
    assert!(
        told("no_new_privs = true", STATUS).contains("NoNewPrivs: 1".replace(' ', "\t").as_str())
    );
    assert!(told("", STATUS).contains("NoNewPrivs:\t0"));
}

/// The processors that a process may run on, one by one.
fn processors(list: &str) -> Vec<usize> {
    let list = list.split("Cpus_allowed_list:").nth(1).unwrap().split_whitespace().next().unwrap();
    let number = |text: &str| text.parse::<usize>().unwrap();
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(part)..=number(part),
    };
    list.split(',').flat_map(range).collect()
}

#[test]
fn it_runs_on_the_processors_of_its_pool() {
    let ours = processors(&fs::read_to_string("/proc/self/status").unwrap());
    assert_eq!(processors(&told("", STATUS)), ours, "`any`");
    let last = ours.last().unwrap();
    assert_eq!(processors(&told(&format!("cpu_affinity = [{last}]"), STATUS)), [*last]);
    for cpu in ["near", "spread"] {
        let folder = folder();
        // Each connection has its own program.
        let pool = format!("cpu_affinity = \"{cpu}\"\nworkers = 2\ndispatch = \"session\"");
        let daemon = serve(folder.path(), DOES, &pool);
        let mut clients = [daemon.connect(), daemon.connect()];
        let on: Vec<_> = clients.iter_mut().map(|it| processors(&it.ask(STATUS))).collect();
        assert!(on.iter().all(|it| it.len() == 1 && ours.contains(&it[0])), "{cpu}: {on:?}");
        if cpu == "near" {
            assert_eq!(on[0], on[1], "the loop's own");
        } else {
            assert_eq!(on[0] == on[1], ours.len() == 1, "each on another: {on:?}");
        }
    }
}

#[test]
fn it_runs_as_the_user_of_its_pool() {
    if !rustix::process::geteuid().is_root() {
        return untested_without_root("programs of another user", "the tests do not run as root");
    }
    let pool = "user = \"nobody\"\ncwd = \"/\"";
    assert_eq!(told(pool, "id -un; id -u"), "nobody 65534");
    assert_eq!(told(&format!("{pool}\ngroup = \"4\""), "id -u; id -g; id -G"), "65534 4 4");
}

/// Returns the result of the last health check of the first worker.
fn checked(pool: &str, protocol: &str) -> String {
    let folder = folder();
    let script = "test \"$(id -u) $OWN $OF_THE_DAEMON\" = \"$0\"";
    let pool = pool.replace("SCRIPT", &Value::from(script).to_string());
    let configuration = one_pool("", &pool).replace("protocol = \"lines\"", protocol);
    let variables = [("OF_THE_DAEMON", "1")];
    let daemon = Daemon::serve_with(folder.path(), &configuration, &variables);
    let mut check = None;
    until("it was checked", || {
        check = daemon.status()["pools"][0]["places"][0]["check"].as_str().map(str::to_owned);
        check.is_some()
    });
    check.unwrap()
}

#[test]
fn a_program_that_checks_it_is_as_it_is() {
    if !rustix::process::geteuid().is_root() {
        return untested_without_root("programs of another user", "the tests do not run as root");
    }
    let check = |expected: &str, more: &str| {
        format!(
            "health_check = {{ check = \"program\", command = [\"sh\", \"-c\", SCRIPT, \"{expected}\"]{more} }}"
        )
    };
    let pool = "program = [\"cat\"]\nuser = \"nobody\"\ncwd = \"/\"\nenv_clear = true\n\
                env = { OWN = \"b\", PATH = \"/usr/bin:/bin\" }";
    let of_programs = |expected, more| {
        let said = checked(&format!("{pool}\n{}", check(expected, more)), "protocol = \"lines\"");
        assert!(said.starts_with("exit code 0"), "{expected}: {said}");
    };
    of_programs("65534 b ", "");
    of_programs("1 b ", ", user = \"1\", group = \"1\"");
    let pool = format!("servers = [\"127.0.0.1:1\"]\n{}", check("65534  1", ", user = \"nobody\""));
    let said = checked(&pool, "protocol = \"http\"");
    assert!(said.starts_with("exit code 0"), "{said}");
}

#[test]
fn it_is_connected_as_its_pool_says() {
    let ends = "readlink /proc/$$/fd/0 /proc/$$/fd/1";
    let kind = |told: &str| told.split(':').next().unwrap_or_default().to_owned();
    assert_eq!(kind(&told("", ends)), "pipe");
    assert_eq!(kind(&told("io = \"socket\"", ends)), "socket");
    let terminal = told("unbuffer = \"pty\"", ends);
    assert!(terminal.contains("/dev/pts/"), "{terminal}");
    let flushes = told("unbuffer = \"stdbuf\"", "tr '\\0' ' ' < /proc/$$/environ");
    assert!(flushes.contains("_STDBUF_O=L"), "{flushes}");

    let folder = folder();
    let daemon = serve(folder.path(), DOES_THREE_FOUR, "fds = \"3/4\"");
    let mut client = daemon.connect();
    assert_eq!(client.ask("echo one").trim_end(), "one");
    assert_eq!(client.ask("echo two").trim_end(), "two");
    until("what it prints is logged", || read_log(folder.path()).contains("stray print"));
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
}

#[test]
fn it_is_replaced_when_it_is_old() {
    let folder = folder();
    let daemon = serve(
        folder.path(),
        DOES,
        "workers = 1\nrecycle = { max_age = \"50ms\", jitter = \"0%\" }",
    );
    let mut client = daemon.connect();
    let first = client.ask("echo $$");
    until("another serves", || client.ask("echo $$") != first);
    assert_eq!(daemon.metric("roadstead_worker_failures_total", &[]), 0);
}

#[test]
fn its_control_group_is_where_its_pool_says_or_it_does_not_start() {
    let folder = folder();
    let daemon = serve(folder.path(), DOES, "cgroup = \"/nowhere\"");
    let refused = daemon.connect().ask("echo");
    assert!(refused.starts_with("!down "), "{refused}");
    let log = read_log(folder.path());
    assert!(log.contains("cannot make a control group in `/nowhere`"), "{log}");
    let Some(group) = Group::make() else {
        let why = "no group can be made in a cgroup2 file system";
        return untested("control groups of programs", why, "delegate one to the tests");
    };
    let own = told(&format!("cgroup = {:?}", group.0.display().to_string()), "cat /proc/$$/cgroup");
    let name = group.0.file_name().unwrap().to_str().unwrap();
    assert!(own.contains(&format!("/{name}/roadstead.")), "{own}");
}

/// A control group for the test.
struct Group(PathBuf);

impl Group {
    fn make() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let at = mounts.lines().find_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (words.get(2) == Some(&"cgroup2")).then(|| PathBuf::from(words[1]))
        })?;
        let group = at.join(format!("roadstead-terms-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        Some(Self(group))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        until("no group is left", || fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}
