//! Descendants of programs, and the processes that an ended program left behind.
//!
//! Every process that a program starts remains a descendant of the supervisor: when its parent ends, it becomes a child
//! of the supervisor. So no list is needed to make sure that no process outlives the supervisor.
//!
//! To make sure that no process outlives its program, a rule is needed: an orphan in another session does not show
//! which program started it. An orphan is killed as soon as no running program can be its origin:
//! 1. it is in the session of a running program → it belongs to that program and is kept;
//! 2. it is in the session of a program that has just ended → killed;
//! 3. its environment contains the mark of a start by this supervisor → kept while that program runs, otherwise killed;
//! 4. otherwise (it cleared its environment, or is in the middle of execve) → kept while a program runs that started no
//!    later than it, otherwise killed.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::child::START_MARK;
use super::program::Program;
use crate::process::{children, descendants, is_active, own, session, started};

/// The maximum time until all processes of a family are stopped. Those that are not stopped by then, for example because
/// they may not be signalled, are killed like the others, and the callers repeat the call.
pub(super) const STOP_ALL_MAX: Duration = Duration::from_millis(500);

/// The same for strays. Meanwhile the supervisor starts and reports nothing, so it is short; another search follows.
const STOP_STRAYS_MAX: Duration = Duration::from_millis(50);

/// The maximum number of bytes that are read of an environment. A process may set the range of memory that its
/// environment file shows (PR_SET_MM_MAP), so this file can have many gigabytes. An honest environment is not much longer
/// than [`COMMAND_BYTES_MAX`](crate::COMMAND_BYTES_MAX).
const ENVIRONMENT_BYTES_MAX: u64 = 256 * 1024;

/// The maximum length of a mark: a process id, a point and the number of a start.
const MARK_BYTES_MAX: usize = 32;

/// Sends a signal to one process. It is no error if the process has ended: the id of a child is not reused until the
/// child is reaped. Returns whether this process may signal it.
pub(super) fn signal(pid: i32, signal: Signal) -> bool {
    let sent = Pid::from_raw(pid).map(|pid| rustix::process::kill_process(pid, signal));
    sent != Some(Err(Errno::PERM))
}

/// Sends a signal to the process group that `pid` leads, if it leads one.
pub(super) fn signal_group(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

/// Sends a signal to a program: to its group, to the other processes of its session, and to the process itself if it
/// has not created its group yet. Returns whether this process may signal the program.
pub(super) fn signal_session(program: i32, how: Signal) -> bool {
    // Listed before the signal, because an ended process has no descendants.
    let others = descendants(program).into_iter().chain(children(own()));
    let others: Vec<_> = others
        .filter(|&pid| pid != program)
        .filter(|&pid| session_and_group(pid).is_some_and(|(s, g)| s == program && g != program))
        .collect();
    let group = Pid::from_raw(program).map(|pid| rustix::process::kill_process_group(pid, how));
    for pid in others {
        signal(pid, how);
    }
    match group {
        // For a group, the kernel reports an error only if it may signal none of its processes.
        Some(Ok(())) if how != Signal::KILL => true,
        _ => signal(program, how),
    }
}

/// Kills all processes that `list` returns, at the latest after `max` and one more listing.
///
/// All are stopped before the first is killed. A killed process makes room for another under the process limit of its
/// user, so a chain of processes whose last one forks at every opportunity would renew itself for as long as its
/// processes were killed and reaped one by one. `list` is called again until every process in it is stopped: a process
/// may fork until its signal arrives, and may continue a process that was stopped before.
pub(super) fn kill_all_of(max: Duration, list: impl Fn() -> Vec<i32>) {
    let until = Instant::now() + max;
    loop {
        let all = list();
        let active = all.iter().filter(|&&pid| is_active(pid));
        // A process that may not be signalled is not waited for.
        let stopping = active.filter(|&&pid| signal(pid, Signal::STOP)).count();
        if stopping == 0 || Instant::now() >= until {
            for pid in all {
                signal(pid, Signal::KILL);
            }
            return;
        }
        std::thread::yield_now();
    }
}

fn session_and_group(pid: i32) -> Option<(i32, i32)> {
    let pid = Pid::from_raw(pid)?;
    let session = rustix::process::getsid(Some(pid)).ok()?;
    let group = rustix::process::getpgid(Some(pid)).ok()?;
    Some((session.as_raw_nonzero().get(), group.as_raw_nonzero().get()))
}

/// Kills the orphans that no running program can have started. Children of those become orphans in turn, and the end of
/// the killed processes causes the next call. `ended` are the processes that were just reaped. No program was started
/// since, so their ids are not reused yet.
pub(super) fn kill_strays(programs: &HashMap<i32, Program>, ended: &[i32]) {
    let orphans = children(own()).into_iter().filter(|pid| !programs.contains_key(pid));
    let is_stray = |&orphan: &i32| {
        session(orphan).is_some_and(|session| {
            ended.contains(&session)
                || !programs.contains_key(&session) && is_stray(orphan, programs)
        })
    };
    let strays: Vec<i32> = orphans.filter(is_stray).collect();
    if strays.is_empty() {
        return;
    }
    // All descendants of a stray are strays. A group is signalled only if the orphan leads it, because only then the
    // number belongs to the orphan. All strays are stopped together: they may continue each other.
    strays.iter().for_each(|&pid| signal_group(pid, Signal::STOP));
    kill_all_of(STOP_STRAYS_MAX, || {
        strays.iter().flat_map(|&pid| descendants(pid).into_iter().chain([pid])).collect()
    });
    strays.iter().for_each(|&pid| signal_group(pid, Signal::KILL));
}

fn is_stray(orphan: i32, programs: &HashMap<i32, Program>) -> bool {
    let supervisor = format!("{}.", own());
    match mark(orphan).filter(|mark| mark.starts_with(&supervisor)) {
        Some(mark) => !programs.values().any(|program| program.mark == mark),
        None => started(orphan).is_some_and(|orphan| {
            !programs.keys().filter_map(|&pid| started(pid)).any(|program| program <= orphan)
        }),
    }
}

/// Returns the mark in the environment of a process. A program has it at the start of its environment.
fn mark(pid: i32) -> Option<String> {
    mark_in(fs::File::open(format!("/proc/{pid}/environ")).ok()?)
}

fn mark_in(environment: impl Read) -> Option<String> {
    let variables = BufReader::new(environment.take(ENVIRONMENT_BYTES_MAX)).split(0);
    variables.map_while(Result::ok).find_map(|variable| {
        let mark = variable.strip_prefix(START_MARK.as_bytes())?.strip_prefix(b"=")?;
        (mark.len() <= MARK_BYTES_MAX).then(|| String::from_utf8(mark.to_vec()).ok())?
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_environment_without_end_is_read_up_to_a_limit() {
        let marked = |name: &str| format!("{name}=7.1\0").into_bytes();
        let endless = |first: &[u8]| [first, b"A=B\0"].concat();
        let first = endless(&marked(START_MARK));
        assert_eq!(mark_in(first.chain(io::repeat(b'x'))).as_deref(), Some("7.1"));
        let mut rest = io::repeat(0).take(ENVIRONMENT_BYTES_MAX * 4);
        assert_eq!(mark_in(endless(&marked("OTHER")).chain(&mut rest)), None);
        // The reader of the buffer may have read a few more bytes than were used.
        assert!(rest.limit() >= ENVIRONMENT_BYTES_MAX * 3, "{} left", rest.limit());
        let long = format!("{START_MARK}={}\0", "7".repeat(MARK_BYTES_MAX + 1));
        assert_eq!(mark_in(long.as_bytes()), None);
    }
}
