//! The access log: one line a request, written down where the request ends and sent off the loop
//! once a turn.
//!
//! What a front knows of a request that the log wants and nobody else, it leaves in a [`AccessEntry`]. A
//! request without one has no line, so a daemon without an access log does nothing here. Lines go
//! to a thread that writes them, over a buffer with room for so many bytes; when it is full they
//! are dropped, counted, and the log itself says how many were. What a line needs is kept for the next
//! one: in the steady state none allocates.

use std::sync::Arc;

use fields::Fields;

mod config;
mod digits;
mod entry;
mod line;
mod sink;

pub use config::{AccessLogConfig, LoggedListener};
use digits::Dated;
pub use entry::AccessEntry;
pub use line::Line;
pub use sink::{LogBatch, LogSink, LogSource};

/// Lines that are sent together hold so many bytes, or a little more.
const BATCH_BYTES: usize = 64 << 10;
/// Places for requests that are kept between two of them.
const SPARES_MAX: usize = 64;

/// The log of a shard, if it keeps one.
#[derive(Debug, Default)]
pub struct AccessLog(Option<Box<Open>>);

#[derive(Debug)]
struct Open {
    plan: AccessLogConfig,
    sink: LogSink,
    /// Places for those that come.
    #[expect(clippy::vec_box, reason = "the boxes move between here and the exchanges")]
    spares: Vec<Box<AccessEntry>>,
    dated: Dated,
    batch: LogBatch,
    dropped: u64,
    /// Those of them that the log does not tell of yet.
    unsaid: u64,
}

impl AccessLog {
    pub fn new(plan: Option<AccessLogConfig>, sink: Option<LogSink>) -> Self {
        let open = plan.zip(sink).map(|(plan, sink)| Open {
            plan,
            sink,
            spares: Vec::new(),
            dated: Dated::default(),
            batch: LogBatch::default(),
            dropped: 0,
            unsaid: 0,
        });
        Self(open.map(Box::new))
    }

    /// The entry of a request of this listener, if it is to have one.
    pub fn begin(&mut self, listener: Option<&Arc<LoggedListener>>) -> Option<Box<AccessEntry>> {
        let (open, listener) = (self.0.as_mut()?, listener?);
        let mut log_entry = open.spares.pop().unwrap_or_default();
        log_entry.listener = Some(Arc::clone(listener));
        Some(log_entry)
    }

    /// As [`Self::begin`], for one with a request line and header fields.
    pub fn begin_head(
        &mut self,
        listener: Option<&Arc<LoggedListener>>,
        line: &[u8],
        fields: &Fields,
    ) -> Option<Box<AccessEntry>> {
        let mut log_entry = self.begin(listener)?;
        if let Some(open) = &self.0 {
            log_entry.keep(line, fields, &open.plan.fields);
        }
        Some(log_entry)
    }

    /// As [`Self::begin`], for one of which no head was read: what came of its first line is kept.
    pub fn begin_unread(
        &mut self,
        listener: Option<&Arc<LoggedListener>>,
        bytes: &[u8],
    ) -> Option<Box<AccessEntry>> {
        let mut log_entry = self.begin(listener)?;
        log_entry.push(first_line(bytes));
        Some(log_entry)
    }

    /// Writes a line.
    pub fn write(&mut self, line: &Line<'_>) {
        let Some(open) = &mut self.0 else { return };
        line.write(&open.plan, &mut open.dated, &mut open.batch.bytes);
        open.batch.lines += 1;
        if open.batch.bytes.len() >= BATCH_BYTES {
            open.send();
        }
    }

    /// The line of an entry is written: its place is free for another.
    pub fn recycle(&mut self, mut log_entry: Box<AccessEntry>) {
        if let Some(open) = self.0.as_mut().filter(|open| open.spares.len() < SPARES_MAX) {
            log_entry.clear();
            open.spares.push(log_entry);
        }
    }

    /// Sends what was written in this turn.
    pub fn flush(&mut self) {
        if let Some(open) = self.0.as_mut().filter(|open| open.batch.lines > 0) {
            open.send();
        }
    }

    /// Lines that were dropped or could not be written.
    pub fn lost(&self) -> u64 {
        let open = self.0.as_ref();
        open.map_or(0, |open| open.dropped + open.sink.lost())
    }
}

impl Open {
    fn send(&mut self) {
        if self.unsaid > 0 {
            line::write_dropped(&self.plan.format, self.unsaid, &mut self.batch.bytes);
        }
        if self.sink.add(&self.batch) {
            self.unsaid = 0;
        } else {
            self.dropped += self.batch.lines;
            self.unsaid += self.batch.lines;
        }
        self.batch.bytes.clear();
        self.batch.lines = 0;
    }
}

/// The first line in these bytes that is not empty, as far as it is there, without its end.
fn first_line(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    let line = &bytes[start.unwrap_or(bytes.len())..];
    let end = line.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    &line[..end.unwrap_or(line.len())]
}

#[cfg(test)]
mod tests;
