//! Signals for programs and their descendants.
//!
//! Every process that a program starts remains a descendant of the supervisor: when its parent ends, it becomes a child
//! of the supervisor. So no list is needed to make sure that no process outlives the supervisor.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::process::{children, descendants, is_active, own};

/// The maximum time until all processes of a family are stopped. Those that are not stopped by then, for example because
/// they may not be signalled, are killed like the others, and the callers repeat the call.
pub(super) const STOP_ALL_MAX: Duration = Duration::from_millis(500);

/// The same for strays. Meanwhile the supervisor starts and reports nothing, so it is short; another search follows.
pub(super) const STOP_STRAYS_MAX: Duration = Duration::from_millis(50);

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
/// processes were killed and reaped one by one. `list` is called again until it returns no new process and every process
/// in it is stopped: a process may fork until its signal arrives, and may continue a process that was stopped before.
/// All processes of a list are signalled before the state of the first is read.
pub(super) fn kill_all_of(max: Duration, list: impl Fn() -> Vec<i32>) {
    let until = Instant::now() + max;
    let mut known = HashSet::new();
    loop {
        let all = list();
        // A process that may not be signalled is not waited for.
        let stopping: Vec<i32> =
            all.iter().copied().filter(|&pid| signal(pid, Signal::STOP)).collect();
        let new = all.iter().filter(|&&pid| known.insert(pid)).count();
        let stopped = new == 0 && !stopping.into_iter().any(is_active);
        if stopped || Instant::now() >= until {
            for pid in all {
                signal(pid, Signal::KILL);
            }
            return;
        }
        std::thread::yield_now();
    }
}

fn session_and_group(pid: i32) -> Option<(i32, i32)> {
    Some((crate::system::process_session(pid).ok()?, crate::system::process_group(pid).ok()?))
}
