//! Processors: which of them a thread may use, and how a thread stays on one.
//!
//! What it is: two functions for the calling thread. What it must never depend on: the placement of workers, which the
//! settings of a pool decide.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Returns the processors on which the calling thread may run, in ascending order. Empty if the kernel does not report
/// them.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Binds the calling thread to the processor on which it runs, and returns that processor. `None` if the kernel rejects
/// it.
///
/// A program that receives one small message at a time replies faster on the processor of its client, because waking it
/// on another processor takes longer than processing the message.
#[must_use]
pub fn pin_to_current_cpu() -> Option<usize> {
    let here = sched_getcpu();
    let mut only = CpuSet::new();
    only.set(here);
    sched_setaffinity(None, &only).ok()?;
    Some(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_said_it_would() {
        // On a separate thread, so that the other threads of this process may still run on any processor.
        std::thread::spawn(|| {
            let before = allowed_cpus();
            let here = pin_to_current_cpu().expect("a thread may narrow its own set");
            assert!(before.contains(&here));
            assert_eq!(allowed_cpus(), [here]);
            assert_eq!(pin_to_current_cpu(), Some(here));
        })
        .join()
        .unwrap();
    }
}
