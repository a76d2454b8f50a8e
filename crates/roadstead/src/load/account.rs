//! The account of a run: counts, times, and the ledger.

use std::io;
use std::time::Duration;

use exchange::Cause;
use hdrhistogram::Histogram;

use super::reply::Code;
use super::summary::{Quantiles, Summary};
use crate::ledger::{Fate, Writer};

/// The longest measured time: one hour, in microseconds. Longer times are counted as this one.
const TIME_MAX_US: u64 = 3_600_000_000;

/// Counts every event of every line.
pub(super) struct Account {
    pub(super) sent: u64,
    pub(super) resent: u64,
    pub(super) outstanding: u64,
    pub(super) reconnects: u64,
    /// The counts by fate, in the order of [`place`].
    fates: [u64; 5],
    unasked: u64,
    codes: Vec<u64>,
    latency: Histogram<u64>,
    lateness: Histogram<u64>,
    ledger: Option<Writer>,
    /// Why the ledger could not be written to its end.
    error: Option<io::Error>,
}

impl Account {
    pub(super) fn new(ledger: Option<Writer>) -> Self {
        let histogram =
            || Histogram::new_with_bounds(1, TIME_MAX_US, 3).expect("these bounds are in order");
        Self {
            sent: 0,
            resent: 0,
            outstanding: 0,
            reconnects: 0,
            fates: [0; 5],
            unasked: 0,
            codes: vec![0; Cause::ALL.len() + 1],
            latency: histogram(),
            lateness: histogram(),
            ledger,
            error: None,
        }
    }

    /// Counts a line that is about to be sent for the first time.
    pub(super) fn sent(&mut self, id: u64, late_ns: Option<u64>) {
        self.sent += 1;
        self.outstanding += 1;
        if let Some(late_ns) = late_ns {
            self.lateness.saturating_record(late_ns / 1000);
        }
        self.write(|ledger| ledger.sent(id));
    }

    /// Counts a refused line that is about to be sent again.
    pub(super) fn sent_again(&mut self, id: u64) {
        self.resent += 1;
        self.outstanding += 1;
        self.fates[place(Fate::Refused)] -= 1;
        self.write(|ledger| ledger.sent_again(id));
    }

    /// Counts the fate of a line that was in flight. `took_ns`: the time since it was due.
    pub(super) fn fate(&mut self, id: u64, fate: Fate, took_ns: u64) {
        self.outstanding -= 1;
        self.fates[place(fate)] += 1;
        if fate == Fate::Acknowledged {
            self.latency.saturating_record(took_ns / 1000);
        }
        self.write(|ledger| ledger.fate(id, fate));
    }

    pub(super) fn code(&mut self, code: Code) {
        let place = match code {
            Code::Known(cause) => cause as usize,
            Code::Other => Cause::ALL.len(),
        };
        self.codes[place] += 1;
    }

    /// Counts an unsolicited reply.
    pub(super) fn unasked(&mut self) {
        self.unasked += 1;
        self.write(Writer::unasked);
    }

    pub(super) fn count(&self, fate: Fate) -> u64 {
        self.fates[place(fate)]
    }

    /// Returns whether the ledger could not be written.
    pub(super) const fn is_broken(&self) -> bool {
        self.error.is_some()
    }

    fn write(&mut self, write: impl FnOnce(&mut Writer) -> io::Result<()>) {
        let Some(ledger) = &mut self.ledger else { return };
        if let Err(error) = write(ledger) {
            self.error = Some(error);
            self.ledger = None;
        }
    }

    /// Ends the ledger and returns the summary. The fields that only the run can fill keep their defaults.
    pub(super) fn finish(self) -> io::Result<Summary> {
        let told = |error: io::Error| io::Error::new(error.kind(), format!("the ledger: {error}"));
        if let Some(error) = self.error {
            return Err(told(error));
        }
        let summary = Summary {
            sent: self.sent,
            acknowledged: self.count(Fate::Acknowledged),
            refused: self.count(Fate::Refused),
            failed: self.count(Fate::Failed),
            unknown: self.count(Fate::Unknown),
            misdirected: self.count(Fate::Misdirected) + self.unasked,
            unasked: self.unasked,
            resent: self.resent,
            reconnects: self.reconnects,
            codes: named(&self.codes),
            latency: quantiles(&self.latency),
            lateness: quantiles(&self.lateness),
            ..Summary::default()
        };
        if let Some(ledger) = self.ledger {
            ledger.finish().map_err(told)?;
        }
        Ok(summary)
    }
}

const fn place(fate: Fate) -> usize {
    match fate {
        Fate::Acknowledged => 0,
        Fate::Refused => 1,
        Fate::Failed => 2,
        Fate::Unknown => 3,
        Fate::Misdirected => 4,
    }
}

fn named(codes: &[u64]) -> Vec<(&'static str, u64)> {
    let words = Cause::ALL.iter().map(|cause| cause.as_str()).chain(["other"]);
    words.zip(codes.iter().copied()).filter(|&(_, count)| count > 0).collect()
}

fn quantiles(histogram: &Histogram<u64>) -> Quantiles {
    let at = |quantile| Duration::from_micros(histogram.value_at_quantile(quantile));
    Quantiles { p50: at(0.5), p99: at(0.99), max: Duration::from_micros(histogram.max()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_quantiles_and_only_of_what_was_acknowledged() {
        let mut account = Account::new(None);
        for id in 1..=100 {
            account.sent(id, Some(2_000));
            let fate = if id == 100 { Fate::Refused } else { Fate::Acknowledged };
            account.fate(id, fate, id * 1_000_000);
        }
        let summary = account.finish().unwrap();
        assert_eq!((summary.sent, summary.acknowledged, summary.refused), (100, 99, 1));
        let near = |duration: Duration, ms: u64| {
            let expected = Duration::from_millis(ms);
            duration.abs_diff(expected) <= expected / 500
        };
        assert!(near(summary.latency.p50, 50), "{:?}", summary.latency);
        assert!(near(summary.latency.max, 99), "{:?}", summary.latency);
        assert_eq!(summary.lateness.max, Duration::from_micros(2));
    }

    #[test]
    fn a_line_sent_again_has_one_fate() {
        let mut account = Account::new(None);
        account.sent(1, None);
        account.fate(1, Fate::Refused, 0);
        account.code(Code::Known(Cause::Full));
        account.sent_again(1);
        assert_eq!(account.outstanding, 1);
        account.fate(1, Fate::Acknowledged, 0);
        let summary = account.finish().unwrap();
        assert_eq!((summary.sent, summary.acknowledged, summary.refused), (1, 1, 0));
        assert_eq!((summary.resent, summary.codes), (1, vec![("full", 1)]));
    }

    #[test]
    fn a_disk_that_is_full_is_an_error_and_not_a_short_ledger() {
        let ledger = Writer::create(std::path::Path::new("/dev/full"), 1, 1).unwrap();
        let mut account = Account::new(Some(ledger));
        account.sent(1, None);
        account.fate(1, Fate::Unknown, 0);
        let error = account.finish().unwrap_err();
        assert!(error.to_string().starts_with("the ledger: "), "{error}");
    }
}
