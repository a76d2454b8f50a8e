//! The end of everything: no child is left when these return.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::complain::complain;
use super::family;
use crate::process;
use crate::system::{self, Wait};

/// Between two rounds of killing, when those killed have not all ended.
const ROUND: Duration = Duration::from_millis(5);

/// How long to go on killing. Only a process that the kernel holds in a call (a dead network file
/// system) outlasts it, and no signal of ours reaches that one sooner than its own end.
const KILL_MAX: Duration = Duration::from_secs(60);

/// The daemon is gone, and with it every program's input. Lets programs end by themselves for
/// `grace`, asks them for `term`, then kills.
pub(super) fn wind_up(signals: &OwnedFd, grace: Duration, term: Duration) {
    if !gone_within(signals, grace) {
        for pid in process::descendants(std::process::id().cast_signed()) {
            family::signal(pid, Signal::TERM);
            family::signal(pid, Signal::CONT);
        }
        if !gone_within(signals, term) {
            kill_all();
        }
    }
}

/// Reaps for a while; whether no child is left. What dying programs leave behind becomes a child.
fn gone_within(signals: &OwnedFd, limit: Duration) -> bool {
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

/// Kills every child, and every grandchild as it becomes one, until there is none.
pub(super) fn kill_all() {
    let until = Instant::now() + KILL_MAX;
    while Instant::now() < until {
        for pid in process::children(std::process::id().cast_signed()) {
            // Both: a child may be in a group of its own, or not yet.
            family::signal_group(pid, Signal::KILL);
            family::signal(pid, Signal::KILL);
        }
        if reap_all() {
            return;
        }
        wait(&mut [], ROUND);
    }
    complain("the system does not let go of some programs; leaving them");
}

/// Whether no child is left.
fn reap_all() -> bool {
    loop {
        match system::ended_child(false) {
            Wait::Ended(pid) => drop(system::reap(pid)),
            Wait::None => return false,
            Wait::Childless => return true,
        }
    }
}

/// Empties the signal descriptor. What it says is not looked at: signals merge, children are
/// asked.
pub(super) fn clear(signals: &OwnedFd) {
    let mut buffer = [0; 1024];
    while rustix::io::read(signals, &mut buffer).is_ok() {}
}

fn wait(fds: &mut [PollFd<'_>], limit: Duration) {
    // A span of at most a minute fits, and an interrupted wait is a short one.
    if let Ok(limit) = Timespec::try_from(limit) {
        let _ = poll(fds, Some(&limit));
    }
}
