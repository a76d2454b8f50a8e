//! The limits and connections of programs, and the replacement of a stopped supervisor.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use spawn::{
    Bounds, Cgroup, Command, DescriptorNumbers, Io, Limits, Spawn, StartError, Status, Stop,
    Unbuffer, Wiring,
};

use crate::support::{Daemon, PATIENCE, Process, all_gone, command, read_all, shell, until};
use crate::untested::{untested, untested_without_root};

pub(crate) const ALL: &[crate::Test] = &[
    ("bounds::only_the_variables_given_are_there_when_the_others_are_cleared", cleared),
    ("bounds::limits_are_those_asked_for_and_no_higher_ones_can_be_had", limits),
    ("bounds::memory_beyond_the_limit_is_refused_to_the_program_alone", memory),
    ("bounds::processor_time_beyond_the_limit_ends_it_by_the_signal_for_it", processor_time),
    ("bounds::a_program_runs_on_the_processors_and_with_the_urgency_asked_for", place),
    ("bounds::another_user_is_that_user_in_every_way_and_still_dies_with_the_supervisor", user),
    ("bounds::an_unknown_user_and_a_group_without_a_name_are_told", unknown),
    ("bounds::the_largest_number_is_no_user_and_no_group", largest_number),
    ("bounds::home_and_name_follow_the_user_unless_they_are_given", account),
    ("bounds::a_program_of_another_user_has_no_rights_of_the_daemon", no_rights),
    ("bounds::capabilities_of_a_daemon_that_is_not_root_end_at_every_program", capabilities),
    ("bounds::a_user_whose_programs_could_not_be_killed_is_rejected", without_kill),
    ("bounds::a_program_with_a_group_alone_has_no_capabilities", group_alone),
    ("bounds::a_program_of_another_user_has_no_session_keyring_of_the_daemon", keyring),
    ("bounds::no_descriptor_left_fails_the_start_and_nothing_else", no_descriptor),
    ("bounds::prints_on_standard_output_do_not_touch_a_protocol_on_three_and_four", three_four),
    ("bounds::sockets_end_as_pipes_do", sockets),
    ("bounds::memory_is_measured_while_a_program_runs", measured),
    ("bounds::a_c_program_that_buffers_speaks_at_once_by_stdbuf_and_by_a_terminal", unbuffered),
    ("bounds::a_stopped_program_is_told_to_end_and_ends", stopped_program),
    ("bounds::a_stopped_supervisor_is_replaced_and_what_it_kept_is_ended", stopped_supervisor),
    ("bounds::a_control_group_ends_what_no_signal_would_find", control_group),
];

fn bounded(bounds: Bounds, script: &str) -> Command {
    Command { bounds, ..shell(script) }
}

fn limited(limits: Limits, script: &str) -> Command {
    bounded(Bounds { limits, ..Bounds::default() }, script)
}

fn cleared() {
    let asked = Command {
        env_clear: true,
        env: vec![("ONLY".into(), "this".into())],
        ..command("env", &[])
    };
    let seen = Daemon::new().output(asked);
    let names: Vec<_> = seen.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert_eq!(names, ["ROADSTEAD_START", "ONLY", "ROADSTEAD_WORKER"]);
}

fn limits() {
    let limits = Limits {
        files: Some(50),
        core: Some(0),
        file_size: Some(4096),
        stack: Some(1 << 20),
        address_space: Some(1 << 30),
        processes: Some(5000),
        ..Limits::default()
    };
    let asked = Command {
        bounds: Bounds { limits, ..Bounds::default() },
        ..command(
            "grep",
            &["-E", "files|core|file size|stack|address|processes", "/proc/self/limits"],
        )
    };
    let seen = Daemon::new().output(asked);
    let rows: Vec<Vec<_>> = seen
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect())
        .collect();
    let of = |name: &str| {
        let row = rows.iter().find(|row| row[0] == name).expect("a row of the kernel's table");
        (row[1].to_owned(), row[2].to_owned())
    };
    let both = |value: u64| (value.to_string(), value.to_string());
    assert_eq!(of("Max open files"), both(50));
    assert_eq!(of("Max core file size"), both(0));
    assert_eq!(of("Max file size"), both(4096));
    assert_eq!(of("Max stack size"), both(1 << 20));
    assert_eq!(of("Max address space"), both(1 << 30));
    assert_eq!(of("Max processes"), both(5000));
}

