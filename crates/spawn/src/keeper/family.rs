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

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, Eq, PartialEq)]
struct Process {
    pid: i32,
    parent: i32,
    session: i32,
    /// In ticks since the machine started (10 ms each).
    started: u64,
}

impl Process {
    fn of(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name, second and in parentheses, may itself hold anything: only what follows its last
    /// parenthesis is split (proc_pid_stat(5)).
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let (_, tail) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

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

fn own() -> i32 {
    std::process::id().cast_signed()
}

/// The children of a process, of all its threads, those included that have ended and are not
/// reaped. One that comes or goes meanwhile may be missed; callers come again.
pub(crate) fn children(of: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => {
                found.extend(
                    list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()),
                );
            }
            // A kernel without CONFIG_PROC_CHILDREN, or the thread has just ended.
            Err(_) => return children_by_search(of),
        }
    }
    found
}

fn children_by_search(of: i32) -> Vec<i32> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Process::of)
        .filter(|process| process.parent == of)
        .map(|process| process.pid)
        .collect()
}

/// All that descend from a process.
pub(super) fn descendants(of: i32) -> Vec<i32> {
    let mut found = children(of);
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children(pid));
        next += 1;
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 3 7 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9876 1 2";
        let process = Process::parse(7, stat).unwrap();
        assert_eq!(process, Process { pid: 7, parent: 3, session: 5, started: 9876 });
        assert_eq!(Process::parse(7, "7 (cut) S 3"), None);
    }

    #[test]
    fn both_ways_to_find_children_agree() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        assert!(children(own()).contains(&pid));
        assert!(children_by_search(own()).contains(&pid));
        assert!(descendants(own()).contains(&pid));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
