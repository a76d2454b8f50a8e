//! The access log: one line per request. A line is formatted when the request ends, and is passed to a writer thread
//! once per turn.
//!
//! A frontend collects the values that only the log needs in an [`AccessEntry`]. A request without an entry has no
//! line, so without an access log this module does no work. The buffer before the writer thread is limited in bytes.
//! When it is full, lines are dropped and counted, and the log states their number. Entries and buffers are reused, so
//! in steady state no line allocates.

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

/// The size of a batch of lines at which it is sent before the end of the turn, in bytes.
const BATCH_BYTES: usize = 64 << 10;
/// The maximum number of unused entries that are kept.
const SPARES_MAX: usize = 64;

/// The access log of a shard. By default there is none.
#[derive(Debug, Default)]
pub struct AccessLog(Option<Box<Open>>);

#[derive(Debug)]
struct Open {
    config: AccessLogConfig,
    sink: LogSink,
    /// Unused entries.
    #[expect(clippy::vec_box, reason = "the boxes move between here and the exchanges")]
    spares: Vec<Box<AccessEntry>>,
    dated: Dated,
    batch: LogBatch,
    dropped: u64,
    /// The number of dropped lines that the log does not mention yet.
    unreported: u64,
}

impl AccessLog {
    /// Creates an access log that is written to `sink`. If an argument is `None`, there is no access log.
    pub fn new(config: Option<AccessLogConfig>, sink: Option<LogSink>) -> Self {
        let open = config.zip(sink).map(|(config, sink)| Open {
            config,
            sink,
            spares: Vec::new(),
            dated: Dated::default(),
            batch: LogBatch::default(),
            dropped: 0,
            unreported: 0,
        });
        Self(open.map(Box::new))
    }

    /// Returns a new entry for a request of this listener, if its requests are logged.
    pub fn begin(&mut self, listener: Option<&Arc<LoggedListener>>) -> Option<Box<AccessEntry>> {
        let (open, listener) = (self.0.as_mut()?, listener?);
        let mut log_entry = open.spares.pop().unwrap_or_default();
        log_entry.listener = Some(Arc::clone(listener));
        Some(log_entry)
    }

    /// Like [`Self::begin`], for a request with a request line and header fields.
    pub fn begin_head(
        &mut self,
        listener: Option<&Arc<LoggedListener>>,
        line: &[u8],
        fields: &Fields,
    ) -> Option<Box<AccessEntry>> {
        let mut log_entry = self.begin(listener)?;
        if let Some(open) = &self.0 {
            log_entry.keep(line, fields, &open.config.fields);
        }
        Some(log_entry)
    }

    /// Like [`Self::begin`], for a request whose head is incomplete. The received part of its first line is kept.
    pub fn begin_unread(
        &mut self,
        listener: Option<&Arc<LoggedListener>>,
        bytes: &[u8],
    ) -> Option<Box<AccessEntry>> {
        let mut log_entry = self.begin(listener)?;
        log_entry.push(first_line(bytes));
        Some(log_entry)
    }

    /// Formats a line. It is sent with [`Self::flush`], or earlier if the batch is large.
    pub fn write(&mut self, line: &Line<'_>) {
        let Some(open) = &mut self.0 else { return };
        line.write(&open.config, &mut open.dated, &mut open.batch.bytes);
        open.batch.lines += 1;
        if open.batch.bytes.len() >= BATCH_BYTES {
            open.send();
        }
    }

    /// Clears an entry whose line is written, and keeps it for another request.
    pub fn recycle(&mut self, mut log_entry: Box<AccessEntry>) {
        if let Some(open) = self.0.as_mut().filter(|open| open.spares.len() < SPARES_MAX) {
            log_entry.clear();
            open.spares.push(log_entry);
        }
    }

    /// Sends the lines of this turn to the writer thread.
    pub fn flush(&mut self) {
        if let Some(open) = self.0.as_mut().filter(|open| open.batch.lines > 0) {
            open.send();
        }
    }

    /// Returns the number of lines that were dropped or could not be written.
    pub fn lost(&self) -> u64 {
        let open = self.0.as_ref();
        open.map_or(0, |open| open.dropped + open.sink.lost())
    }
}

impl Open {
    fn send(&mut self) {
        if self.unreported > 0 {
            line::write_dropped(&self.config.format, self.unreported, &mut self.batch.bytes);
        }
        if self.sink.add(&self.batch) {
            self.unreported = 0;
        } else {
            self.dropped += self.batch.lines;
            self.unreported += self.batch.lines;
        }
        self.batch.bytes.clear();
        self.batch.lines = 0;
    }
}

/// Returns the first line in these bytes that is not empty, as far as it was received, without its line end.
fn first_line(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    let line = &bytes[start.unwrap_or(bytes.len())..];
    let end = line.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    &line[..end.unwrap_or(line.len())]
}

#[cfg(test)]
mod tests;
