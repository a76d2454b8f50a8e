//! Limits that several daemons share approximately.
//!
//! Each daemon decides alone, at once, by what it knows. It reports what clients used to the other daemons, about twice
//! per second, and counts what they report as if it had been used here. Addresses leave the daemon only as hashes, keyed
//! by a secret that all daemons have.
//!
//! # Error
//!
//! Let `n` daemons share a rate `r` with the burst `b`, and let each report reach the others at most `t` seconds after the
//! use. In any time `w`, an address can then use at most
//!
//! ```text
//!   r·w + n·b + (n − 1)·r·t
//! ```
//!
//! instead of `r·w + b`: what the others have admitted and not reported yet is at most `b + r·t` for each of them. Of
//! concurrent connections, more than the maximum can be open only by those that were admitted elsewhere within the last
//! `t` seconds. Nothing is counted twice, so an address is never limited to less than the limit, except that the open
//! connections of a daemon that was killed count until its last report is no longer valid. If reports are lost, what they
//! had is not counted elsewhere; the number of open connections is reported again within [`REFRESH`] seconds. If no
//! report arrives, each daemon limits on its own: at most `n` times the limit.
//!
//! `shared_tests.rs` compares random histories with this bound.

use std::time::Instant;

use exchange::{AddressUse, SharedKey};

use super::shared::{Elsewhere, Shared};
use super::{AddressLimiter, Entry, Meter, SECOND_NS};

/// The time in which all open connections are reported again, in seconds.
const REFRESH: u64 = 10;
/// How long a report of open connections is valid.
const VALID_NS: u64 = 25 * SECOND_NS;
/// How far in the future the uses of other daemons may be paid for, in bursts. It bounds the damage of a wrong report.
const BURSTS_MAX: u64 = 64;

impl AddressLimiter {
    /// Shares the limits with other daemons. The secret must be the same at all of them. The table must be empty.
    ///
    /// # Panics
    /// If it is not empty.
    pub fn share(&mut self, secret: (u64, u64)) {
        assert_eq!(self.length(), 0, "the keys of addresses change");
        self.shared = Some(Box::new(Shared::new(secret)));
    }

    /// Takes the uses since the last call, and again some of the open connections. At most `uses_max` are taken; the rest
    /// is taken by the next call. Nothing, if the limits are not shared.
    pub fn take_uses(&mut self, now: Instant, uses_max: usize, uses: &mut Vec<AddressUse>) {
        let now_ns = self.ns(now);
        let Some(mut shared) = self.shared.take() else { return };
        let first = uses.len();
        while uses.len() - first < uses_max
            && let Some(place) = shared.noted.pop()
        {
            let entry = &mut self.entries[place as usize];
            if std::mem::take(&mut entry.is_noted) {
                uses.push(report(entry));
            }
        }
        // In proportion to the time, so that all are reported again within `REFRESH` seconds.
        let passed = now_ns.saturating_sub(shared.refreshed_ns).min(REFRESH * SECOND_NS);
        let due = self.entries.len() as u128 * u128::from(passed) / u128::from(REFRESH * SECOND_NS);
        if due > 0 {
            shared.refreshed_ns = now_ns;
        }
        for _ in 0..due {
            if uses.len() - first >= uses_max {
                break;
            }
            shared.refreshed = (shared.refreshed + 1) % self.entries.len();
            let entry = &mut self.entries[shared.refreshed];
            if entry.open > 0 && !entry.is_noted {
                uses.push(report(entry));
            }
        }
        self.shared = Some(shared);
        if now_ns.saturating_sub(self.swept_ns()) >= VALID_NS / 2 {
            self.sweep(now_ns);
        }
    }

    /// Counts what clients used at another daemon, which is named by a number. Nothing, if the limits are not shared.
    pub fn handle_uses(&mut self, now: Instant, daemon: u64, uses: &[AddressUse]) {
        let now_ns = self.ns(now);
        for reported in uses {
            let Some(shared) = &mut self.shared else { return };
            let key = u128::from_le_bytes(reported.key.0);
            match reported.open {
                0 => {
                    shared.elsewhere.remove(&(key, daemon));
                }
                open => {
                    shared.elsewhere.insert((key, daemon), Elsewhere { open, heard_ns: now_ns });
                }
            }
            let open_elsewhere = shared.open_elsewhere(key);
            // A table that is full of addresses with connections has no room for another one.
            let Ok(place) = self.enter_key(key) else { continue };
            let (connects, requests) = (self.connects, self.requests);
            let entry = &mut self.entries[place as usize];
            entry.open_elsewhere = open_elsewhere;
            count(connects, &mut entry.connects_ns, now_ns, reported.connects);
            count(requests, &mut entry.requests_ns, now_ns, reported.requests);
        }
        self.forget(now_ns);
    }

    fn swept_ns(&self) -> u64 {
        self.shared.as_ref().map_or(u64::MAX, |shared| shared.swept_ns)
    }

    /// Removes open connections that were not reported again: their daemon has ended, or its report was lost.
    fn sweep(&mut self, now_ns: u64) {
        let Some(shared) = &mut self.shared else { return };
        shared.swept_ns = now_ns;
        let mut removed = Vec::new();
        shared.elsewhere.retain(|(key, _), it| {
            let is_valid = now_ns.saturating_sub(it.heard_ns) < VALID_NS;
            if !is_valid {
                removed.push(*key);
            }
            is_valid
        });
        for key in removed {
            let stands = self.hash(key);
            let entries = &self.entries;
            let found = self.index.find(stands, |it| entries[*it as usize].key == key).copied();
            let open_elsewhere =
                self.shared.as_ref().map_or(0, |shared| shared.open_elsewhere(key));
            if let Some(place) = found {
                self.entries[place as usize].open_elsewhere = open_elsewhere;
            }
        }
    }
}

fn report(entry: &mut Entry) -> AddressUse {
    let (connects, requests) = std::mem::take(&mut entry.unreported);
    AddressUse { key: SharedKey(entry.key.to_le_bytes()), connects, requests, open: entry.open }
}

/// Counts uses as if they had been admitted here.
fn count(meter: Option<Meter>, paid_ns: &mut u64, now_ns: u64, uses: u32) {
    let Some(meter) = meter.filter(|_| uses > 0) else { return };
    let most = meter.ahead_ns.saturating_add(meter.interval_ns).saturating_mul(BURSTS_MAX);
    let paid =
        (*paid_ns).max(now_ns).saturating_add(meter.interval_ns.saturating_mul(u64::from(uses)));
    *paid_ns = paid.min(now_ns.saturating_add(most)).max(*paid_ns);
}
