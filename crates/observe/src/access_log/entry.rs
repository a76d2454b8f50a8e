//! What is kept of a request for its line in the access log.

use std::sync::Arc;
use std::time::Instant;

use exchange::Outcome;
use fields::Fields;

use super::config::LoggedListener;

/// Bytes of a request line, or of one field, that are kept; what is longer is cut.
pub(super) const KEPT_MAX: usize = 2048;
/// Bytes that a place for a request keeps between two of them.
pub(super) const SPARE_BYTES: usize = 1024;

/// What is kept of a request for its line.
#[derive(Debug, Default)]
pub struct AccessEntry {
    pub(super) listener: Option<Arc<LoggedListener>>,
    /// The request line, and behind it the fields that were asked for.
    pub(super) text: Vec<u8>,
    /// Where the line and each field end in it.
    pub(super) ends: Vec<usize>,
    pub status: u16,
    /// The rule that it broke, in the word of docs/http1.md or docs/routes.md.
    pub reason: &'static str,
    /// The status of a reply that comes without one; 0 is 200.
    pub replied: u16,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub retries: u32,
    /// When the connection was made that its worker had no other for.
    pub connected: Option<Instant>,
    /// What the worker that had it last is called.
    pub worker: String,
}

impl AccessEntry {
    /// Forgets its request, and memory beyond what most of them need.
    pub(super) fn clear(&mut self) {
        let Self {
            listener,
            text,
            ends,
            status,
            reason,
            replied,
            bytes_in,
            bytes_out,
            retries,
            connected,
            worker,
        } = self;
        *reason = "";
        (*listener, *connected) = (None, None);
        (*status, *replied, *bytes_in, *bytes_out, *retries) = (0, 0, 0, 0, 0);
        text.clear();
        text.shrink_to(SPARE_BYTES);
        ends.clear();
        worker.clear();
        worker.shrink_to(SPARE_BYTES);
    }

    /// What the outcome adds: its bytes, and the status where no server gave one.
    pub fn end(&mut self, outcome: &Outcome) {
        if let Outcome::Reply(body) | Outcome::Sorry(_, body) = outcome {
            self.bytes_out += body.len() as u64;
        }
        match outcome {
            Outcome::Reply(_) => self.begin_reply(),
            outcome => self.settle(status_of(outcome)),
        }
    }

    /// A reply without a head begins: over HTTP its client is told a status of ours.
    pub fn begin_reply(&mut self) {
        self.settle(if self.replied == 0 { 200 } else { self.replied });
    }

    /// What the client is told, unless it was told something else before.
    pub fn settle(&mut self, status: u16) {
        let listener = self.listener.as_ref();
        if self.status == 0 && listener.is_some_and(|it| it.speaks_http) {
            self.status = status;
        }
    }

    /// Keeps what is wanted of the head of a request.
    pub(super) fn keep(&mut self, line: &[u8], fields: &Fields, names: &[String]) {
        self.push(line);
        for name in names {
            let value = fields.get(name.as_str()).map_or(&b""[..], |it| it.bytes_or_empty());
            self.push(value);
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(&bytes[..bytes.len().min(KEPT_MAX)]);
        self.ends.push(self.text.len());
    }

    /// The request line at 0, and the fields behind it.
    pub(super) fn kept(&self, place: usize) -> &[u8] {
        let Some(&end) = self.ends.get(place) else { return b"" };
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..end]
    }
}

/// The status that tells of an end that no server gave one for.
fn status_of(outcome: &Outcome) -> u16 {
    match outcome {
        Outcome::Reply(_) => 200,
        Outcome::Sorry(..) => 503,
        Outcome::Ended(end, _) => crate::http_status::status_of(end.cause),
    }
}
