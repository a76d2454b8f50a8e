//! Processes of this machine, as `/proc` reports them: identity, children and descendants.

use std::fs;

/// The fields of `/proc/PID/stat` that are used.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: i32,
    pub(crate) session: i32,
    /// Start time in clock ticks since boot (10 ms each).
    pub(crate) started: u64,
}

impl Process {
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses `/proc/PID/stat`. The name, which is the second field, is in parentheses and may contain any character,
    /// so only the text after the last closing parenthesis is split (proc_pid_stat(5)).
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

/// Whether a process can fork: none of its threads has ended, is stopped, or waits in the kernel for an event that no
/// signal interrupts. An unreadable process has ended.
pub(crate) fn is_active(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let stats = threads.flatten().filter_map(|it| fs::read_to_string(it.path().join("stat")).ok());
    stats.filter_map(|stat| state(&stat)).any(|state| !"TtZXxD".contains(state))
}

/// Returns the state in `/proc/PID/stat` (proc_pid_stat(5)).
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

pub(crate) fn own() -> i32 {
    std::process::id().cast_signed()
}

/// Returns the children of all threads of a process, including those that have ended and are not reaped yet. A child
/// that starts or ends during the call may be missed, so callers repeat the call.
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
            // The kernel has no CONFIG_PROC_CHILDREN, or the thread has just ended.
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

/// Returns all descendants of a process.
pub(crate) fn descendants(of: i32) -> Vec<i32> {
    let mut found = children(of);
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children(pid));
        next += 1;
    }
    found
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
    fn a_stopped_process_is_not_active_and_a_running_one_is() {
        assert_eq!(state("7 (a) T (c) S 3 7 5"), Some('S'));
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id().cast_signed();
        assert!(is_active(pid) && is_active(own()));
        let id = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::STOP).unwrap();
        // Returns as soon as the child has stopped.
        rustix::process::waitpid(Some(id), rustix::process::WaitOptions::UNTRACED).unwrap();
        assert!(!is_active(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_active(pid));
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
