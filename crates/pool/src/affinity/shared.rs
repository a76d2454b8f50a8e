//! What other daemons must learn of a table of bound clients.
//!
//! A binding or a change is recorded at once. A use is recorded at most once per sixteenth of the lifetime, so that
//! other daemons learn of the last use of a client early enough to keep its entry.

use std::hash::Hasher;
use std::time::Duration;

use exchange::BindingUse;
use siphasher::sip128::{Hasher128, SipHasher13};

/// The maximum number of uses that wait to be sent: 2.6 MB.
const USES_MAX: usize = 65_536;
/// Uses are recorded this often in a lifetime.
const PERIODS: u32 = 16;
/// The number of a period is stored in 7 bits. An entry expires long before a number returns.
const PERIOD_MASK: u8 = 127;

/// Hashes the key of a client with the secret of the cluster. Other daemons receive only the hash.
#[must_use]
pub fn shared_key(secret: (u64, u64), key: &[u8]) -> [u8; 16] {
    let mut hasher = SipHasher13::new_with_keys(secret.0, secret.1);
    hasher.write(key);
    hasher.finish128().as_bytes()
}

/// The period in which the use of an entry was last reported, or that the last use was at another daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark(u8);

impl Mark {
    /// The last use was at another daemon, as far as this one knows.
    pub(super) const REMOTE: Self = Self(128);

    pub(super) const fn reported(period: u8) -> Self {
        Self(period)
    }

    /// Not reported in this period.
    pub(super) const fn unreported(period: u8) -> Self {
        Self(period.wrapping_add(1) & PERIOD_MASK)
    }

    pub(super) const fn is_remote(self) -> bool {
        self.0 == Self::REMOTE.0
    }

    pub(super) const fn is_reported(self, period: u8) -> bool {
        self.0 == period
    }
}

/// The uses that wait to be sent.
#[derive(Debug)]
pub(super) struct SharedUses {
    period_ms: u64,
    uses: Vec<BindingUse>,
    dropped: u64,
}

impl SharedUses {
    pub(super) fn new(lifetime: Duration) -> Self {
        let period_ms =
            u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX) / u64::from(PERIODS);
        Self { period_ms: period_ms.max(1), uses: Vec::new(), dropped: 0 }
    }

    /// The number of the period of this time.
    pub(super) fn period(&self, ms: u64) -> u8 {
        u8::try_from((ms / self.period_ms) & u64::from(PERIOD_MASK)).unwrap_or_default()
    }

    /// How much longer an entry lives that was last used at another daemon. Others report a use late.
    pub(super) const fn late_ms(&self) -> u64 {
        self.period_ms * 4
    }

    /// `false`: there is no room.
    pub(super) fn push(&mut self, used: BindingUse) -> bool {
        let has_room = self.uses.len() < USES_MAX;
        if has_room {
            self.uses.push(used);
        } else {
            self.dropped += 1;
        }
        has_room
    }

    pub(super) fn take(&mut self) -> Vec<BindingUse> {
        std::mem::take(&mut self.uses)
    }

    /// Puts back what [`SharedUses::take`] returned, before anything else was recorded.
    pub(super) fn put_back(&mut self, uses: Vec<BindingUse>) {
        debug_assert!(self.uses.is_empty(), "it is put back at once");
        self.uses = uses;
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}
