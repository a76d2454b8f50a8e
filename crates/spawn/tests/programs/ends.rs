//! The end of programs, by themselves and when they are stopped.

use spawn::{Report, Spawn, Status, Stop};

use crate::support::{Daemon, PATIENCE, Process, all_gone, command, descriptors, shell, until};

/// The argument that makes this executable lead its own group in the session of its parent, and wait.
pub(crate) const LEADER: &str = "lead-a-group";

pub(crate) fn lead_a_group() -> ! {
    rustix::process::setpgid(None, None).expect("nobody's leader");
    println!("{}", std::process::id());
    loop {
        let _ = rustix::event::poll(&mut [], None);
    }
}

pub(crate) const ALL: &[crate::Test] = &[
    ("ends::codes_and_signals_are_told_apart_with_their_cost", codes),
    ("ends::output_outlives_its_program", output),
    ("ends::stop_of_a_program_not_yet_started_is_heeded", stop_early),
    ("ends::stop_of_an_unknown_or_ended_program_does_nothing", stop_unknown),
    ("ends::one_that_ignores_term_is_killed", ignores_term),
    ("ends::stop_reaches_the_whole_group_and_session", whole_session),
    ("ends::stop_reaches_a_stopped_program", stopped),
    ("ends::two_hundred_at_once_each_start_and_end_once", many),
    ("ends::a_hundred_programs_leave_no_descriptor", no_leak),
    ("ends::finish_leaves_nothing", finish),
    ("ends::dropping_the_spawner_ends_its_programs", dropped),
    ("ends::two_spawners_do_not_know_of_each_other", two),
];

fn codes() {
    let mut daemon = Daemon::new();
    daemon.start(1, shell("exit 0"));
    assert_eq!(daemon.exit(1).to_string(), "exit code 0");
    daemon.start(1, shell("exit 255"));
    assert_eq!(daemon.exit(1).status, Status::Code(255));
    daemon.start(1, shell("ulimit -c 0; kill -SEGV $$"));
    assert_eq!(daemon.exit(1).to_string(), "signal 11 (SIGSEGV)");
    daemon.start(1, shell("i=0; while test $i -lt 20000; do i=$((i+1)); done"));
    let exit = daemon.exit(1);
    assert!(exit.rss_max > 100 * 1024, "{exit:?}");
    assert!(!(exit.user + exit.system).is_zero(), "{exit:?}");
}

fn output() {
    let mut daemon = Daemon::new();
    let program = daemon.start(1, shell("echo last words; echo complaint >&2"));
    daemon.exit(1);
    assert_eq!(program.rest(), "last words\n");
    assert_eq!(crate::support::read_all(&program.pipes.stderr), "complaint\n");
}

fn stop_early() {
    let mut daemon = Daemon::new();
    for token in 0..20 {
        daemon.spawner().start(token, command("cat", &[]));
        daemon.spawner().stop(token, Stop::Kill);
    }
    for token in 0..20 {
        drop(daemon.started(token));
        assert_eq!(daemon.exit(token).status, Status::Signal(9));
    }
}

fn stop_unknown() {
    let mut daemon = Daemon::new();
    daemon.spawner().stop(7, Stop::Kill);
    daemon.start(7, shell("exit 4"));
    assert_eq!(daemon.exit(7).status, Status::Code(4));
    daemon.spawner().stop(7, Stop::Kill);
    assert_eq!(daemon.output(shell("echo on")), "on\n");
}

fn ignores_term() {
    let mut daemon = Daemon::new();
    let program =
        daemon.start(1, shell("trap 'echo no' TERM; echo ready; while :; do read a; done"));
    assert_eq!(program.line(), "ready");
    daemon.spawner().stop(1, Stop::Term);
    assert_eq!(program.line(), "no");
    assert_eq!(daemon.kill(&program).to_string(), "signal 9 (SIGKILL)");
}

