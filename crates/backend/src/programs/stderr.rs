//! The standard error of a program. It is always read, and logged line by line up to a limit per second.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use event::{Context, Data, StreamId};
use wire::lines::{Lines, Piece};

use flow::backend_event::BackendEvent;
use observe::printable::printable;

/// The maximum number of bytes of a line in the log.
const LINE_MAX: usize = 4096;
/// The maximum number of lines per second that are logged for one program.
const LINES_A_SECOND: u32 = 50;
/// The number of last bytes that are kept.
const TAIL_MAX: usize = 8 << 10;
const WINDOW: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Stderr {
    stream: Option<StreamId>,
    lines: Lines,
    window: Option<Instant>,
    written: u32,
    tail: VecDeque<u8>,
    /// The total number of bytes received.
    received: u64,
    /// Bytes of the stream that were offered and not consumed. They are offered again.
    held: usize,
}

impl Default for Stderr {
    fn default() -> Self {
        Self {
            stream: None,
            lines: Lines::new(LINE_MAX),
            window: None,
            written: 0,
            tail: VecDeque::new(),
            received: 0,
            held: 0,
        }
    }
}

impl Stderr {
    pub(super) fn open(&mut self, stream: StreamId) {
        self.stream = Some(stream);
    }

    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        worker: &str,
        data: &mut Data<'_>,
        events: &mut Vec<BackendEvent>,
    ) {
        let bytes = data.bytes();
        self.keep(&bytes[self.held.min(bytes.len())..]);
        let mut from = 0;
        while let Some(piece) = self.lines.next(bytes, &mut from) {
            let line = match piece {
                Piece::Line(range) => &bytes[range],
                Piece::TooLong => b"(a line that is too long for the log)",
            };
            self.log(now, worker, line, events);
        }
        let shown = bytes.len();
        if data.is_last() && from < shown {
            self.log(now, worker, &bytes[from..], events);
            from = shown;
        }
        let consumed = self.lines.consume(shown, from);
        self.held = shown - consumed;
        data.consume(consumed);
    }

    /// Keeps the last bytes received, for the log and for the requests of a program that dies.
    fn keep(&mut self, new: &[u8]) {
        self.received += new.len() as u64;
        let new = &new[new.len().saturating_sub(TAIL_MAX)..];
        let beyond = (self.tail.len() + new.len()).saturating_sub(TAIL_MAX);
        self.tail.drain(..beyond);
        self.tail.extend(new);
    }

    /// Returns the total number of bytes received.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    /// Returns the last 8 KiB, as text.
    pub(super) fn tail(&mut self) -> String {
        self.tail_after(0)
    }

    /// Returns the part of the kept bytes that came after the first `bytes` bytes.
    pub(super) fn tail_after(&mut self, bytes: u64) -> String {
        let kept = self.tail.len();
        let new = usize::try_from(self.received.saturating_sub(bytes)).unwrap_or(usize::MAX);
        let tail = &self.tail.make_contiguous()[kept - new.min(kept)..];
        String::from_utf8_lossy(tail).trim_end().to_owned()
    }

    fn log(&mut self, now: Instant, worker: &str, line: &[u8], events: &mut Vec<BackendEvent>) {
        if self.window.is_none_or(|begun| now.duration_since(begun) >= WINDOW) {
            self.window = Some(now);
            self.written = 0;
        }
        if self.written == LINES_A_SECOND {
            events.push(BackendEvent::StderrDropped);
            return;
        }
        self.written += 1;
        tracing::info!(worker, "stderr: {}", printable(line));
    }

    pub(super) fn close(&mut self) {
        self.stream = None;
    }

    /// Stops reading, although another process may still hold the pipe open.
    pub(super) fn abandon(&mut self, io: &mut Context<'_>) {
        if let Some(stream) = self.stream.take() {
            io.close(stream);
        }
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.stream.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_was_said_is_kept_and_where_it_began() {
        let mut stderr = Stderr::default();
        stderr.keep(b"of one client\n");
        let before = stderr.received();
        assert_eq!(stderr.tail_after(before), "");
        stderr.keep(b"of another\n");
        assert_eq!(stderr.tail_after(before), "of another");
        assert_eq!(stderr.tail(), "of one client\nof another");
        stderr.keep(&[b'x'; TAIL_MAX + 1]);
        assert_eq!(stderr.tail_after(before), "x".repeat(TAIL_MAX));
        assert_eq!(stderr.tail_after(stderr.received() - 3), "xxx");
    }
}
