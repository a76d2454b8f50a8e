//! Processes of this machine, as `/proc` reports them: identity, children and descendants.

use std::fs;

/// Returns the time when a process started, in clock ticks since boot (10 ms each).
pub(crate) fn started(pid: i32) -> Option<u64> {
    started_in(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns the start time in `/proc/PID/stat`. The name, which is the second field, is in parentheses and may contain
/// any byte except NUL, so only the text after the last closing parenthesis is split (proc_pid_stat(5)).
fn started_in(stat: &[u8]) -> Option<u64> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Returns a line of `/proc/PID/status` without its name. The name of the process, in another line of this file, may
/// contain any byte except NUL; the kernel escapes line ends in it.
fn status(pid: i32, line: &str) -> Option<String> {
    status_in(&fs::read(format!("/proc/{pid}/status")).ok()?, line)
}

fn status_in(status: &[u8], line: &str) -> Option<String> {
    let of_line =
        |it: &[u8]| it.strip_prefix(line.as_bytes())?.strip_prefix(b":").map(<[u8]>::to_vec);
    let found = status.split(|&byte| byte == b'\n').find_map(of_line)?;
    Some(String::from_utf8(found).ok()?.trim().to_owned())
}

fn parent(pid: i32) -> Option<i32> {
    status(pid, "PPid")?.parse().ok()
}

/// Returns the real, effective, saved and file system user ids of a process.
pub(crate) fn users(pid: i32) -> Option<Vec<u32>> {
    status(pid, "Uid")?.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
}

/// Returns the session of a process, also after it has ended, until it is reaped. It is 0 if its leader is outside this
/// PID namespace, as in a container that was entered.
pub(crate) fn session(pid: i32) -> Option<i32> {
    crate::system::process_session(pid).ok()
}

/// Whether a process can fork: none of its threads has ended, is stopped, or waits in the kernel for an event that no
/// signal interrupts. An unreadable process has ended.
pub(crate) fn is_active(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let statuses = threads.flatten().filter_map(|it| fs::read(it.path().join("status")).ok());
    statuses.filter_map(|status| state(&status)).any(|state| !"TtZXxD".contains(state))
}

/// Returns the state in `/proc/PID/status` (proc_pid_status(5)).
fn state(status: &[u8]) -> Option<char> {
    status_in(status, "State")?.chars().next()
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
        .filter(|&pid| parent(pid) == Some(of))
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
        let stat = b"7 (a) R 1 1 1 (\xff) S 3 7 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9876 1 2";
        assert_eq!(started_in(stat), Some(9876));
        assert_eq!(started_in(b"7 (cut) S 3"), None);
    }

    #[test]
    fn a_name_that_is_not_text_hides_no_line_of_the_status() {
        let status = b"Name:\t\xffPPid:\t1\\nPPid:\t2\nState:\tT (stopped)\nPPid:\t4\nUid:\t1\t2\n";
        assert_eq!(status_in(status, "PPid").as_deref(), Some("4"));
        assert_eq!(status_in(status, "Uid").as_deref(), Some("1\t2"));
        assert_eq!((status_in(status, "Pid"), state(status)), (None, Some('T')));
    }

    #[test]
    fn a_stopped_process_is_not_active_and_a_running_one_is() {
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
        // Its name is not text.
        let mut child = std::process::Command::new("sh")
            .args(["-c", "printf 'a) R 1\\377' > /proc/$$/comm; echo; read a"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        assert!(started(pid).is_some() && is_active(pid) && session(pid) == session(own()));
        assert!(children(own()).contains(&pid));
        assert!(children_by_search(own()).contains(&pid));
        assert!(descendants(own()).contains(&pid));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
