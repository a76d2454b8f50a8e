//! Reads the CPU time of other processes, which the kernel counts in nanoseconds.

use std::fs;
use std::io;
use std::time::Duration;

/// Returns the CPU time of all threads of a process, except those that have ended.
///
/// # Errors
/// There is no such process.
pub fn of_process(pid: u32) -> io::Result<Duration> {
    let mut total = 0_u64;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end after it was listed and before it is read.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let run = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        total += run.unwrap_or(0);
    }
    Ok(Duration::from_nanos(total))
}

/// Returns the direct children of a process.
///
/// # Errors
/// There is no such process.
pub fn children(pid: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let Ok(text) = fs::read_to_string(task?.path().join("children")) else { continue };
        found.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    Ok(found)
}

/// Returns the CPU time of a daemon and its supervisor processes, without the programs.
///
/// # Errors
/// There is no such process.
pub fn of_daemon(pid: u32) -> io::Result<Duration> {
    let mut total = of_process(pid)?;
    let mut supervisors = children(pid)?;
    while let Some(child) = supervisors.pop() {
        if is_supervisor(child) {
            total += of_process(child).unwrap_or_default();
            supervisors.extend(children(child).unwrap_or_default());
        }
    }
    Ok(total)
}

/// Returns whether a process is a supervisor. Its name is one that no program of a pool has.
fn is_supervisor(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
        line.split(|&byte| byte == 0).next() == Some(spawn::SUPERVISOR.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_is_seen_to() {
        let pid = std::process::id();
        let before = of_process(pid).unwrap();
        let work = || std::hint::black_box((0..100_000).fold(1, |a: u64, b| a.wrapping_mul(b | 1)));
        // The time is read once per iteration, because threads of other tests end meanwhile and their time is lost.
        let seen = (0..100_000).any(|_| {
            work();
            of_process(pid).unwrap() > before
        });
        assert!(seen, "{before:?}");
    }
}
