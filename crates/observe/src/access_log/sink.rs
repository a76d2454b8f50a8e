//! Where lines wait for whoever writes them: one buffer, to which shards add what a turn has brought, and
//! which is taken away whole. Whoever adds wakes the other only where it sleeps, so that lines are
//! written in larger pieces the more there are.
//!
//! ```text
//!   0 ≤ bytes that wait ≤ bytes_max
//! ```

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Memory that is kept for lines between two times; what a burst took beyond is given back.
const KEPT_BYTES: usize = 256 << 10;

/// Lines for the thread that writes them.
#[derive(Debug, Default)]
pub struct LogBatch {
    /// Whole lines, each with its end.
    pub bytes: Vec<u8>,
    /// How many they are.
    pub lines: u64,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    /// Lines that could not be written.
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    batch: LogBatch,
    bytes_max: usize,
    sinks: usize,
    /// The source waits for lines.
    asleep: bool,
    /// It is to look up though there may be none.
    roused: bool,
    /// It has gone.
    gone: bool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, mut waiting: MutexGuard<'_, Waiting>) {
        let asleep = mem::take(&mut waiting.asleep);
        drop(waiting);
        if asleep {
            self.filled.notify_one();
        }
    }
}

/// Where a shard sends its lines. The source ends when the last of its sinks is gone.
#[derive(Debug)]
pub struct LogSink(Arc<Shared>);

/// Where lines come from for the thread that writes them.
#[derive(Debug)]
pub struct LogSource(Arc<Shared>);

impl LogSink {
    /// A sink and its source, between which up to `bytes_max` bytes of lines wait.
    #[must_use]
    pub fn new(bytes_max: usize) -> (Self, LogSource) {
        let waiting = Mutex::new(Waiting { bytes_max, sinks: 1, ..Waiting::default() });
        let shared = Arc::new(Shared { waiting, filled: Condvar::new(), lost: AtomicU64::new(0) });
        (Self(Arc::clone(&shared)), LogSource(shared))
    }

    /// Adds lines. False when there is no room for them, or nobody who takes them.
    #[must_use]
    pub fn add(&self, batch: &LogBatch) -> bool {
        let mut waiting = self.0.waiting();
        let length = waiting.batch.bytes.len() + batch.bytes.len();
        if waiting.gone || length > waiting.bytes_max {
            return false;
        }
        waiting.batch.bytes.extend_from_slice(&batch.bytes);
        waiting.batch.lines += batch.lines;
        self.0.wake(waiting);
        true
    }

    /// Has the source look up, though there may be no lines.
    pub fn rouse(&self) {
        let mut waiting = self.0.waiting();
        waiting.roused = true;
        self.0.wake(waiting);
    }

    /// Lines that the source could not write.
    pub(super) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }
}

impl Clone for LogSink {
    fn clone(&self) -> Self {
        self.0.waiting().sinks += 1;
        Self(Arc::clone(&self.0))
    }
}

impl Drop for LogSink {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.sinks -= 1;
        self.0.wake(waiting);
    }
}

impl LogSource {
    /// Waits for lines and takes all that wait in place of what is in `batch`, which may be none where
    /// somebody roused it. False when there are none and will be none.
    pub fn next(&mut self, batch: &mut LogBatch) -> bool {
        batch.bytes.clear();
        batch.bytes.shrink_to(KEPT_BYTES);
        batch.lines = 0;
        let mut waiting = self.0.waiting();
        loop {
            if !waiting.batch.bytes.is_empty() || mem::take(&mut waiting.roused) {
                mem::swap(&mut waiting.batch, batch);
                return true;
            }
            if waiting.sinks == 0 {
                return false;
            }
            waiting.asleep = true;
            waiting = self.0.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Counts lines that could not be written.
    pub fn lose(&self, lines: u64) {
        self.0.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// Lines that could not be written.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }
}

impl Drop for LogSource {
    fn drop(&mut self) {
        self.0.waiting().gone = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(bytes: &[u8]) -> LogBatch {
        LogBatch { bytes: bytes.to_vec(), lines: 1 }
    }

    #[test]
    fn what_waits_is_taken_whole_and_no_more_waits_than_may() {
        let (sink, mut source) = LogSink::new(5);
        let other = sink.clone();
        assert!(sink.add(&batch(b"a\n")) && other.add(&batch(b"b\n")));
        assert!(!sink.add(&batch(b"c\n")), "five bytes may wait");
        let mut taken = LogBatch::default();
        assert!(source.next(&mut taken));
        assert_eq!((&taken.bytes[..], taken.lines), (&b"a\nb\n"[..], 2));
        assert!(sink.add(&batch(b"d\n")), "there is room again");
        drop((sink, other));
        assert!(source.next(&mut taken), "what waits is taken though nobody adds");
        assert_eq!((&taken.bytes[..], taken.lines), (&b"d\n"[..], 1));
        assert!(!source.next(&mut taken));
    }

    #[test]
    fn a_source_that_sleeps_is_woken_by_lines_by_a_call_and_by_the_end() {
        let (sink, mut source) = LogSink::new(100);
        let thread = std::thread::spawn(move || {
            let (mut taken, mut seen) = (LogBatch::default(), Vec::new());
            while source.next(&mut taken) {
                seen.push(taken.lines);
            }
            seen
        });
        let asleep = || sink.0.waiting().asleep;
        for step in 0..2 {
            while !asleep() {
                std::thread::yield_now();
            }
            if step == 0 { assert!(sink.add(&batch(b"a\n"))) } else { sink.rouse() }
        }
        while !asleep() {
            std::thread::yield_now();
        }
        drop(sink);
        assert_eq!(thread.join().expect("it ends"), [1, 0]);
    }

    #[test]
    fn without_a_source_lines_are_refused() {
        let (sink, source) = LogSink::new(100);
        source.lose(3);
        drop(source);
        assert!(!sink.add(&batch(b"a\n")));
        assert_eq!(sink.lost(), 3);
    }
}
