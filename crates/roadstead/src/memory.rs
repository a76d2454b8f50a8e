//! The memory limit of the daemon if the configuration does not set one.

use std::fs;
use std::path::Path;

/// Returns `memory_max` as configured, or a default that depends on the system's memory.
#[must_use]
pub(crate) fn memory_max(configured: Option<usize>) -> usize {
    configured.unwrap_or_else(|| default_max(control_group(), total()))
}

/// Returns 80 % of the limit of the control group if it has one, and otherwise half of the memory. If neither is known,
/// there is no limit.
fn default_max(group: Option<u64>, total: Option<u64>) -> usize {
    let group = group.filter(|limit| total.is_none_or(|total| *limit < total));
    let max = group.map(|limit| limit / 5 * 4).or_else(|| total.map(|total| total / 2));
    max.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX)
}

/// Returns the memory of this machine in bytes.
fn total() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the lowest limit of the control groups of this process.
fn control_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().filter_map(|line| {
        let (_, line) = line.split_once(':')?;
        let (controllers, path) = line.split_once(':')?;
        match controllers {
            "" => lowest(Path::new("/sys/fs/cgroup"), path, "memory.max"),
            _ if controllers.split(',').any(|it| it == "memory") => {
                lowest(Path::new("/sys/fs/cgroup/memory"), path, "memory.limit_in_bytes")
            }
            _ => None,
        }
    });
    limits.min()
}

/// Returns the lowest limit in the files of this name, from the group at `path` up to the root. A group without a limit
/// contains `max`.
fn lowest(root: &Path, path: &str, name: &str) -> Option<u64> {
    let group = root.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|it| it.starts_with(root));
    let limits = groups.filter_map(|it| fs::read_to_string(it.join(name)).ok());
    limits.filter_map(|limit| limit.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_the_control_group_comes_first_and_half_of_the_memory_second() {
        assert_eq!(default_max(Some(1000), Some(10_000)), 800);
        assert_eq!(default_max(None, Some(10_000)), 5000);
        assert_eq!(
            default_max(Some(u64::MAX), Some(10_000)),
            5000,
            "as of a group without a limit"
        );
        assert_eq!(default_max(Some(1000), None), 800);
        assert_eq!(default_max(None, None), usize::MAX);
    }

    #[test]
    fn the_lowest_limit_of_nested_groups_counts() {
        let root = std::env::temp_dir().join(format!("roadstead-groups-{}", std::process::id()));
        let inner = root.join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        fs::write(root.join("outer/memory.max"), "4096\n").unwrap();
        fs::write(root.join("memory.max"), "8192\n").unwrap();
        assert_eq!(lowest(&root, "/outer/inner", "memory.max"), Some(4096));
        assert_eq!(lowest(&root, "/", "memory.max"), Some(8192));
        assert_eq!(lowest(&root, "/none", "memory.limit"), None);
        fs::remove_dir_all(&root).unwrap();
    }
}
