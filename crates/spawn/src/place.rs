//! Processors: which there are for us, and staying on one.
//!
//! What it is: two questions to the kernel about the calling thread. What it must never know: who
//! is to run where; a pool's settings say that.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processors that the calling thread may run on, in their order; empty when the kernel does
/// not say.
#[must_use]
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Keeps the calling thread on the processor that it is on, and says which; `None` when the kernel
/// refuses.
///
/// A program that is handed one small message at a time answers sooner on the very processor of
/// who asks: to wake it on another costs more than the message.
#[must_use]
pub fn stay_here() -> Option<usize> {
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
        // On a thread of its own: the others of this process go on running anywhere.
        std::thread::spawn(|| {
            let before = allowed();
            let here = stay_here().expect("a thread may narrow its own set");
            assert!(before.contains(&here));
            assert_eq!(allowed(), [here]);
            assert_eq!(stay_here(), Some(here));
        })
        .join()
        .unwrap();
    }
}
