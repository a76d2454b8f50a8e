//! Ends all children of the process.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::family;
use super::report_error::report_error;
use crate::process;
use crate::system::{self, Wait};

/// The delay between two rounds of killing, while some killed processes have not ended.
const ROUND: Duration = Duration::from_millis(5);

/// How long killing is repeated. Only a process that is blocked in the kernel (for example by an unreachable network
/// file system) takes longer. No signal can end such a process before its system call returns.
const KILL_MAX: Duration = Duration::from_secs(60);

/// Ends all programs after the daemon has ended, which also closed the input of every program. Programs may end by
/// themselves within `stop_timeout`. Then they receive SIGTERM, and after `term` they are killed.
pub(super) fn stop_all(signals: &OwnedFd, grace: Duration, term: Duration) {
    if !ended_within(signals, grace) {
        for pid in process::descendants(process::own()) {
            family::signal(pid, Signal::TERM);
            family::signal(pid, Signal::CONT);
        }
        if !ended_within(signals, term) {
            kill_all();
        }
    }
}

/// Reaps children until `limit` has passed. Returns whether no child is left. Orphans of ended programs become children
/// of this process.
fn ended_within(signals: &OwnedFd, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    loop {
        if reap_all() {
            return true;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        wait(&mut [PollFd::new(signals, PollFlags::IN)], left);
        clear(signals);
    }
}

/// Kills all descendants, repeatedly, until no child is left.
pub(super) fn kill_all() {
    let until = Instant::now() + KILL_MAX;
    while Instant::now() < until {
        // None is reaped before all have received the signal.
        family::kill_all_of(family::STOP_ALL_MAX, || process::descendants(process::own()));
        if reap_all() {
            return;
        }
        wait(&mut [], ROUND);
    }
    report_error("the system does not let go of some programs; leaving them");
}

/// Reaps all ended children. Returns whether no child is left.
fn reap_all() -> bool {
    loop {
        match system::ended_child(false) {
            Wait::Ended(pid) => drop(system::reap(pid)),
            Wait::None => return false,
            Wait::Childless => return true,
        }
    }
}

/// Empties the signal descriptor. Its contents are ignored because signals merge; the ended children are found with
/// `waitid`.
pub(super) fn clear(signals: &OwnedFd) {
    let mut buffer = [0; 1024];
    while rustix::io::read(signals, &mut buffer).is_ok() {}
}

fn wait(fds: &mut [PollFd<'_>], limit: Duration) {
    // A duration of at most one minute is valid here. An interrupted wait is only shorter.
    if let Ok(limit) = Timespec::try_from(limit) {
        let _ = poll(fds, Some(&limit));
    }
}
