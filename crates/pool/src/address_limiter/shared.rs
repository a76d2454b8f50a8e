//! What is known about limits that several daemons share: `sharing.rs`.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::net::Ipv6Addr;

use siphasher::sip128::{Hasher128, SipHasher13};

/// What is shared.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) secret: (u64, u64),
    /// The entries to report. Some may have been reported or removed since.
    pub(super) noted: Vec<u32>,
    /// The next entry whose open connections are reported again.
    pub(super) refreshed: usize,
    pub(super) refreshed_ns: u64,
    /// The connections that are open at other daemons, by address and daemon.
    pub(super) elsewhere: BTreeMap<(u128, u64), Elsewhere>,
    pub(super) swept_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Elsewhere {
    pub(super) open: u32,
    pub(super) heard_ns: u64,
}

impl Shared {
    pub(super) const fn new(secret: (u64, u64)) -> Self {
        Self {
            secret,
            noted: Vec::new(),
            refreshed: 0,
            refreshed_ns: 0,
            elsewhere: BTreeMap::new(),
            swept_ns: 0,
        }
    }

    /// Returns the key of the bits of an address.
    pub(super) fn key(&self, bits: u128) -> u128 {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1);
        hasher.write(&Ipv6Addr::from(bits).octets());
        hasher.finish128().as_u128()
    }

    /// Adds an entry to those that are reported, unless it `is_noted`.
    pub(super) fn note(&mut self, place: u32, is_noted: &mut bool) {
        if !*is_noted {
            *is_noted = true;
            self.noted.push(place);
        }
    }

    /// The connections of an address that are open at other daemons.
    pub(super) fn open_elsewhere(&self, key: u128) -> u32 {
        let of_key = self.elsewhere.range((key, 0)..=(key, u64::MAX));
        of_key.fold(0, |sum, (_, it)| sum.saturating_add(it.open))
    }
}
