//! Processes that programs leave behind while the daemon runs.

use crate::ends::LEADER;
use crate::support::{Daemon, PATIENCE, Process, Program, all_gone, command, shell};

pub(crate) const ALL: &[crate::Test] = &[
    ("strays::a_grandchild_ends_with_its_program", plain),
    ("strays::a_grandchild_in_a_session_of_its_own_ends_with_its_program", escaped),
    ("strays::one_caught_in_the_middle_of_executing_ends_too", executing),
    ("strays::an_orphan_of_a_running_program_is_left_alone", of_the_living),
    ("strays::one_without_marks_ends_once_no_older_program_runs", unmarked),
    ("strays::an_orphan_whose_name_is_not_text_ends_with_its_program", named),
    ("strays::a_family_that_escaped_ends_to_the_last", family),
];

fn plain() {
    let mut daemon = Daemon::new();
    // An older program that could be the origin of a process without a mark.
    let older = daemon.start(2, command("cat", &[]));
    let executable = std::env::current_exe().unwrap();
    let script = format!(
        "sleep 1000 & echo $!; env -i '{}' {LEADER} & env -i sh -c 'sleep 1000 & echo $!; wait' & \
         read a",
        executable.display()
    );
    let program = daemon.start(1, shell(&script));
    let children: Vec<_> = (0..3).map(|_| program.told()).collect();
    rustix::io::write(&program.pipes.stdin, b"go\n").unwrap();
    assert_eq!(daemon.exit(1).status, spawn::Status::Code(0));
    all_gone(PATIENCE, &children);
    daemon.kill(&older);
}

/// The process id as text: the program and its child may have ended before the test could examine them.
fn pid(program: &Program) -> i32 {
    program.line().parse().unwrap()
}

fn gone(pid: i32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

fn escaped() {
    let mut daemon = Daemon::new();
    // Another program runs all the time, and could be the origin of a process that does not belong to it.
    let other = daemon.start(2, command("cat", &[]));
    for (script, kill) in [
        ("setsid sleep 1000 & echo $!; read a", true),
        ("setsid sleep 1000 & echo $!; read a", false),
        ("(setsid sleep 1000 & echo $!); read a", false),
    ] {
        let program = daemon.start(1, shell(script));
        let escaped = program.told();
        let Program { token, pid, pipes } = program;
        if kill {
            let program = Program { token, pid, pipes };
            daemon.kill(&program);
        } else {
            drop(pipes.stdin);
            daemon.exit(1);
        }
        all_gone(PATIENCE, &[escaped]);
    }
    assert!(other.process().runs());
    daemon.kill(&other);
}

/// During execve the environment of a process cannot be read, so its origin is unknown. The test is repeated often
/// because the scheduler determines at which moment the kill arrives.
fn executing() {
    let mut daemon = Daemon::new();
    let other = daemon.start(2, command("cat", &[]));
    for _ in 0..100 {
        let program = daemon.start(1, shell("setsid sleep 1000 & echo $!"));
        let child = pid(&program);
        daemon.exit(1);
        crate::support::until(PATIENCE, "the grandchild is gone", || gone(child));
    }
    daemon.kill(&other);
}

/// Starts a grandchild that the supervisor adopts while its program continues.
fn with_orphan(daemon: &mut Daemon, token: u64, how: &str) -> (Program, Process) {
    let program = daemon.start(token, shell(&format!("({how} sleep 1000 & echo $!); read a")));
    let orphan = program.told();
    let supervisor = daemon.supervisor();
    crate::support::until(PATIENCE, "the supervisor adopts it", || orphan.parent() == supervisor);
    (program, orphan)
}

fn of_the_living() {
    let mut daemon = Daemon::new();
    let (owner, in_own_session) = with_orphan(&mut daemon, 1, "setsid");
    let (second, in_its_session) = with_orphan(&mut daemon, 2, "");
    // The ends of other programs make the supervisor search for orphans.
    for token in 10..15 {
        daemon.start(token, shell("exit"));
        daemon.exit(token);
    }
    assert!(in_own_session.runs());
    assert!(in_its_session.runs());
    daemon.kill(&second);
    all_gone(PATIENCE, &[in_its_session]);
    assert!(in_own_session.runs());
    daemon.kill(&owner);
    all_gone(PATIENCE, &[in_own_session]);
}

fn unmarked() {
    let mut daemon = Daemon::new();
    let older = daemon.start(1, command("cat", &[]));
    let (owner, orphan) = with_orphan(&mut daemon, 2, "env -i setsid");
    // Until then it still has the mark, or is in the session of its program.
    crate::support::until(PATIENCE, "it executes what it was told to", || orphan.name() == "sleep");
    // Starts programs until one is younger than the orphan by the kernel's clock of 10 ms.
    let mut token = 10;
    let younger = loop {
        let program = daemon.start(token, command("cat", &[]));
        if program.process().started > orphan.started {
            break program;
        }
        daemon.kill(&program);
        token += 1;
    };
    daemon.kill(&owner);
    // One more start and end, so that the supervisor has certainly searched.
    daemon.start(2, shell("exit"));
    daemon.exit(2);
    assert!(orphan.runs(), "an older program runs, whose it could be");
    daemon.kill(&older);
    all_gone(PATIENCE, &[orphan]);
    assert!(younger.process().runs());
    daemon.kill(&younger);
}

fn family() {
    let mut daemon = Daemon::new();
    let script = "setsid sh -c 'echo $$; setsid sh -c \"echo \\$\\$; setsid sleep 1000 & echo \\$!; \
                  wait\" & wait' & read a";
    let program = daemon.start(1, shell(script));
    let family: Vec<_> = (0..3).map(|_| program.told()).collect();
    daemon.kill(&program);
    all_gone(PATIENCE, &family);
}

/// Orphans in sessions of their own, whose names cannot be read as text or look like other fields.
fn named() {
    let mut daemon = Daemon::new();
    let other = daemon.start(2, command("cat", &[]));
    let perl = r#"use POSIX; $| = 1;
        for my $name ("n\xff\xfe", ") R 1 1 1", "\n)\xc3") {
            next if fork; setsid; exit if fork; setsid;
            open my $comm, '>', '/proc/self/comm'; syswrite $comm, $name; print "$$\n"; sleep 1000; exit
        }
        <STDIN>"#;
    let program = daemon.start(1, command("perl", &["-e", perl]));
    let orphans: Vec<_> = (0..3).map(|_| program.told()).collect();
    daemon.kill(&program);
    all_gone(PATIENCE, &orphans);
    assert!(other.process().runs());
    daemon.kill(&other);
}
