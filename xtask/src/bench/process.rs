//! Data of the kernel about running processes, from `/proc`, and limits of this process.

use crate::hang::children;
use crate::shell::{self, Failure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{self, ReadDir};
use std::path::Path;

/// Returns the CPU time of all live threads of a process in nanoseconds (the first number of `schedstat`; the clock of
/// `/proc/PID/stat` ticks far too slowly).
pub(super) fn cpu_ns(process: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    for thread in threads(process)?.flatten() {
        // The time of a thread that ended between the listing and the reading is lost.
        if let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) {
            sum += number(text.split(' ').next()).unwrap_or(0);
        }
    }
    Ok(sum)
}

/// Returns the sum over several processes.
pub(super) fn sum(
    processes: &[u32],
    of: impl Fn(u32) -> Result<u64, Failure>,
) -> Result<u64, Failure> {
    processes.iter().map(|process| of(*process)).sum()
}

/// Returns the CPU time in µs of these processes during `work`, and the result of `work`.
pub(super) fn cpu_us<T>(
    processes: &[u32],
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<(f64, T), Failure> {
    let before = sum(processes, cpu_ns)?;
    let given = work()?;
    Ok(((sum(processes, cpu_ns)? - before) as f64 / 1e3, given))
}

fn threads(process: u32) -> Result<ReadDir, Failure> {
    let folder = format!("/proc/{process}/task");
    fs::read_dir(&folder).map_err(Failure::at(folder))
}

/// Reads one of the files of a process.
fn said(process: u32, file: &str) -> Result<String, Failure> {
    shell::read(Path::new(&format!("/proc/{process}/{file}")))
}

/// Returns the number after a word at the beginning of a line.
fn behind(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    number(line.trim().split(' ').next())
}

/// Returns the number of processors of the machine, also if the benchmark runs on only one of them.
pub(super) fn processors() -> usize {
    let listed = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    listed.lines().filter(|line| line.starts_with("processor")).count()
}

/// Returns the resident anonymous memory of a process in bytes.
pub(super) fn memory(process: u32) -> Result<u64, Failure> {
    let kib = behind(&said(process, "status")?, "RssAnon:");
    kib.map(|kib| kib * 1024).ok_or_else(|| Failure::new("no RssAnon in /proc/PID/status"))
}

/// Returns the clock ticks that a process has spent in user space, and in the kernel.
pub(super) fn user_and_system(process: u32) -> Result<[u64; 2], Failure> {
    let text = said(process, "stat")?;
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut ticks = rest.split_whitespace().skip(11).map(|word| number(Some(word)));
    match (ticks.next().flatten(), ticks.next().flatten()) {
        (Some(user), Some(system)) => Ok([user, system]),
        _ => Err(Failure::new("no times in /proc/PID/stat")),
    }
}

/// Returns the CPU time of all processors in nanoseconds, with a resolution of 10 ms.
pub(super) fn busy_ns() -> Result<u64, Failure> {
    let text = shell::read(Path::new("/proc/stat"))?;
    let ticks = busy_ticks(&text).ok_or_else(|| Failure::new("no times in /proc/stat"))?;
    Ok(ticks * 10_000_000)
}

/// The fields are user, nice, system, idle, iowait, irq, softirq, steal. All count except idle and iowait.
fn busy_ticks(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let busy = [0, 1, 2, 5, 6, 7].map(|place| ticks.get(place).copied());
    busy.into_iter().sum()
}

/// Returns the number of voluntary and involuntary context switches of the live threads of a process.
pub(super) fn switches(process: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    for thread in threads(process)?.flatten() {
        let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let counts = text.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        sum += counts.filter_map(|(_, count)| number(Some(count))).sum::<u64>();
    }
    Ok(sum)
}

/// Returns whether a process is traced.
pub(super) fn is_traced(process: u32) -> bool {
    let text = said(process, "status").unwrap_or_default();
    behind(&text, "TracerPid:").is_some_and(|tracer| tracer != 0)
}

/// Returns the bytes that a process has written so far, to any file.
pub(super) fn written(process: u32) -> Result<u64, Failure> {
    let written = behind(&said(process, "io")?, "wchar:");
    written.ok_or_else(|| Failure::new("no wchar in /proc/PID/io"))
}

/// Returns the number of open descriptors of a process.
pub(super) fn descriptors(process: u32) -> Result<usize, Failure> {
    let folder = format!("/proc/{process}/fd");
    let failed = Failure::at(&folder);
    // Since 6.2, Linux reports the count as the size of the folder, which avoids listing thousands of entries.
    match fs::metadata(&folder).map_err(&failed)?.len() {
        0 => Ok(fs::read_dir(&folder).map_err(&failed)?.count()),
        count => usize::try_from(count).map_err(Failure::at(&folder)),
    }
}

/// Returns all descendants of this process.
pub(super) fn descendants(process: u32) -> Vec<u32> {
    let mut found = children(process);
    let mut next = 0;
    while let Some(&one) = found.get(next) {
        found.extend(children(one));
        next += 1;
    }
    found
}

/// Returns the command line of a process.
pub(super) fn words(process: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).split_terminator('\0').map(str::to_owned).collect()
}

fn number(text: Option<&str>) -> Option<u64> {
    text?.trim().parse().ok()
}

/// Raises the soft limit of descriptors, because a thousand connections need more than the usual 1024. The peer, which
/// does not raise it, inherits our limit.
pub(super) fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // If the limit cannot be raised, the load reports it with the number of its connections.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    #[test]
    fn the_kernel_tells_about_ourselves() {
        let me = std::process::id();
        assert!(cpu_ns(me).unwrap() > 0);
        assert!(descriptors(me).unwrap() >= 3);
        assert!(written(me).is_ok());
        assert!(!words(me).is_empty());
    }

    #[test]
    fn idle_time_is_not_busy_time() {
        let text =
            "cpu  1 20 300 4000 50000 600000 7000000 80000000 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_ticks(text), Some(87_600_321));
        assert_eq!(busy_ticks("cpu  1 2 3\n"), None);
        assert!(busy_ns().unwrap() > 0);
    }

    #[test]
    fn children_and_grandchildren_are_descendants() {
        // The shell prints the id of its own child, which ends with the input.
        let mut shell = shell::command("sh", ["-c", "exec 3<&0; cat <&3 & echo $!; wait"]);
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let found = descendants(std::process::id());
        drop(child.stdin.take());
        let (id, grandchild) = (child.id(), line.trim().parse().unwrap());
        child.wait().unwrap();
        assert!([id, grandchild].iter().all(|it| found.contains(it)), "{id}, {line}: {found:?}");
    }
}
