//! The limit of processes of a user, and programs that fork up to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use std::time::{Duration, Instant};

use spawn::{Bounds, Command, Limits};

use crate::bounds::may_change_users;
use crate::support::{Daemon, PATIENCE, Process, command, shell, until};

pub(crate) const ALL: &[crate::Test] = &[
    ("crowds::a_fork_bomb_is_held_by_its_limit_and_all_of_it_is_ended", bomb),
    ("crowds::a_chain_that_forks_whenever_a_process_is_reaped_ends_with_the_daemon", chain),
    ("crowds::orphans_that_continue_each_other_cost_no_other_program", orphans),
    ("crowds::two_thousand_orphans_of_a_running_program_delay_no_other", thousands),
    ("crowds::orphans_in_namespaces_of_their_own_end_with_their_program", namespaces),
    ("crowds::a_start_that_cannot_fork_fails_alone_and_later_ones_succeed", fork_failure),
];

fn bomb() {
    let mut daemon = Daemon::new();
    if !may_change_users() {
        return;
    }
    let bounds = Bounds {
        // A user that nothing else uses: the limit counts all processes of a user.
        user: Some("3999999998".into()),
        group: Some("65534".into()),
        limits: Limits { processes: Some(40), ..Limits::default() },
        ..Bounds::default()
    };
    // Each of them forks until a fork fails, reports that, and sleeps.
    let perl =
        "$| = 1; while (1) { my $p = fork; if (!defined $p) { print \"full\\n\"; sleep 1000 } }";
    let program = daemon.start(9, Command { bounds, ..command("perl", &["-e", perl]) });
    assert_eq!(program.line(), "full");
    let ours = || processes_of("3999999998").len();
    assert!((1..=40).contains(&ours()), "{} processes", ours());
    assert_eq!(daemon.output(shell("echo alive")), "alive\n");
    daemon.kill(&program);
    until(PATIENCE, "all of it ended", || ours() == 0);
}

/// Returns the running processes of a user.
fn processes_of(user: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        status.contains(&format!("Uid:\t{user}\t")) && !status.contains("State:\tZ")
    })
    .collect()
}

/// A chain of processes, each in a session of its own, of which only the last one forks. It is at the limit of its user,
/// so its next fork succeeds as soon as one process of the chain is reaped.
fn chain() {
    if !may_change_users() {
        return;
    }
    let bounds = Bounds {
        user: Some("3999999994".into()),
        group: Some("65534".into()),
        limits: Limits { processes: Some(30), ..Limits::default() },
        ..Bounds::default()
    };
    let perl = "use POSIX; $| = 1; $SIG{TERM} = 'IGNORE'; while (1) { my $p = fork; \
                if (!defined $p) { $said++ or print \"full\\n\"; select undef, undef, undef, 0.0003 } \
                elsif ($p) { sleep while 1 } else { setsid } }";
    let mut daemon = Daemon::new();
    let program = daemon.start(9, Command { bounds, ..command("perl", &["-e", perl]) });
    assert_eq!(program.line(), "full");
    drop(daemon);
    let left = processes_of("3999999994");
    for pid in &left {
        // Stopped before the test fails, so that no process of the chain outlives the test.
        let _ = std::process::Command::new("kill").args(["-STOP", &pid.to_string()]).status();
    }
    for pid in &left {
        let _ = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    }
    assert!(left.is_empty(), "{} processes of the chain remain", left.len());
}

/// A program that ends and leaves many trees of processes in sessions of their own, and some that continue all others
/// that were stopped. The supervisor ends them all without leaving its other work.
fn orphans() {
    if !may_change_users() {
        return;
    }
    let bounds = Bounds {
        user: Some("3999999993".into()),
        group: Some("65534".into()),
        ..Bounds::default()
    };
    let perl = "use POSIX; $| = 1; $SIG{TERM} = 'IGNORE'; \
                for (1..40) { next if fork; setsid; fork; sleep while 1 } \
                for (1..24) { next if fork; setsid; while (1) { kill 'CONT', -1 } } print \"left\\n\"";
    let mut daemon = Daemon::new();
    let steady = daemon.start(7, command("sleep", &["1000"]));
    let (sleeping, supervisor) = (steady.process(), daemon.supervisor());
    let program = daemon.start(9, Command { bounds, ..command("perl", &["-e", perl]) });
    assert_eq!(program.line(), "left");
    daemon.exit(9);
    until(PATIENCE, "all orphans ended", || processes_of("3999999993").is_empty());
    assert_eq!(daemon.output(shell("echo alive")), "alive\n");
    assert!(sleeping.runs(), "the program of another pool was ended");
    assert_eq!(daemon.supervisor(), supervisor);
    daemon.kill(&steady);
}

