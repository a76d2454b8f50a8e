//! Details of errors in the log, if the configuration enables them.

use std::time::{Duration, Instant};

use crate::fault::Fault;

/// The maximum number of entries per second. A client that sends bad rows must not fill the log.
const ENTRIES_MAX: u32 = 10;

/// Logs the parts of database errors that clients do not receive.
#[derive(Debug)]
pub(crate) struct DetailLog {
    enabled: bool,
    since: Option<Instant>,
    entries: u32,
    dropped: u64,
}

impl DetailLog {
    pub(crate) const fn new(enabled: bool) -> Self {
        Self { enabled, since: None, entries: 0, dropped: 0 }
    }

    /// Logs an error with its details, if it has any.
    pub(crate) fn write(&mut self, database: &str, code: &str, text: &str, detail: &str) {
        if detail.is_empty() {
            return;
        }
        let Some(dropped) = self.admit(Instant::now()) else { return };
        tracing::warn!(database, code, detail, dropped, "{text}");
    }

    /// Logs that the outcome of `rows` rows is unknown, because they could not be rolled back.
    pub(crate) fn error(&mut self, database: &str, rows: usize, fault: &Fault) {
        let Some(dropped) = self.admit(Instant::now()) else { return };
        let error = fault.for_operators();
        tracing::error!(database, rows, error, dropped, "rows have no known outcome");
    }

    /// Checks whether the limit allows an entry at `now`. Returns the number of entries that were dropped before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if !self.enabled {
            return None;
        }
        if self.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            (self.since, self.entries) = (Some(now), 0);
        }
        if self.entries == ENTRIES_MAX {
            self.dropped += 1;
            return None;
        }
        self.entries += 1;
        Some(std::mem::take(&mut self.dropped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_room_for_few_entries_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut log = DetailLog::new(true);
        let admitted = (0..25).filter(|_| log.admit(start) == Some(0)).count();
        assert_eq!(admitted, 10);
        assert_eq!(log.admit(start + Duration::from_millis(999)), None);
        assert_eq!(log.admit(start + Duration::from_secs(1)), Some(16));
        assert_eq!(log.admit(start + Duration::from_secs(1)), Some(0));
        assert_eq!(DetailLog::new(false).admit(start), None);
    }
}
