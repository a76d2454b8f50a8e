//! Digests of this daemon and of others.

use std::collections::{BTreeMap, VecDeque};

use super::Replica;
use crate::digest::Digest;
use crate::message::{Command, Origin};
use crate::shard_set::ShardSet;

/// The number of own digests that wait for those of other daemons.
const CAPTURED_MAX: usize = 4;
/// The maximum number of other daemons whose last digest is kept.
const DAEMONS_MAX: usize = 64;
/// If more shards differ, the whole table is read again.
const FETCHES_MAX: u32 = 32;

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
pub(super) struct Proofs {
    captured: VecDeque<Digest>,
    received: BTreeMap<Origin, Digest>,
    last: Option<Proof>,
}

impl Proofs {
    pub(super) const fn last(&self) -> Option<Proof> {
        self.last
    }

    pub(super) fn forget_captured(&mut self) {
        self.captured.clear();
    }
}

impl Replica {
    /// Takes the digest at a mark, sends it, and compares it with those that arrived earlier.
    pub(super) fn take_digest(&mut self, now_ms: u64, revision: u64) {
        let (true, Some(epoch)) = (self.stream.is_caught_up, self.stream.mark.epoch) else {
            return;
        };
        let digest = Digest {
            origin: self.origin,
            epoch,
            revision,
            shards: Box::new(*self.shards.digests()),
            incomplete: self.shards.incomplete(revision),
        };
        self.outbox.push_back(Command::PublishDigest(Box::new(digest.clone())));
        self.fetch_evicted();
        let is_comparable = |other: &&Digest| other.is_comparable(&digest);
        let others: Vec<_> = self.proofs.received.values().filter(is_comparable).cloned().collect();
        if self.proofs.captured.len() >= CAPTURED_MAX {
            self.proofs.captured.pop_front();
        }
        self.proofs.captured.push_back(digest.clone());
        others.iter().for_each(|other| self.compare(now_ms, &digest, other));
    }

    pub(super) fn received_digest(&mut self, now_ms: u64, digest: Digest) {
        let captured = self.proofs.captured.iter();
        let own = captured.rev().find(|own| own.is_comparable(&digest)).cloned();
        let has_room = self.proofs.received.len() < DAEMONS_MAX;
        if digest.origin == self.origin {
            return;
        }
        if let Some(own) = own {
            self.compare(now_ms, &own, &digest);
        } else if has_room || self.proofs.received.contains_key(&digest.origin) {
            self.proofs.received.insert(digest.origin, digest);
        }
    }

    fn compare(&mut self, now_ms: u64, own: &Digest, other: &Digest) {
        self.counters.compared += 1;
        let differing = own.differing(other);
        if differing.is_empty() {
            let (with, revision) = (other.origin, own.revision);
            self.proofs.last = Some(Proof { with, revision, at_ms: now_ms });
            return;
        }
        self.counters.shard_mismatches += u64::from(differing.length());
        if differing.length() > FETCHES_MAX {
            self.snapshot(false);
        } else {
            self.repairs.want(&differing);
        }
    }

    /// Fetches a shard that lost entries, if there is room for them now.
    fn fetch_evicted(&mut self) {
        let room = self.settings.entries_max as usize / 8 * 7;
        if let Some(shard) = self.shards.evicted().first()
            && self.table.length() < room
            && self.repairs.wants_none()
        {
            let mut shards = ShardSet::default();
            shards.insert(shard);
            self.repairs.want(&shards);
        }
    }
}
