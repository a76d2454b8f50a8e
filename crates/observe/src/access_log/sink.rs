//! The buffer between the shards and the writer thread. Shards append the lines of a turn, and the writer takes the
//! whole buffer. A shard wakes the writer only if it sleeps, so each write contains more lines as the load rises.
//!
//! ```text
//!   0 ≤ bytes in the buffer ≤ bytes_max
//! ```

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The number of bytes of memory that the buffer keeps. Memory beyond that is freed after a burst.
const KEPT_BYTES: usize = 256 << 10;

/// Lines for the writer thread.
#[derive(Debug, Default)]
pub struct LogBatch {
    /// Complete lines, each with its line end.
    pub bytes: Vec<u8>,
    /// The number of lines.
    pub lines: u64,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    /// The number of lines that could not be written.
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    batch: LogBatch,
    bytes_max: usize,
    sinks: usize,
    /// Whether the source waits for lines.
    is_waiting: bool,
    /// Whether the source must return even without lines.
    is_woken: bool,
    /// Whether the source was dropped.
    source_dropped: bool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, mut waiting: MutexGuard<'_, Waiting>) {
        let is_waiting = mem::take(&mut waiting.is_waiting);
        drop(waiting);
        if is_waiting {
            self.filled.notify_one();
        }
    }
}

/// The end to which shards send lines. The source ends after its last sink is dropped.
#[derive(Debug)]
pub struct LogSink(Arc<Shared>);

/// The end from which the writer thread takes lines.
#[derive(Debug)]
pub struct LogSource(Arc<Shared>);

impl LogSink {
    /// Creates a sink and its source, with a buffer of at most `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> (Self, LogSource) {
        let waiting = Mutex::new(Waiting { bytes_max, sinks: 1, ..Waiting::default() });
        let shared = Arc::new(Shared { waiting, filled: Condvar::new(), lost: AtomicU64::new(0) });
        (Self(Arc::clone(&shared)), LogSource(shared))
    }

    /// Appends lines. Returns `false` if the buffer has no space for them, or if the source was dropped.
    #[must_use]
    pub fn add(&self, batch: &LogBatch) -> bool {
        let mut waiting = self.0.waiting();
        let length = waiting.batch.bytes.len() + batch.bytes.len();
        if waiting.source_dropped || length > waiting.bytes_max {
            return false;
        }
        waiting.batch.bytes.extend_from_slice(&batch.bytes);
        waiting.batch.lines += batch.lines;
        self.0.wake(waiting);
        true
    }

    /// Makes [`LogSource::next`] return even without lines.
    pub fn wake_source(&self) {
        let mut waiting = self.0.waiting();
        waiting.is_woken = true;
        self.0.wake(waiting);
    }

    /// Returns the number of lines that the source could not write.
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
    /// Waits for lines and replaces the content of `batch` with all of them. After [`LogSink::wake_source`] the batch may be
    /// empty. Returns `false` if there are no lines and no sinks.
    pub fn next(&mut self, batch: &mut LogBatch) -> bool {
        batch.bytes.clear();
        batch.bytes.shrink_to(KEPT_BYTES);
        batch.lines = 0;
        let mut waiting = self.0.waiting();
        loop {
            if !waiting.batch.bytes.is_empty() || mem::take(&mut waiting.is_woken) {
                mem::swap(&mut waiting.batch, batch);
                return true;
            }
            if waiting.sinks == 0 {
                return false;
            }
            waiting.is_waiting = true;
            waiting = self.0.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Counts lines that could not be written.
    pub fn lose(&self, lines: u64) {
        self.0.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// Returns the number of lines that could not be written.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }
}

impl Drop for LogSource {
    fn drop(&mut self) {
        self.0.waiting().source_dropped = true;
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
        let is_waiting = || sink.0.waiting().is_waiting;
        for step in 0..2 {
            while !is_waiting() {
                std::thread::yield_now();
            }
            if step == 0 { assert!(sink.add(&batch(b"a\n"))) } else { sink.wake_source() }
        }
        while !is_waiting() {
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
