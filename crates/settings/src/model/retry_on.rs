//! The failures of a worker after which a request is sent to another worker: `retries.on`.

use crate::options::{Value, read_as, settings};
use crate::quantities;

/// How a worker can fail a request without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryFault {
    /// No connection could be made.
    Connect,
    /// The connection ended before the response.
    Reset,
    /// The response did not begin before the timeout.
    Timeout,
    /// The received bytes are not a valid HTTP response.
    Invalid,
}

impl RetryFault {
    /// All failures, with their names.
    pub const ALL: [(&str, Self); 4] = [
        ("connect", Self::Connect),
        ("reset", Self::Reset),
        ("timeout", Self::Timeout),
        ("invalid", Self::Invalid),
    ];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The range of statuses that can be listed.
const STATUSES: std::ops::RangeInclusive<u64> = 400..=599;

/// A set of failures and of response statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    faults: u8,
    /// One bit per status, from 400 on.
    statuses: [u64; 4],
}

impl Default for RetryOn {
    /// Every failure except a timeout, after which the server may still be working, and no status.
    fn default() -> Self {
        let faults = [RetryFault::Connect, RetryFault::Reset, RetryFault::Invalid];
        let faults = faults.into_iter().fold(0, |all, fault| all | fault.bit());
        Self { faults, statuses: [0; 4] }
    }
}

impl RetryOn {
    /// Parses a list of names and statuses, such as `connect`, `503` and `502..504`.
    ///
    /// # Errors
    /// Returns the first entry that is neither a name nor a status.
    pub fn read(entries: &[String]) -> Result<Self, &str> {
        let mut on = Self { faults: 0, statuses: [0; 4] };
        for entry in entries {
            if let Some((_, fault)) = RetryFault::ALL.iter().find(|(word, _)| word == entry) {
                on.faults |= fault.bit();
                continue;
            }
            let span = quantities::span(entry).ok();
            let good = |(from, to): &(u64, u64)| {
                from <= to && STATUSES.contains(from) && STATUSES.contains(to)
            };
            let Some((from, to)) = span.filter(good) else { return Err(entry) };
            for status in from..=to {
                let at = status - STATUSES.start();
                on.statuses[(at / 64) as usize] |= 1 << (at % 64);
            }
        }
        Ok(on)
    }

    /// Whether a request is retried after this failure.
    #[must_use]
    pub const fn is_on(&self, fault: RetryFault) -> bool {
        self.faults & fault.bit() != 0
    }

    /// Whether a request is retried after a response of this status.
    #[must_use]
    pub fn is_on_status(&self, status: u16) -> bool {
        let Some(at) = u64::from(status).checked_sub(*STATUSES.start()) else { return false };
        let word = usize::try_from(at / 64).ok().and_then(|word| self.statuses.get(word));
        word.is_some_and(|word| word & (1 << (at % 64)) != 0)
    }

    /// Whether any status is listed.
    #[must_use]
    pub fn has_statuses(&self) -> bool {
        self.statuses != [0; 4]
    }
}

settings! {
    RetryOn, read_as::Texts:
        Some(Value::Texts(entries)) => Self::read(entries).expect("the checks have read it once"),
        None => Self::default();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entries: &[&str]) -> Result<RetryOn, String> {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        RetryOn::read(&entries).map_err(str::to_owned)
    }

    #[test]
    fn a_list_names_failures_and_statuses() {
        let on = read(&["connect", "503", "500..502", "400", "599"]).unwrap();
        let statuses: Vec<u16> = (0..1000).filter(|status| on.is_on_status(*status)).collect();
        assert_eq!(statuses, [400, 500, 501, 502, 503, 599]);
        assert!(on.is_on(RetryFault::Connect) && on.has_statuses());
        for fault in [RetryFault::Reset, RetryFault::Timeout, RetryFault::Invalid] {
            assert!(!on.is_on(fault), "{fault:?}");
        }
        let default = RetryOn::default();
        for (_, fault) in RetryFault::ALL {
            assert_eq!(default.is_on(fault), fault != RetryFault::Timeout, "{fault:?}");
        }
        assert!((0..1000).all(|status| !default.is_on_status(status)));
    }

    #[test]
    fn other_words_and_statuses_are_errors() {
        for wrong in ["conect", "399", "600", "504..502", "", "5xx"] {
            assert_eq!(read(&["connect", wrong]), Err(wrong.to_owned()));
        }
    }
}
