//! `kill -9` of programs, of the daemon, of the supervisor: no acknowledged row is missing or stored twice, no reply
//! reached another client, and within three seconds no process is left.

use std::fs;
use std::path::Path;
use std::time::Duration;

use roadstead::cpu;

use crate::daemon::{
    Daemon, becomes, folder, is_alive, main_job, processes_with, until, worker_program,
};
use crate::times;
use crate::under_load::Load;

/// How long a child may outlive its daemon.
const LEFT_MAX: Duration = Duration::from_secs(3);

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    // The process may have ended meanwhile.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// A main job whose programs carry a mark in their environment.
fn job(folder: &Path, mark: &str, misbehave: &[&str]) -> String {
    let program = worker_program(misbehave);
    let parse = format!(
        "{program}workers = {{ min = 4, max = 8 }}\npipeline = 4\nmin_uptime = \"0s\"\n\
         env = {{ ROADSTEAD_TEST_MARK = \"{mark}\" }}\n"
    );
    main_job(folder, &parse, "")
}

fn mark(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// Returns the supervisor and the watchdog of a daemon.
fn supervisors(daemon: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = cpu::children(daemon).unwrap_or_default();
    while let Some(pid) = next.pop() {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        // No program depends on the reader of the supervisor.
        if line.starts_with(spawn::SUPERVISOR.as_bytes()) && name != b"reader\n" {
            found.push(pid);
            next.extend(cpu::children(pid).unwrap_or_default());
        }
    }
    found
}

#[test]
fn programs_killed_under_load_lose_nothing() {
    let folder = folder();
    let mark = mark("programs");
    let daemon = Daemon::serve(folder.path(), &job(folder.path(), &mark, &[]));
    let count = times(100);
    let load = Load::start(folder.path(), daemon.address());
    until("the load has begun", || {
        daemon.metric("roadstead_requests_finished_total", &["answered"]) > 100
    });
    for round in 0..count {
        let programs = daemon.programs();
        let victim = programs[round as usize % programs.len()];
        let before = daemon.metric("roadstead_requests_finished_total", &["answered"]);
        kill(victim);
        until("it is gone", || !is_alive(victim));
        until("another stands in", || daemon.programs().len() >= 4);
        until("the load goes on", || {
            daemon.metric("roadstead_requests_finished_total", &["answered"]) > before
        });
    }
    let (said, verdict) = load.finish();
    eprintln!("{count} kills\n{said}\n{verdict}");
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.acknowledged > 0);
    assert!(daemon.metric("roadstead_worker_failures_total", &["parse"]) >= u64::from(count));
    assert!(daemon.stop().success());
    assert_eq!(processes_with(&mark), [0; 0]);
}

#[test]
fn the_daemon_killed_under_load_loses_nothing_and_leaves_nobody() {
    let folder = folder();
    let mark = mark("daemon");
    // Each program has a grandchild in a session of its own.
    let configuration = job(folder.path(), &mark, &["--misbehave", "grandchild"]);
    let mut daemon = Daemon::serve(folder.path(), &configuration);
    // The daemon restarts at the same address, as under a service manager.
    let configuration = configuration.replacen(
        "[listener.main]\nlisten = \"127.0.0.1:0\"",
        &format!("[listener.main]\nlisten = \"{}\"", daemon.address()),
        1,
    );
    let count = times(50);
    let load = Load::start(folder.path(), daemon.address());
    for _ in 0..count {
        until("rows are acknowledged", || {
            daemon.metric("roadstead_requests_finished_total", &["store", "answered"]) > 200
        });
        until("programs and their grandchildren run", || processes_with(&mark).len() >= 8);
        daemon.kill();
        assert!(
            becomes(LEFT_MAX, || processes_with(&mark).is_empty()),
            "left behind: {:?}",
            processes_with(&mark)
        );
        daemon = Daemon::serve(folder.path(), &configuration);
    }
    let (said, verdict) = load.finish();
    eprintln!("{count} kills of the daemon\n{said}\n{verdict}");
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.acknowledged > 0 && said["reconnects"].as_u64() > Some(0));
    assert!(daemon.stop().success());
    assert!(becomes(LEFT_MAX, || processes_with(&mark).is_empty()));
}

#[test]
fn the_supervisor_killed_under_load_loses_nothing_and_leaves_nobody() {
    let folder = folder();
    let mark = mark("supervisor");
    let configuration = job(folder.path(), &mark, &["--misbehave", "grandchild"]);
    let daemon = Daemon::serve(folder.path(), &configuration);
    let count = times(20);
    let load = Load::start(folder.path(), daemon.address());
    for round in 0..count {
        let served = daemon.metric("roadstead_requests_finished_total", &["store", "answered"]);
        until("rows are acknowledged", || {
            daemon.metric("roadstead_requests_finished_total", &["store", "answered"]) > served
        });
        let old = processes_with(&mark);
        let supervisors = supervisors(daemon.pid());
        assert!(!supervisors.is_empty(), "the daemon has a supervisor");
        kill(supervisors[round as usize % supervisors.len()]);
        assert!(
            becomes(LEFT_MAX, || old.iter().all(|&pid| !is_alive(pid))),
            "left behind: {:?}",
            old.iter().filter(|&&pid| is_alive(pid)).collect::<Vec<_>>()
        );
        until("programs run again", || {
            daemon.programs().iter().filter(|&&pid| is_alive(pid)).count() >= 4
        });
    }
    let (said, verdict) = load.finish();
    eprintln!("{count} kills of the supervisor\n{said}\n{verdict}");
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.acknowledged > 0);
    assert!(daemon.metric("roadstead_supervisor_restarts_total", &[]) >= u64::from(count));
    assert!(daemon.stop().success());
    assert!(becomes(LEFT_MAX, || processes_with(&mark).is_empty()));
}
