//! What the kernel says of running processes, from `/proc`, and what it allows this one.

use crate::shell::{self, Failure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::fs::{self, ReadDir};
use std::path::Path;

/// CPU time of all threads of a process that live now, in nanoseconds (the first number of
/// `schedstat`; the clock of `/proc/PID/stat` ticks far too slowly).
pub(super) fn cpu_ns(process: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    for thread in threads(process)?.flatten() {
        // A thread that ended between the listing and the reading takes its time with it.
        if let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) {
            sum += number(text.split(' ').next()).unwrap_or(0);
        }
    }
    Ok(sum)
}

/// The sum over several processes.
pub(super) fn sum(
    processes: &[u32],
    of: impl Fn(u32) -> Result<u64, Failure>,
) -> Result<u64, Failure> {
    processes.iter().map(|process| of(*process)).sum()
}

/// CPU time of these processes while `work` is done, in microseconds, with what that gives.
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

/// What the kernel says of a process in one of its files.
fn said(process: u32, file: &str) -> Result<String, Failure> {
    shell::read(Path::new(&format!("/proc/{process}/{file}")))
}

/// The number behind a word at the beginning of a line.
fn behind(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    number(line.trim().split(' ').next())
}

/// The processors of the machine: also for a bench that runs on one of them only.
pub(super) fn processors() -> usize {
    let listed = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    listed.lines().filter(|line| line.starts_with("processor")).count()
}

/// Bytes of anonymous memory that a process has resident.
pub(super) fn memory(process: u32) -> Result<u64, Failure> {
    let kib = behind(&said(process, "status")?, "RssAnon:");
    kib.map(|kib| kib * 1024).ok_or_else(|| Failure::new("no RssAnon in /proc/PID/status"))
}

/// Ticks of the clock that a process has spent outside the kernel, and within.
pub(super) fn user_and_system(process: u32) -> Result<[u64; 2], Failure> {
    let text = said(process, "stat")?;
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut ticks = rest.split_whitespace().skip(11).map(|word| number(Some(word)));
    match (ticks.next().flatten(), ticks.next().flatten()) {
        (Some(user), Some(system)) => Ok([user, system]),
        _ => Err(Failure::new("no times in /proc/PID/stat")),
    }
}

/// CPU time that all processors together have spent on anything, in nanoseconds, to a tick of 10 ms.
pub(super) fn busy_ns() -> Result<u64, Failure> {
    let text = shell::read(Path::new("/proc/stat"))?;
    let ticks = busy_ticks(&text).ok_or_else(|| Failure::new("no times in /proc/stat"))?;
    Ok(ticks * 10_000_000)
}

/// user, nice, system, idle, iowait, irq, softirq, steal: all but the two in which nothing runs.
fn busy_ticks(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let busy = [0, 1, 2, 5, 6, 7].map(|place| ticks.get(place).copied());
    busy.into_iter().sum()
}

/// How often the threads of a process that live now went to sleep, or were made to wait.
pub(super) fn switches(process: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    for thread in threads(process)?.flatten() {
        let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let counts = text.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
        sum += counts.filter_map(|(_, count)| number(Some(count))).sum::<u64>();
    }
    Ok(sum)
}

/// Whether somebody traces a process.
pub(super) fn is_traced(process: u32) -> bool {
    let text = said(process, "status").unwrap_or_default();
    behind(&text, "TracerPid:").is_some_and(|tracer| tracer != 0)
}

/// Bytes that a process has written so far, to anything.
pub(super) fn written(process: u32) -> Result<u64, Failure> {
    let written = behind(&said(process, "io")?, "wchar:");
    written.ok_or_else(|| Failure::new("no wchar in /proc/PID/io"))
}

/// How many descriptors a process has open.
pub(super) fn descriptors(process: u32) -> Result<usize, Failure> {
    let folder = format!("/proc/{process}/fd");
    let failed = Failure::at(&folder);
    // Linux gives the count as the folder's size since 6.2, which saves listing thousands of them.
    match fs::metadata(&folder).map_err(&failed)?.len() {
        0 => Ok(fs::read_dir(&folder).map_err(&failed)?.count()),
        count => usize::try_from(count).map_err(Failure::at(&folder)),
    }
}

/// All processes below this one.
pub(super) fn descendants(process: u32) -> Vec<u32> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        if let Some((id, parent)) = id.zip(parent(&entry.path())) {
            parents.insert(id, parent);
        }
    }
    below(process, &parents)
}

fn below(process: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut found = vec![process];
    let mut next = 0;
    while let Some(&one) = found.get(next) {
        found.extend(parents.iter().filter(|&(_, &parent)| parent == one).map(|(&id, _)| id));
        next += 1;
    }
    found.remove(0);
    found
}

fn parent(folder: &Path) -> Option<u32> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    // "12 (a name) S 7 …": a name may hold anything, so what follows its last parenthesis counts.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// The words with which a process was started.
pub(super) fn words(process: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).split_terminator('\0').map(str::to_owned).collect()
}

fn number(text: Option<&str>) -> Option<u64> {
    text?.trim().parse().ok()
}

/// A thousand connections need more descriptors than the usual soft limit of 1024; the peer, which
/// does not raise it itself, inherits ours.
pub(super) fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // When it may not be raised the load says so, with the number of connections that it got.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

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
    fn a_child_is_a_descendant() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let found = descendants(std::process::id());
        drop(child.stdin.take());
        let id = child.id();
        child.wait().unwrap();
        assert!(found.contains(&id), "{id} is not among {found:?}");
    }

    #[test]
    fn grandchildren_are_found_and_strangers_are_not() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (9, 8)]);
        assert_eq!(below(2, &parents), [3, 4]);
        assert!(below(5, &parents).is_empty());
    }
}
