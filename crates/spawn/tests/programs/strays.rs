//! Processes that programs leave behind while the daemon runs.

use crate::ends::LEADER;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Daemon, PATIENCE, Process, Program, all_gone, command, shell};

pub(crate) const ALL: &[crate::Test] = &[
    ("strays::a_grandchild_ends_with_its_program", plain),
    ("strays::a_grandchild_in_a_session_of_its_own_ends_with_its_program", escaped),
    ("strays::one_caught_in_the_middle_of_executing_ends_too", executing),
    ("strays::an_orphan_of_a_running_program_is_left_alone", of_the_living),
    ("strays::one_without_marks_ends_once_no_older_program_runs", unmarked),
    ("strays::an_orphan_whose_name_is_not_text_ends_with_its_program", named),
    ("strays::an_orphan_whose_first_thread_has_ended_ends_with_its_program", headless),
    ("strays::an_orphan_that_blocks_readers_of_its_files_costs_no_other_program", blocking),
    ("strays::one_without_marks_ends_if_no_running_program_can_have_its_user", other_users),
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
        // The supervisor uses a time that is a little earlier.
        if program.process().started > orphan.started + 10 {
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

fn other_users() {
    if !crate::bounds::may_change_users() {
        return;
    }
    let mut daemon = Daemon::new();
    let of = |user: u32, command| spawn::Command {
        bounds: spawn::Bounds {
            user: Some(user.to_string()),
            group: Some("65534".into()),
            no_new_privs: true,
            ..spawn::Bounds::default()
        },
        ..command
    };
    let older = daemon.start(1, of(3_999_999_990, command("cat", &[])));
    let same = daemon.start(3, of(3_999_999_989, command("cat", &[])));
    let script = "(env -i setsid sleep 1000 & echo $!); read a";
    let program = daemon.start(2, of(3_999_999_989, shell(script)));
    let orphan = program.told();
    crate::support::until(PATIENCE, "it has no mark", || orphan.name() == "sleep");
    daemon.kill(&program);
    daemon.start(2, shell("exit"));
    daemon.exit(2);
    assert!(orphan.runs(), "an older program of its user runs");
    daemon.kill(&same);
    all_gone(PATIENCE, &[orphan]);
    assert!(older.process().runs());
    daemon.kill(&older);
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

/// The files of a process show no environment after its first thread has ended; those of its other threads do.
fn headless() {
    let mut daemon = Daemon::new();
    let other = daemon.start(2, command("cat", &[]));
    let perl = r#"use POSIX; $| = 1; unless (fork) { setsid; exit if fork; setsid; print "$$\n";
        eval "use threads; 1" or do { print "none\n"; sleep 1000 };
        threads->create(sub { sleep 1000 })->detach; print "threads\n"; syscall(60, 0); sleep 1000 }
        <STDIN>"#;
    let program = daemon.start(1, command("perl", &["-e", perl]));
    let orphan = program.told();
    let threads = program.line() == "threads";
    if threads && cfg!(target_arch = "x86_64") {
        let state = format!("/proc/{}/status", orphan.pid);
        crate::support::until(PATIENCE, "its first thread ended", || {
            std::fs::read_to_string(&state).unwrap().contains("State:\tZ")
        });
    } else {
        crate::untested::untested(
            "an orphan whose first thread has ended",
            "Perl has no threads, or the number of the system call is not known",
            "run it on x86-64 with the module `threads`",
        );
    }
    daemon.kill(&program);
    crate::support::until(PATIENCE, "the orphan is gone", || gone(orphan.pid));
    daemon.kill(&other);
}

/// A server of a FUSE file system that never answers the close of a file, and a process that closes such a file in the
/// middle of execve. Until the server ends, reading `stat` and `environ` of that process blocks. The server ends after 20
/// seconds in any case.
const FUSE: &str = r#"use Fcntl; $| = 1; my $dir = shift; $^F = 100;
    sysopen my $dev, "/dev/fuse", O_RDWR or die "/dev/fuse: $!\n";
    my $options = "fd=" . fileno($dev) . ",rootmode=40000,user_id=0,group_id=0"; $^F = 2;
    system("mount", "-i", "-t", "fuse", "-o", $options, "x", $dir) and die "mount\n";
    my $server = fork;
    unless ($server) {
        alarm 20;
        my $attr = sub { pack "Q6 L10", $_[0], 4096, (0) x 7, $_[0] == 1 ? 040755 : 0100644, 1, (0) x 5 };
        while (sysread $dev, my $in, 1 << 20) {
            my ($len, $op, $id, $node) = unpack "L2 Q2", $in; my ($error, $out) = (0, "");
            if ($op == 26) { $out = pack "L4 S2 L10", 7, 31, 4096, 0, 16, 12, 65536, 1, (0) x 8 }
            elsif ($op == 1) { $out = pack("Q4 L2", 2, 0, 3600, 3600, 0, 0) . $attr->(2) }
            elsif ($op == 3) { $out = pack("Q L2", 3600, 0, 0) . $attr->($node) }
            elsif ($op == 14) { $out = pack "Q L2", 1, 0, 0 }
            elsif ($op == 25) { print "blocked\n"; next }
            elsif ($op == 2 || $op == 36 || $op == 42) { next }
            else { $error = -38 }
            syswrite $dev, pack("L l Q", 16 + length $out, $error, $id) . $out;
        }
        exit;
    }
    close $dev;
    open my $file, "<", "$dir/f" or do { kill "KILL", $server; die "open: $!\n" };
    print "$$ $server\n";
    exec "sleep", "1000";"#;

fn blocking() {
    let mut daemon = Daemon::new();
    let other = daemon.start(2, command("cat", &[]));
    let supervisor = daemon.supervisor();
    let folder = tempfile::tempdir().unwrap();
    let script =
        format!("(setsid unshare -rm perl -e '{FUSE}' {} 2>&1 &); read a", folder.path().display());
    let program = daemon.start(1, shell(&script));
    let line = program.line();
    let pids: Vec<i32> = line.split(' ').filter_map(|pid| pid.parse().ok()).collect();
    let [orphan, server] = pids[..] else {
        return crate::untested::untested(
            "an orphan that blocks readers of its files",
            &line,
            "run it where a user namespace may mount FUSE file systems",
        );
    };
    assert_eq!(program.line(), "blocked");
    let begun = Instant::now();
    daemon.kill(&program);
    // The searches that follow read the files of the orphan.
    for token in 10..15 {
        daemon.start(token, shell("exit"));
        daemon.exit(token);
    }
    let pause = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
    let _ = rustix::event::poll(&mut [], Some(&pause));
    assert_eq!(daemon.output(shell("echo alive")), "alive\n");
    let took = begun.elapsed();
    let _ = Pid::from_raw(server).map(|pid| kill_process(pid, Signal::KILL));
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(daemon.supervisor(), supervisor);
    assert!(other.process().runs());
    crate::support::until(PATIENCE, "the orphan is gone", || gone(orphan));
    daemon.kill(&other);
}