fn memory() {
    let mut daemon = Daemon::new();
    let limits = Limits { memory: Some(64 << 20), ..Limits::default() };
    let perl = Command {
        bounds: Bounds { limits, ..Bounds::default() },
        ..command("perl", &["-e", "my $x = 'x' x (200 << 20); print length $x"])
    };
    let program = daemon.start(1, perl);
    assert_eq!(program.rest(), "");
    assert_ne!(daemon.exit(1).status, Status::Code(0));
    assert!(read_all(&program.pipes.stderr).contains("Out of memory"));
    assert_eq!(daemon.output(limited(limits, "echo enough")), "enough\n");
}

fn processor_time() {
    let mut daemon = Daemon::new();
    let limits = Limits { cpu: Some(1), ..Limits::default() };
    daemon.start(1, limited(limits, "while :; do :; done"));
    assert_eq!(daemon.exit(1).status, Status::Signal(24), "SIGXCPU");
}

fn place() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let last = (0..1024).rev().find(|&cpu| allowed.is_set(cpu)).expect("we run on one");
    let mut daemon = Daemon::new();
    let bounds = Bounds { cpus: vec![last], nice: 5, ..Bounds::default() };
    let script =
        "grep Cpus_allowed_list /proc/self/status | cut -f 2; cut -d ' ' -f 19 /proc/$$/stat";
    let before: i32 =
        daemon.output(shell("cut -d ' ' -f 19 /proc/$$/stat")).trim().parse().unwrap();
    let seen = daemon.output(bounded(bounds, script));
    assert_eq!(seen, format!("{last}\n{}\n", (before + 5).min(19)));
    let nowhere = Bounds { cpus: vec![1023], ..Bounds::default() };
    let error = daemon.start_error(bounded(nowhere, "exit"));
    assert_eq!(
        error.to_string(),
        "cannot place it on the processors [1023]: Invalid argument (os error 22)"
    );
}

/// Whether this process is root: only root can change users. If it is not, the skipped test is reported at the end of
/// the run.
pub(crate) fn may_change_users() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        untested_without_root("programs of another user", "the tests do not run as root");
    }
    root
}

fn user() {
    let mut daemon = Daemon::new();
    let bounds = Bounds { user: Some("nobody".into()), no_new_privs: true, ..Bounds::default() };
    if !may_change_users() {
        let error = daemon.start_error(bounded(bounds, "exit"));
        assert!(matches!(error, StartError::Bounds { .. }), "{error}");
        return;
    }
    let script = "id -u; id -un; id -gn; grep NoNewPrivs /proc/self/status | cut -f 2; \
                  grep -c . /proc/self/environ >/dev/null && echo own";
    let expected = "65534\nnobody\nnogroup\n1\nown\n";
    assert_eq!(daemon.output(bounded(bounds.clone(), script)), expected);
    let grouped = Bounds { group: Some("4".into()), ..bounds.clone() };
    assert_eq!(daemon.output(bounded(grouped, "id -g; id -G")), "4\n4\n");
    // The kernel clears the parent-death signal when a process changes its user.
    let program = daemon.start(7, Command { bounds, ..command("sleep", &["1000"]) });
    let (sleeping, supervisor) = (program.process(), daemon.supervisor());
    Process::of(supervisor).signal(Signal::KILL);
    until(PATIENCE, "it ended with the supervisor", || !sleeping.runs());
    assert_eq!(daemon.exit(7).status, Status::Lost);
}

