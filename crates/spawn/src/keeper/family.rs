//! Who descends from whom, and what a program that ended left behind.
//!
//! Everything that programs start stays a descendant of the keeper, whatever it does: when its
//! parent ends it becomes the keeper's child. So "nothing outlives the keeper" needs no book-keeping.
//!
//! "Nothing outlives its program" does: an orphan in a session of its own does not show whose it
//! was. It is killed as soon as no running program could own it:
//! 1. it is in the session of a running program → that one's, kept;
//! 2. it is in the session of one that has just ended → killed;
//! 3. its environment carries the mark of a start by this keeper → kept while that program runs,
//!    else killed;
//! 4. otherwise (it cleared its environment, or is executing just now) → kept while a program runs
//!    that is not younger than it, else killed.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal};

use super::child::MARK;
use super::program::Program;
use crate::process::{Process, children, descendants, own};

/// Signals one process. That it has gone meanwhile is no error; a child's number stays its own
/// until we reap it.
pub(super) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Signals the process group that `pid` leads; none, if it leads none.
pub(super) fn signal_group(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

/// Signals a program: its group, what else is of its session, and itself, should it not yet have
/// made its own.
pub(super) fn signal_session(program: i32, how: Signal) {
    // Looked for first: the dead have no descendants.
    let others = descendants(program).into_iter().chain(children(own()));
    let others: Vec<_> = others
        .filter(|&pid| pid != program)
        .filter(|&pid| session_and_group(pid).is_some_and(|(s, g)| s == program && g != program))
        .collect();
    match Pid::from_raw(program).map(|pid| rustix::process::kill_process_group(pid, how)) {
        Some(Ok(())) | None => {}
        Some(Err(_)) => signal(program, how),
    }
    for pid in others {
        signal(pid, how);
    }
}

fn session_and_group(pid: i32) -> Option<(i32, i32)> {
    let pid = Pid::from_raw(pid)?;
    let session = rustix::process::getsid(Some(pid)).ok()?;
    let group = rustix::process::getpgid(Some(pid)).ok()?;
    Some((session.as_raw_nonzero().get(), group.as_raw_nonzero().get()))
}

/// Kills the orphans that no running program could own. What those leave becomes an orphan in its
/// turn, and their end brings the keeper back here. `ended` are the processes just reaped, since
/// when nothing was started: later another could have the number.
pub(super) fn kill_strays(programs: &HashMap<i32, Program>, ended: &[i32]) {
    let orphans = children(own()).into_iter().filter(|pid| !programs.contains_key(pid));
    for orphan in orphans.filter_map(Process::of) {
        if ended.contains(&orphan.session)
            || is_stray(&orphan, mark(orphan.pid).as_deref(), programs)
        {
            // What descends from a stray is one too. Its group only when it leads one: that number
            // is then its own.
            let descendants = descendants(orphan.pid);
            signal_group(orphan.pid, Signal::KILL);
            for pid in [orphan.pid].into_iter().chain(descendants) {
                signal(pid, Signal::KILL);
            }
        }
    }
}

fn is_stray(orphan: &Process, mark: Option<&str>, programs: &HashMap<i32, Program>) -> bool {
    if programs.contains_key(&orphan.session) {
        return false;
    }
    let keeper = format!("{}.", own());
    match mark.filter(|mark| mark.starts_with(&keeper)) {
        Some(mark) => !programs.values().any(|program| program.mark == mark),
        None => !programs
            .keys()
            .filter_map(|&pid| Process::of(pid))
            .any(|program| program.started <= orphan.started),
    }
}

fn mark(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let variable = environment
        .split(|&byte| byte == 0)
        .find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(variable.to_vec()).ok()
}
