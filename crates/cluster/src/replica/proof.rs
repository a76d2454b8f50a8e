//! Digests of this daemon and of others.

use super::Replica;
use crate::digest::Digest;
use crate::message::Command;
use crate::proofs::Proof;
use crate::shard_set::ShardSet;

/// If more shards differ, the whole table is read again.
const FETCHES_MAX: u32 = 32;

impl Replica {
    /// Takes the digest at a mark, sends it, and compares it with those that arrived earlier.
    pub(super) fn take_digest(&mut self, now_ms: u64, revision: u64) {
        let Some(digest) = self.digest_at(revision) else { return };
        self.outbox.push_back(Command::PublishDigest(Box::new(digest.clone())));
        self.fetch_evicted();
        let others = self.proofs.capture(&digest);
        others.iter().for_each(|other| self.compare(now_ms, &digest, other));
    }

    /// The digest of what the server has, as far as it was read. `None`: it was not read to its end.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest_at(self.stream.position)
    }

    fn digest_at(&self, revision: u64) -> Option<Digest> {
        let epoch = self.stream.mark.epoch.filter(|_| self.stream.is_caught_up)?;
        Some(Digest {
            origin: self.origin,
            epoch,
            revision,
            shards: Box::new(*self.shards.digests()),
            incomplete: self.shards.incomplete(revision),
        })
    }

    pub(super) fn received_digest(&mut self, now_ms: u64, digest: Digest) {
        if digest.origin == self.origin {
            return;
        }
        if let Some(own) = self.proofs.receive(&digest) {
            self.compare(now_ms, &own, &digest);
        }
    }

    fn compare(&mut self, now_ms: u64, own: &Digest, other: &Digest) {
        self.counters.compared += 1;
        let differing = own.differing(other);
        if differing.is_empty() {
            let (with, revision) = (other.origin, own.revision);
            self.proofs.prove(Proof { with, revision, at_ms: now_ms });
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