fn unknown() {
    let mut daemon = Daemon::new();
    let of = |user: &str, group: Option<&str>| {
        let group = group.map(str::to_owned);
        bounded(Bounds { user: Some(user.into()), group, ..Bounds::default() }, "exit")
    };
    let error = daemon.start_error(of("nobody-at-all", None));
    assert_eq!(
        error.to_string(),
        "there is no user `nobody-at-all`; name one of /etc/passwd, or give a number"
    );
    let error = daemon.start_error(of("nobody", Some("no-group-at-all")));
    assert_eq!(error, StartError::NoGroup { group: "no-group-at-all".into() });
    let error = daemon.start_error(of("3999999999", None));
    assert_eq!(error, StartError::NoGroup { group: "3999999999".into() });
}

/// As an argument of the system calls it means "do not change".
fn largest_number() {
    let mut daemon = Daemon::new();
    let of = |user: Option<&str>, group: Option<&str>| Bounds {
        user: user.map(str::to_owned),
        group: group.map(str::to_owned),
        ..Bounds::default()
    };
    let number = "4294967295";
    let error = daemon.start_error(bounded(of(Some(number), Some("0")), "id -u"));
    assert_eq!(error, StartError::NoUser { user: number.into() });
    let error = daemon.start_error(bounded(of(None, Some(number)), "id -g"));
    assert_eq!(error, StartError::NoGroup { group: number.into() });
}

fn account() {
    let mut daemon = Daemon::new();
    if !may_change_users() {
        return;
    }
    let script = "echo $HOME $USER $LOGNAME";
    let of = |user: &str, group: Option<&str>| Bounds {
        user: Some(user.into()),
        group: group.map(str::to_owned),
        ..Bounds::default()
    };
    let seen = daemon.output(bounded(of("nobody", None), script));
    assert_eq!(seen, "/nonexistent nobody nobody\n");
    let seen = daemon.output(bounded(of("3999999996", Some("65534")), script));
    assert_eq!(seen, "/ 3999999996 3999999996\n");
    let env = vec![("HOME".into(), "/given".into())];
    let given = Command { env, ..bounded(of("nobody", None), script) };
    assert_eq!(daemon.output(given), "/given nobody nobody\n");
    let cleared = Command { env_clear: true, ..bounded(of("nobody", None), script) };
    assert_eq!(daemon.output(cleared), "\n");
    let without = daemon.output(shell(script));
    assert!(!without.contains("nobody"), "{without}");
}

/// All its ids, its groups and its capabilities are those of the user.
fn no_rights() {
    let mut daemon = Daemon::new();
    if !may_change_users() {
        return;
    }
    let bounds = Bounds { user: Some("nobody".into()), ..Bounds::default() };
    let script = "grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapAmb):' /proc/self/status";
    let seen = daemon.output(bounded(bounds, script));
    let rows: Vec<Vec<&str>> =
        seen.lines().map(|line| line.split_ascii_whitespace().collect()).collect();
    let none = "0000000000000000";
    let id = "65534";
    let expected = [
        vec!["Uid:", id, id, id, id],
        vec!["Gid:", id, id, id, id],
        vec!["Groups:", id],
        vec!["CapInh:", none],
        vec!["CapPrm:", none],
        vec!["CapEff:", none],
        vec!["CapAmb:", none],
    ];
    assert_eq!(rows, expected);
}

/// A program of root with only a group set: with its capabilities it could become a member of any other group.
fn group_alone() {
    if !may_change_users() {
        return;
    }
    let bounds = Bounds { group: Some("4".into()), ..Bounds::default() };
    let script = "grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb):' \
        /proc/self/status | tr -s '[:space:]' ' '; setpriv --regid=0 --clear-groups id -g 2>/dev/null || echo no";
    let none = "0000000000000000";
    let expected = format!(
        "Uid: 0 0 0 0 Gid: 4 4 4 4 Groups: 4 CapInh: {none} CapPrm: {none} CapEff: {none} \
         CapBnd: {none} CapAmb: {none} no\n"
    );
    assert_eq!(Daemon::new().output(bounded(bounds, script)), expected);
}