fn whole_session() {
    let mut daemon = Daemon::new();
    for how in [Stop::Term, Stop::Kill] {
        // The shell itself continues after TERM, so only the signal can have ended the two children. Each child reports
        // itself after the traps of the shell no longer apply to it.
        let executable = std::env::current_exe().unwrap();
        let script = format!(
            "trap : TERM; sh -c 'echo $$; exec sleep 1000' & '{}' {LEADER} & while :; do wait; done",
            executable.display()
        );
        let program = daemon.start(1, shell(&script));
        let children = [program.told(), program.told()];
        let leader = program.process();
        daemon.spawner().stop(1, how);
        all_gone(PATIENCE, &children);
        if how == Stop::Term {
            assert!(leader.runs());
            daemon.spawner().stop(1, Stop::Kill);
        }
        daemon.exit(1);
    }
}

fn stopped() {
    let mut daemon = Daemon::new();
    let program = daemon.start(1, command("cat", &[]));
    program.process().signal(rustix::process::Signal::STOP);
    assert_eq!(daemon.kill(&program).status, Status::Signal(9));
}

fn many() {
    let mut daemon = Daemon::new();
    for token in 0..200 {
        daemon.spawner().start(token, shell("read line; echo $line; exit 7"));
    }
    let programs: Vec<_> = (0..200).map(|token| daemon.started(token)).collect();
    for program in &programs {
        let line = format!("{}\n", program.token);
        rustix::io::write(&program.pipes.stdin, line.as_bytes()).unwrap();
    }
    for program in &programs {
        assert_eq!(program.rest(), format!("{}\n", program.token));
        assert_eq!(daemon.exit(program.token).status, Status::Code(7));
    }
}

fn no_leak() {
    let mut daemon = Daemon::new();
    daemon.output(shell(""));
    let supervisor = format!("/proc/{}/fd", daemon.supervisor());
    let before = descriptors();
    for _ in 0..100 {
        daemon.output(shell(""));
    }
    assert_eq!(descriptors(), before);
    // Standard input, output and error, the two sockets of the daemon and the reader, and the signals.
    until(PATIENCE, "the supervisor leaks none", || {
        std::fs::read_dir(&supervisor).unwrap().count() == 6
    });
}

fn finish() {
    let before = descriptors();
    let mut daemon = Daemon::new();
    let supervisor = Process::of(daemon.supervisor());
    let watchdog = Process::of(supervisor.parent());
    let stubborn = daemon.start(1, shell("trap '' TERM; echo $$; while :; do sleep 1000; done"));
    let quick = daemon.start(2, command("cat", &[]));
    let all = [stubborn.told(), quick.process(), supervisor, watchdog];
    drop((stubborn, quick));
    daemon.spawner.take().expect("not taken").finish();
    assert!(all.iter().all(|process| !process.runs()), "{all:?}");
    assert_eq!(descriptors(), before);
}

fn dropped() {
    let mut daemon = Daemon::new();
    let program = daemon.start(1, shell("sleep 1000"));
    let supervisor = Process::of(daemon.supervisor());
    let all = [program.process(), Process::of(supervisor.parent()), supervisor];
    drop(daemon.spawner.take());
    all_gone(crate::support::GONE_WITHIN, &all);
    until(PATIENCE, "the guard is reaped", || {
        !std::path::Path::new(&format!("/proc/{}", all[1].pid)).exists()
    });
}

fn two() {
    let (mut first, mut second) = (Daemon::new(), Daemon::new());
    assert_ne!(first.supervisor(), second.supervisor());
    let (one, other) = (first.start(1, command("cat", &[])), second.start(1, command("cat", &[])));
    first.kill(&one);
    assert!(other.process().runs());
    drop(first);
    assert!(other.process().runs());
    second.kill(&other);
    second.spawner().start(2, shell("exit 9"));
    let exit = second.report(|report| match report {
        Report::Exited { token: 2, exit } => Ok(exit),
        other => Err(other),
    });
    assert_eq!(exit.status, Status::Code(9));
}
