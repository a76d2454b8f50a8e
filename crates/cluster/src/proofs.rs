//! The digests that wait to be compared, and the last proof.

use std::collections::{BTreeMap, VecDeque};

use crate::digest::Digest;
use crate::message::Origin;

/// The number of own digests that wait for those of other daemons.
const CAPTURED_MAX: usize = 4;
/// The maximum number of other daemons whose last digest is kept.
const DAEMONS_MAX: usize = 64;
/// A proof that another daemon had the same contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The other daemon.
    pub with: Origin,
    /// The revision of both digests.
    pub revision: u64,
    /// When they were compared.
    pub at_ms: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Proofs {
    captured: VecDeque<Digest>,
    received: BTreeMap<Origin, Digest>,
    last: Option<Proof>,
}

impl Proofs {
    pub(crate) const fn last(&self) -> Option<Proof> {
        self.last
    }

    pub(crate) fn forget_captured(&mut self) {
        self.captured.clear();
    }

    /// Keeps an own digest. Returns those of other daemons that can be compared with it.
    pub(crate) fn capture(&mut self, digest: &Digest) -> Vec<Digest> {
        if self.captured.len() >= CAPTURED_MAX {
            self.captured.pop_front();
        }
        self.captured.push_back(digest.clone());
        let is_comparable = |other: &&Digest| other.is_comparable(digest);
        self.received.values().filter(is_comparable).cloned().collect()
    }

    /// Returns the own digest with which this one can be compared. If there is none yet, it is kept.
    pub(crate) fn receive(&mut self, digest: &Digest) -> Option<Digest> {
        let own = self.captured.iter().rev().find(|own| own.is_comparable(digest)).cloned();
        let has_room = self.received.len() < DAEMONS_MAX;
        if own.is_none() && (has_room || self.received.contains_key(&digest.origin)) {
            self.received.insert(digest.origin, digest.clone());
        }
        own
    }

    pub(crate) const fn prove(&mut self, proof: Proof) {
        self.last = Some(proof);
    }
}
