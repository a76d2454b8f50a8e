//! Reports what a hanging test binary was doing, and kills it.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

/// Kills the children of this process. Returns a description of each of their threads. A thread that runs a test has
/// the name of the test.
pub(crate) fn end_children(pid: u32) -> String {
    let mut said = String::new();
    for child in children(pid) {
        tell(child, 1, &mut said);
        // The process may have ended meanwhile.
        let _ = Command::new("kill").args(["-s", "KILL", &child.to_string()]).status();
    }
    said
}

/// Describes a process, its threads, and the processes that it waits for.
fn tell(pid: u32, depth: usize, said: &mut String) {
    let indent = "  ".repeat(depth);
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let _ = writeln!(said, "{indent}process {pid}: {}", command.trim_end());
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for thread in threads {
        let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let (name, at) = (read("comm"), read("wchan"));
        let _ = writeln!(said, "{indent}  thread {}: in {at}", name.trim_end());
    }
    for child in children(pid) {
        tell(child, depth + 1, said);
    }
}

/// Returns the children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists =
        threads.map(|it| fs::read_to_string(it.path().join("children")).unwrap_or_default());
    lists
        .flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<u32>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_told_of_and_ended() {
        let mut parent = Command::new("sh").args(["-c", "sleep 3600; exit 0"]).spawn().unwrap();
        // A child has its own name only after exec.
        let is_sleep = |pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|it| it.starts_with(b"sleep\0"))
        };
        while !children(parent.id()).iter().any(is_sleep) {
            std::thread::yield_now();
        }
        let said = end_children(parent.id());
        assert!(said.contains("sleep 3600") && said.contains("  thread "), "{said}");
        assert!(parent.wait().unwrap().success());
    }
}
