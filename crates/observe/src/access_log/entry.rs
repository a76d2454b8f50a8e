//! The values of a request that its access log line needs.

use std::sync::Arc;
use std::time::Instant;

use exchange::Outcome;
use fields::Fields;

use super::config::LoggedListener;

/// The maximum number of bytes kept of a request line or of one field.
pub(super) const KEPT_MAX: usize = 2048;
/// The number of bytes of memory that an unused entry keeps per buffer.
pub(super) const SPARE_BYTES: usize = 1024;

/// The values of a request that its access log line needs.
#[derive(Debug, Default)]
pub struct AccessEntry {
    pub(super) listener: Option<Arc<LoggedListener>>,
    /// The request line, followed by the values of the logged fields.
    pub(super) text: Vec<u8>,
    /// The end of the request line and of each field in `text`.
    pub(super) ends: Vec<usize>,
    /// The status that the client received; 0: none.
    pub status: u16,
    /// The rule that the request violated, as a word from docs/http1.md or docs/routes.md; empty: none.
    pub reason: &'static str,
    /// The status for a reply without its own status; 0 means 200.
    pub replied: u16,
    /// The number of received bytes of the request.
    pub bytes_in: u64,
    /// The number of bytes of the reply.
    pub bytes_out: u64,
    /// How often the request was sent again, to the same worker or to another one.
    pub retries: u32,
    /// The time at which a new connection for the request was established; `None`: an idle connection was reused.
    pub connected: Option<Instant>,
    /// The name of the last worker that received the request.
    pub worker: String,
}

impl AccessEntry {
    /// Removes the values, and frees memory beyond [`SPARE_BYTES`].
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

    /// Adds the bytes of the outcome, and its status if no worker sent one.
    pub fn end(&mut self, outcome: &Outcome) {
        if let Outcome::Reply(body) | Outcome::Fallback(_, body) = outcome {
            self.bytes_out += body.len() as u64;
        }
        match outcome {
            Outcome::Reply(_) => self.begin_reply(),
            outcome => self.settle(status_of(outcome)),
        }
    }

    /// Sets the status of a reply that has no head.
    pub fn begin_reply(&mut self) {
        self.settle(if self.replied == 0 { 200 } else { self.replied });
    }

    /// Sets the status for an HTTP client, unless a status is already set.
    pub fn settle(&mut self, status: u16) {
        let listener = self.listener.as_ref();
        if self.status == 0 && listener.is_some_and(|it| it.speaks_http) {
            self.status = status;
        }
    }

    /// Copies the request line and the logged fields.
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

    /// Returns the request line for `place` 0, or the field `place` - 1 for a higher value.
    pub(super) fn kept(&self, place: usize) -> &[u8] {
        let Some(&end) = self.ends.get(place) else { return b"" };
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..end]
    }
}

/// Returns the HTTP status of an outcome for which no worker sent a status.
fn status_of(outcome: &Outcome) -> u16 {
    match outcome {
        Outcome::Reply(_) => 200,
        Outcome::Fallback(..) => 503,
        Outcome::Ended(end, _) => crate::http_status::status_of(end.cause),
    }
}
