//! The memory that a program uses.

use std::fs;

use crate::supervisor::cgroup;

/// Returns the memory that a program uses now, in bytes; `None` if the process does not exist.
///
/// If the program has its own control group whose memory is counted, the result covers all its processes, otherwise
/// only its first process. A call reads a few files of `/proc`, which takes some ten microseconds. It can wait if another
/// user holds the lock of their directory.
#[must_use]
pub fn resident(pid: u32) -> Option<u64> {
    let group = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok();
    let family = group.as_deref().and_then(cgroup::own_folder);
    family.and_then(|folder| cgroup::memory_in(&folder)).or_else(|| {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_occupies_memory_and_one_that_is_not_there_none() {
        assert!(resident(std::process::id()).unwrap() > 64 << 10);
        assert_eq!(resident(u32::MAX >> 1), None);
    }
}