/// The argument that makes this executable act as a daemon that is not root and may change users by capabilities.
pub(crate) const CAPABLE: &str = "be-capable";

const RIGHTS: &str = "grep -E '^(Uid|Groups|CapInh|CapPrm|CapEff|CapAmb):' /proc/self/status | \
    tr -s '[:space:]' ' '; echo";

pub(crate) fn be_capable() -> ! {
    let mut daemon = Daemon::new();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let own = status
        .lines()
        .find(|line| line.starts_with("CapPrm:"))
        .expect("a row of the kernel's table");
    println!("{own}");
    print!("{}", daemon.output(shell(RIGHTS)));
    let bounds = || Bounds { user: Some("nobody".into()), ..Bounds::default() };
    if spawn::cannot_kill_programs_of("nobody") {
        println!("{}", daemon.start_error(bounded(bounds(), RIGHTS)));
    } else {
        print!("{}", daemon.output(bounded(bounds(), RIGHTS)));
        hang_and_be_killed(&mut daemon, bounds());
    }
    let bounds = Bounds { group: Some("4".into()), ..Bounds::default() };
    print!("{}", daemon.output(bounded(bounds, RIGHTS)));
    drop(daemon);
    std::process::exit(0)
}

/// A program of another user that ignores everything else is killed, and so is its child.
fn hang_and_be_killed(daemon: &mut Daemon, bounds: Bounds) {
    let script = "trap '' TERM; setsid sleep 1000 & echo $!; read a; read a";
    let program = daemon.start(2, bounded(bounds, script));
    let family = [program.process(), program.told()];
    daemon.kill(&program);
    all_gone(PATIENCE, &family);
}

/// The output of a daemon that is not root, with these capabilities only.
fn output_with(user: &str, capabilities: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("daemon");
    fs::copy("/proc/self/exe", &copy).unwrap();
    let out = std::process::Command::new("setpriv")
        .args([&format!("--reuid={user}"), "--regid=65534", "--clear-groups"])
        .args([format!("--inh-caps={capabilities}"), format!("--ambient-caps={capabilities}")])
        .arg(&copy)
        .arg(CAPABLE)
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

fn rights(user: &str, groups: &str) -> String {
    let none = "0000000000000000";
    format!(
        "Uid: {user} {user} {user} {user} Groups:{groups} CapInh: {none} CapPrm: {none} \
         CapEff: {none} CapAmb: {none} \n"
    )
}

fn capabilities() {
    if !may_change_users() {
        return;
    }
    let user = "3999999995";
    let expected = "CapPrm:\t00000000000000e0\n".to_owned()
        + &rights(user, "")
        + &rights("65534", " 65534")
        + &rights(user, " 4");
    assert_eq!(output_with(user, "+setuid,+setgid,+kill"), expected);
}

fn without_kill() {
    if !may_change_users() {
        return;
    }
    let user = "3999999995";
    let error = "cannot run it as user `nobody` (it needs CAP_SETUID, CAP_SETGID and CAP_KILL): \
                 Operation not permitted (os error 1)\n";
    let expected =
        "CapPrm:\t00000000000000c0\n".to_owned() + &rights(user, "") + error + &rights(user, " 4");
    assert_eq!(output_with(user, "+setuid,+setgid"), expected);
    assert!(!spawn::cannot_kill_programs_of("nobody") && !spawn::cannot_kill_programs_of("0"));
}

/// The argument that makes this executable act as a daemon with a key in its session keyring.
pub(crate) const KEYED: &str = "be-keyed";

/// The numbers of `KEYCTL_JOIN_SESSION_KEYRING` and `KEYCTL_SEARCH`, and of the session keyring.
const JOIN: i32 = 1;
const SEARCH: i32 = 10;
const SESSION: i32 = -3;
const KEY: &str = "my ($type, $name, $value) = ('user', 'roadstead:test', 'secret');";

pub(crate) fn be_keyed() -> ! {
    let keyctl = libc::SYS_keyctl;
    let search = format!(
        "{KEY} print syscall({keyctl}, {SEARCH}, {SESSION}, $type, $name, 0) > 0 ? 'found' : 'none'; \
         open my $keys, '/proc/keys'; print ' ', scalar(grep /$name/, <$keys>), ' '"
    );
    let of = |user: Option<&str>| Command {
        bounds: Bounds { user: user.map(str::to_owned), ..Bounds::default() },
        ..command("perl", &["-e", &search])
    };
    let mut daemon = Daemon::new();
    for user in [None, Some("0"), Some("nobody")] {
        print!("{}", daemon.output(of(user)));
    }
    drop(daemon);
    std::process::exit(0)
}

fn keyring() {
    if !may_change_users() {
        return;
    }
    let (keyctl, add_key) = (libc::SYS_keyctl, libc::SYS_add_key);
    let keyed = format!(
        "syscall({keyctl}, {JOIN}, 0) > 0 or exit 77; {KEY} \
         syscall({add_key}, $type, $name, $value, length $value, {SESSION}) > 0 or exit 77; exec @ARGV"
    );
    let out = std::process::Command::new("perl")
        .args(["-e", &keyed])
        .arg(std::env::current_exe().unwrap())
        .arg(KEYED)
        .output()
        .unwrap();
    if out.status.code() == Some(77) {
        let why = "this system has no keyrings, or forbids their use";
        untested("session keyrings of programs", why, "run it outside of a container");
        return;
    }
    assert_eq!(String::from_utf8_lossy(&out.stdout), "found 1 found 1 none 0 ", "{out:?}");
}

fn no_descriptor() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut daemon = Daemon::new();
    let ours = getrlimit(Resource::Nofile);
    let full = rustix::process::Rlimit { current: Some(3), ..ours };
    setrlimit(Resource::Nofile, full).unwrap();
    let error = daemon.start_error(shell("exit"));
    setrlimit(Resource::Nofile, ours).unwrap();
    assert!(matches!(error, StartError::System { errno: libc::EMFILE, .. }), "{error}");
    assert_eq!(daemon.output(shell("echo again")), "again\n");
}

