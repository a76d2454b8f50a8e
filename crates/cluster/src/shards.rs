//! What is known of each shard: its digest, and how far it can be relied on.

use crate::digest::{Listed, SHARDS, ShardDigest};
use crate::key::{Key, Secret};
use crate::shard_set::ShardSet;
use crate::table::{Entry, Flag};

#[derive(Debug)]
pub(crate) struct Shards {
    secret: Secret,
    /// Raised when a shard is read from the beginning. The server's part of entries with another pass is unknown.
    passes: Box<[u32; SHARDS]>,
    digests: Box<[ShardDigest; SHARDS]>,
    /// The last revision of a read that does not belong to the watch.
    ahead: Box<[u64; SHARDS]>,
    /// Shards whose last pass is not complete.
    reading: ShardSet,
    /// Shards whose last pass is complete: entries that were not seen in it must be decided on.
    undecided: ShardSet,
    /// Shards that lost an entry that the server has.
    evicted: ShardSet,
}

impl Shards {
    pub(crate) fn new(secret: Secret) -> Self {
        Self {
            secret,
            passes: Box::new([0; SHARDS]),
            digests: Box::new([ShardDigest::default(); SHARDS]),
            ahead: Box::new([0; SHARDS]),
            reading: ShardSet::ALL,
            undecided: ShardSet::default(),
            evicted: ShardSet::default(),
        }
    }

    pub(crate) fn pass(&self, key: &Key) -> u32 {
        self.passes[usize::from(key.shard())]
    }

    /// Whether the server's part of an entry is known.
    pub(crate) fn is_seen(&self, entry: &Entry) -> bool {
        entry.pass == self.pass(&entry.key)
    }

    /// Starts to read a shard from the beginning.
    pub(crate) fn restart(&mut self, shard: u8) {
        let at = usize::from(shard);
        self.passes[at] = self.passes[at].wrapping_add(1);
        self.digests[at] = ShardDigest::default();
        self.ahead[at] = 0;
        self.reading.insert(shard);
        self.undecided.remove(shard);
        self.evicted.remove(shard);
    }

    /// The pass is complete up to this revision.
    pub(crate) fn complete(&mut self, shard: u8, revision: u64) {
        self.reading.remove(shard);
        self.undecided.insert(shard);
        self.note_ahead(shard, revision);
    }

    pub(crate) fn note_ahead(&mut self, shard: u8, revision: u64) {
        let ahead = &mut self.ahead[usize::from(shard)];
        *ahead = revision.max(*ahead);
    }

    pub(crate) const fn is_reading(&self, shard: u8) -> bool {
        self.reading.contains(shard)
    }

    pub(crate) const fn undecided(&self) -> &ShardSet {
        &self.undecided
    }

    pub(crate) const fn evicted(&self) -> &ShardSet {
        &self.evicted
    }

    /// All entries that were not seen in the last pass have been decided on.
    pub(crate) fn decided(&mut self) {
        self.undecided = ShardSet::default();
    }

    /// Adds the server's part of an entry to the digest.
    pub(crate) fn list(&mut self, entry: &mut Entry) {
        entry.set(Flag::Listed, true);
        entry.pass = self.pass(&entry.key);
        let at = usize::from(entry.key.shard());
        self.digests[at].add(self.secret, &listed(entry));
    }

    /// Removes the server's part of an entry from the digest.
    pub(crate) fn unlist(&mut self, entry: &mut Entry) {
        if entry.is(Flag::Listed) && self.is_seen(entry) {
            let at = usize::from(entry.key.shard());
            self.digests[at].remove(self.secret, &listed(entry));
        }
        entry.set(Flag::Listed, false);
        entry.pass = self.pass(&entry.key);
    }

    /// Forgets an entry that is removed from the table.
    pub(crate) fn forget(&mut self, entry: &mut Entry) {
        if entry.is(Flag::Listed) && self.is_seen(entry) {
            self.evicted.insert(entry.key.shard());
        }
        self.unlist(entry);
    }

    pub(crate) const fn digests(&self) -> &[ShardDigest; SHARDS] {
        &self.digests
    }

    /// The shards whose digest is not one of the stream up to `revision`.
    pub(crate) fn incomplete(&self, revision: u64) -> ShardSet {
        let mut incomplete = self.reading.union(&self.undecided).union(&self.evicted);
        for shard in 0..=u8::MAX {
            if self.ahead[usize::from(shard)] > revision {
                incomplete.insert(shard);
            }
        }
        incomplete
    }
}

pub(crate) const fn listed(entry: &Entry) -> Listed {
    Listed { key: entry.key, target: entry.shared, revision: entry.revision }
}