/// Orphans in sessions of their own, so that their origin must be read for each.
fn thousands() {
    let mut daemon = Daemon::new();
    if !may_change_users() {
        return;
    }
    let bounds = Bounds {
        user: Some("3999999988".into()),
        group: Some("65534".into()),
        ..Bounds::default()
    };
    let perl = "use POSIX; $| = 1; for (1..2000) { next if fork; setsid; sleep while 1 } \
                print \"left\\n\"; exit if fork; setsid; sleep while 1";
    let script = format!("perl -e '{perl}'; echo orphans; read a");
    let steady = daemon.start(7, command("cat", &[]));
    let program = daemon.start(9, Command { bounds, ..shell(&script) });
    assert_eq!((program.line(), program.line()), ("left".to_owned(), "orphans".to_owned()));
    let begun = Instant::now();
    for token in 10..15 {
        daemon.start(token, shell("exit"));
        daemon.exit(token);
    }
    let took = begun.elapsed();
    assert_eq!(processes_of("3999999988").len(), 2002, "they belong to a running program");
    daemon.kill(&program);
    until(PATIENCE, "all orphans ended", || processes_of("3999999988").is_empty());
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(steady.process().runs());
    daemon.kill(&steady);
}

fn namespaces() {
    let mut daemon = Daemon::new();
    let steady = daemon.start(7, command("cat", &[]));
    for flags in ["-rU", "-rUpf"] {
        // One is the first process of the namespace, the other has its parent there.
        let script = format!(
            "(setsid unshare {flags} sh -c 'setsid sleep 1000 & exec sleep 1000' >&- 2>&- &); read a"
        );
        let program = daemon.start(9, shell(&script));
        let found = || descendants_named(daemon.supervisor(), "sleep");
        let end = Instant::now() + Duration::from_secs(5);
        while found().len() < 2 && Instant::now() < end {
            std::thread::yield_now();
        }
        let orphans: Vec<_> = found().into_iter().map(Process::of).collect();
        if orphans.len() < 2 {
            crate::untested::untested(
                "orphans in namespaces",
                "`unshare` failed",
                "run it where user namespaces are permitted",
            );
        }
        daemon.kill(&program);
        crate::support::all_gone(PATIENCE, &orphans);
    }
    daemon.kill(&steady);
}

/// Returns the descendants of a process with this name.
fn descendants_named(of: i32, name: &str) -> Vec<i32> {
    let children = |of: i32| -> Vec<i32> {
        let list = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
        list.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
    };
    let mut all = children(of);
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        all.extend(children(pid));
        next += 1;
    }
    all.retain(|pid| {
        fs::read(format!("/proc/{pid}/comm"))
            .is_ok_and(|it| it.strip_suffix(b"\n") == Some(name.as_bytes()))
    });
    all
}

/// The argument that makes this executable act as a daemon that may have six processes and threads: two of the daemon,
/// the watchdog, the supervisor with its reader, and one program.
pub(crate) const CROWDED: &str = "be-crowded";

pub(crate) fn be_crowded() -> ! {
    let mut daemon = Daemon::new();
    let first = daemon.start(1, command("sleep", &["1000"]));
    let error = daemon.start_error(command("sleep", &["1000"]));
    println!("{error}");
    daemon.kill(&first);
    // Its process is gone when its exit is reported.
    println!("{}", daemon.output(command("echo", &["again"])).trim());
    drop(daemon);
    std::process::exit(0)
}

fn fork_failure() {
    let mut daemon = Daemon::new();
    if !may_change_users() {
        return;
    }
    // Root is not subject to this limit, so another user runs the daemon, from a folder that it may read.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("daemon");
    fs::copy("/proc/self/exe", &copy).unwrap();
    let bounds = Bounds {
        user: Some("3999999997".into()),
        group: Some("65534".into()),
        limits: Limits { processes: Some(6), ..Limits::default() },
        ..Bounds::default()
    };
    let asked = Command { bounds, ..command(copy.to_str().unwrap(), &[CROWDED]) };
    let said = "cannot make its process: Resource temporarily unavailable (os error 11)\nagain\n";
    assert_eq!(daemon.output(asked), said);
}