fn three_four() {
    let mut daemon = Daemon::new();
    let wiring = Wiring { numbers: DescriptorNumbers::ThreeFour, ..Wiring::default() };
    let script = "echo stray; echo also >&2; read line <&3; echo \"got $line\" >&4; cat; \
                  ls /proc/self/fd | tr '\\n' ' ' >&4";
    let asked = Command { wiring, ..shell(script) };
    let program = daemon.start(1, asked);
    rustix::io::write(&program.pipes.stdin, b"word\n").unwrap();
    assert_eq!(program.line(), "got word");
    // 5 is the folder that `ls` reads. Standard input was empty, otherwise `cat` would wait.
    assert_eq!(program.rest(), "0 1 2 3 4 5 ");
    assert_eq!(read_all(&program.pipes.stderr), "stray\nalso\n");
    assert_eq!(daemon.exit(1).status, Status::Code(0));
}

fn measured() {
    let mut daemon = Daemon::new();
    let program = daemon.start(1, command("cat", &[]));
    let pid = program.pid.cast_unsigned();
    let daemon = std::cell::RefCell::new(daemon);
    let resident = || daemon.borrow_mut().spawner().resident(pid);
    until(PATIENCE, "it is measured", || resident().is_some_and(|bytes| bytes > 64 << 10));
    daemon.borrow_mut().kill(&program);
    assert_eq!(resident(), None);
}

fn sockets() {
    let mut daemon = Daemon::new();
    let wiring = Wiring { io: Io::Socket, ..Wiring::default() };
    let program = daemon.start(1, Command { wiring, ..command("cat", &[]) });
    rustix::io::write(&program.pipes.stdin, b"one\n").unwrap();
    assert_eq!(program.line(), "one");
    let crate::support::Program { pipes, .. } = program;
    rustix::io::write(&pipes.stdin, b"two\n").unwrap();
    drop(pipes.stdin);
    assert_eq!(read_all(&pipes.stdout), "two\n");
    assert_eq!(daemon.exit(1).status, Status::Code(0));
}

fn unbuffered() {
    let mut daemon = Daemon::new();
    // `grep` writes with stdio of C, so it writes nothing before the end of its input.
    for unbuffer in [Unbuffer::Stdbuf, Unbuffer::Pty] {
        let wiring = Wiring { unbuffer, ..Wiring::default() };
        let program = daemon.start(1, Command { wiring, ..command("grep", &["-v", "x"]) });
        rustix::io::write(&program.pipes.stdin, b"one\n").unwrap();
        assert_eq!(program.line(), "one", "{unbuffer:?}");
        drop(program.pipes.stdin);
        assert_eq!(daemon.exit(1).status, Status::Code(0));
    }
}

fn stopped_program() {
    let mut daemon = Daemon::new();
    let program = daemon.start(1, shell("trap 'exit 3' TERM; kill -STOP $$; sleep 1000 & wait"));
    until(PATIENCE, "it is stopped", || state(program.pid) == 'T');
    daemon.spawner().stop(1, Stop::Term);
    assert_eq!(daemon.exit(1).status, Status::Code(3));
    let program = daemon.start(2, shell("trap '' TERM; kill -STOP $$; sleep 1000"));
    until(PATIENCE, "it is stopped", || state(program.pid) == 'T');
    assert_eq!(daemon.kill(&program).status, Status::Signal(9));
}

fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, tail)| tail.chars().next()).unwrap_or('-')
}

fn stopped_supervisor() {
    let mut daemon = Daemon::new();
    let program = daemon.start(1, command("sleep", &["1000"]));
    let (sleeping, supervisor) = (program.process(), daemon.supervisor());
    Process::of(supervisor).signal(Signal::STOP);
    // No answer comes to this order. The missing answer makes the spawner ping the supervisor.
    let error = daemon.start_error(shell("exit"));
    assert_eq!(error, StartError::SupervisorLost);
    assert_eq!(daemon.exit(1).status, Status::Lost);
    assert!(!sleeping.runs());
    until(PATIENCE, "another stands in", || {
        let now = daemon.spawner.as_ref().and_then(spawn::Spawner::supervisor_pid);
        now.is_some_and(|pid| pid.cast_signed() != supervisor)
    });
    assert_eq!(daemon.output(shell("echo again")), "again\n");
}

/// Returns a control group that this process may use, or `None` if this machine has none.
fn cgroup2() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let at = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let at = words.next()?;
        (words.next() == Some("cgroup2")).then_some(at)
    })?;
    let folder = Path::new(at).join(format!("roadstead-test-{}", std::process::id()));
    fs::create_dir(&folder).ok()?;
    Some(folder)
}

fn control_group() {
    let Some(folder) = cgroup2() else {
        print!("(no control groups can be made here; only the refusal is tested) ");
        let nowhere = Bounds { cgroup: Cgroup::Under("/nowhere".into()), ..Bounds::default() };
        let error = Daemon::new().start_error(bounded(nowhere, "exit"));
        assert!(error.to_string().starts_with("cannot make a control group in `/nowhere`"));
        return;
    };
    let bounds = Bounds { cgroup: Cgroup::Under(folder.clone()), ..Bounds::default() };
    let mut daemon = Daemon::new();
    // It moves to another session, without a mark in its environment, next to an older program that could be its
    // parent: no other rule would find it.
    let older = daemon.start(1, bounded(bounds.clone(), "sleep 1000"));
    let hides = "env -i setsid sh -c 'echo $$; exec sleep 1000 >/dev/null' & read end";
    let program = daemon.start(2, bounded(bounds, hides));
    let hidden = program.told();
    drop(program.pipes.stdin);
    daemon.exit(2);
    until(PATIENCE, "what hid is ended", || !hidden.runs());
    assert!(older.process().runs());
    daemon.kill(&older);
    drop(daemon);
    until(PATIENCE, "no group is left", || fs::remove_dir(&folder).is_ok() || !folder.exists());
}
